//! The wire's types: `tribunal/v1/*.proto` compiled, and the descriptor set that reflection serves. Nothing else.

/// Package `tribunal.v1`.
pub mod v1 {
    #![allow(
        clippy::allow_attributes_without_reason,
        clippy::large_enum_variant,
        missing_docs,
        unreachable_pub,
        reason = "generated"
    )]
    tonic::include_proto!("tribunal.v1");
}

/// The compiled descriptor set of package `tribunal.v1`.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tribunal.bin"));

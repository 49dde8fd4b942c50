//! Compiles `tribunal/v1/*.proto` without protoc, and keeps the descriptor set for reflection.

use prost::Message as _;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=tribunal");
    let files = [
        "tribunal/v1/cassette_service.proto",
        "tribunal/v1/key_service.proto",
        "tribunal/v1/repository_service.proto",
        "tribunal/v1/score_service.proto",
    ];
    let descriptors = protox::compile(files, ["."])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("tribunal.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        .bytes(".tribunal.v1")
        .compile_fds(descriptors)?;
    Ok(())
}

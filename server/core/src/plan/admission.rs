//! Which src may enter an overlay at all: what is judged are entries that differ from base.

use super::SrcFacts;
use crate::policy::Limits;
use crate::reason::{Refused, RefusedCode};

/// The whole src against the policy's limits.
pub(super) fn sizes(limits: &Limits, src: &SrcFacts) -> Result<(), Refused> {
    let files = src.entries.len() as u64;
    let bytes = src
        .entries
        .iter()
        .fold(0_u64, |sum, entry| sum.saturating_add(entry.size));
    let over = |what, has: u64, limit: u64, key| {
        let told = format!("src holds {has} {what}, the policy's {key} allows {limit}");
        Err(Refused::new(RefusedCode::TooLarge, told))
    };
    if files > limits.src_files {
        return over("files", files, limits.src_files, "limits.src_files");
    }
    if bytes > limits.src_bytes {
        return over("bytes", bytes, limits.src_bytes, "limits.src_bytes");
    }
    Ok(())
}

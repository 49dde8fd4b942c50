//! What the server carries inside itself for the image (`build.rs` prepares it).

use include_dir::{Dir, include_dir};
use std::fmt::Write as _;
use tribunal_core::id::Digest;

pub(super) static HARNESS: Dir<'static> = include_dir!("$OUT_DIR/harness");
pub(super) static PINS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libtribunal_pins.so"));
pub(super) static WITNESS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tribunal_witness.so"));
pub(super) static TRANSPORT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/transport"));
pub(super) static ASSEMBLE: &str = include_str!("../../../images/python/assemble.py");
pub(super) static REQUIREMENTS: &str = include_str!("../../../images/python/requirements.txt");
/// Preloaded into every process of the image.
pub(super) static PRELOAD: &str = "/opt/tribunal/lib/libtribunal_pins.so\n";

/// The harness's files by path, sorted.
pub(super) fn harness() -> Vec<(String, &'static [u8])> {
    fn collect(dir: &'static Dir<'static>, into: &mut Vec<(String, &'static [u8])>) {
        for file in dir.files() {
            into.push((file.path().to_string_lossy().into_owned(), file.contents()));
        }
        for dir in dir.dirs() {
            collect(dir, into);
        }
    }
    let mut files = Vec::new();
    collect(&HARNESS, &mut files);
    files.sort();
    files
}

/// One digest over harness, pins, witness, transport, assembly and the runner's requirements: two images with the same one
/// judge alike, and an image with another one is not this server's.
#[must_use]
pub fn runner_digest() -> Digest {
    let mut listing = String::new();
    let harness = harness();
    let ours = [
        ("pins", PINS),
        ("witness", WITNESS),
        ("transport", TRANSPORT),
        ("assemble", ASSEMBLE.as_bytes()),
        ("requirements", REQUIREMENTS.as_bytes()),
    ];
    for (name, bytes) in harness
        .iter()
        .map(|(name, bytes)| (name.as_str(), *bytes))
        .chain(ours)
    {
        let _ = writeln!(listing, "{} {name}", Digest::of(bytes));
    }
    Digest::of(listing.as_bytes())
}

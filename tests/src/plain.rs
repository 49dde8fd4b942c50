//! Verdict files in the hands of tools that are not ours: `ssh-keygen`, `openssl`, and the bytes between them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tribunal_core::keys::{NAMESPACE, PRINCIPAL};

/// The three verdicts' file stems.
pub const STEMS: [&str; 3] = ["src_score", "oracle_integrity", "flake_lease"];

/// What a tool says of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// It is good.
    Good,
    /// It is not.
    Bad,
}

impl Says {
    fn of(output: &Output) -> Self {
        if output.status.success() {
            Self::Good
        } else {
            Self::Bad
        }
    }
}

/// `ssh-keygen -Y verify` over a verdict's exact payload file.
#[must_use]
pub fn ssh_keygen(folder: &Path, stem: &str, allowed_signers: &Path) -> Says {
    let output = Command::new("ssh-keygen")
        .args(["-Y", "verify", "-I", PRINCIPAL, "-n", NAMESPACE, "-f"])
        .arg(allowed_signers)
        .arg("-s")
        .arg(folder.join(format!("{stem}.json.sig")))
        .stdin(File::open(folder.join(format!("{stem}.json"))).unwrap())
        .stdout(Stdio::null())
        .output()
        .unwrap();
    Says::of(&output)
}

/// `openssl pkeyutl` over the DSSE encoding of a verdict's exact payload file, with the envelope's signature.
#[must_use]
pub fn openssl(folder: &Path, stem: &str, key: &Path) -> Says {
    let envelope = envelope(folder, stem);
    let kind = envelope["payloadType"].as_str().unwrap();
    let payload = fs::read(folder.join(format!("{stem}.json"))).unwrap();
    let signature = envelope["signatures"][0]["sig"].as_str().unwrap();
    let work = tempfile::tempdir().unwrap();
    let (encoded, raw) = (work.path().join("pae"), work.path().join("sig"));
    fs::write(&encoded, pre_authentication(kind, &payload)).unwrap();
    fs::write(&raw, BASE64.decode(signature).unwrap()).unwrap();
    let output = Command::new("openssl")
        .args(["pkeyutl", "-verify", "-pubin", "-rawin", "-inkey"])
        .arg(key)
        .arg("-in")
        .arg(&encoded)
        .arg("-sigfile")
        .arg(&raw)
        .output()
        .unwrap();
    Says::of(&output)
}

/// The envelope in a verdict's bundle.
#[must_use]
pub fn envelope(folder: &Path, stem: &str) -> Value {
    let bundle = fs::read(folder.join(format!("{stem}.sigstore.json"))).unwrap();
    let bundle: Value = serde_json::from_slice(&bundle).unwrap();
    bundle["dsseEnvelope"].clone()
}

/// The bytes that an envelope signs.
#[must_use]
pub fn envelope_payload(folder: &Path, stem: &str) -> Vec<u8> {
    let payload = envelope(folder, stem)["payload"].clone();
    BASE64.decode(payload.as_str().unwrap()).unwrap()
}

/// DSSE's own encoding of what is signed.
fn pre_authentication(kind: &str, payload: &[u8]) -> Vec<u8> {
    let mut encoded = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).into_bytes();
    encoded.extend_from_slice(payload);
    encoded
}

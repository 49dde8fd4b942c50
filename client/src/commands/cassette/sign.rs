//! `ssh-keygen -Y sign`: so that agents, passphrases and hardware keys work, and this process never sees a private key.

use crate::failure::Failure;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use tribunal_core::cassette::NAMESPACE;
use tribunal_core::text::shown_block;

/// The signature file over these bytes.
pub(super) fn sign(key: &Path, message: &[u8]) -> Result<String, Failure> {
    let trouble = |why: &dyn std::fmt::Display| {
        Failure::usage(
            "sign the ledger entry",
            why,
            "name an SSH key that can sign with --key FILE",
        )
    };
    let mut child = Command::new("ssh-keygen")
        .args(["-Y", "sign", "-n", NAMESPACE, "-f"])
        .arg(key)
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| trouble(&format!("ssh-keygen cannot be started: {e}")))?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that went away says why on its own.
        let _gone = stdin.write_all(message);
    }
    let output = child.wait_with_output().map_err(|e| trouble(&e))?;
    if !output.status.success() {
        return Err(trouble(&shown_block(
            String::from_utf8_lossy(&output.stderr).trim(),
            500,
        )));
    }
    String::from_utf8(output.stdout).map_err(|e| trouble(&e))
}

//! One suite that every signer passes, and what is the file's alone.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::{FileSigner, KeyFileError, MemorySigner, Signer};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use tribunal_core::keys::Valid;

/// What every signer holds to.
fn conforms(signer: &dyn Signer) {
    let public = signer.public();
    assert_eq!(public.id().as_str().len(), "SHA256:".len() + 43);
    for message in [b"".as_slice(), b"a", &[0xff; 70_000]] {
        let signature = signer.sign(message).unwrap();
        assert_eq!(public.verifies(message, &signature), Valid::Yes);
        assert_eq!(
            signer.sign(message).unwrap(),
            signature,
            "ed25519 has one signature per message"
        );
        let mut other = message.to_vec();
        other.push(b'\n');
        assert_eq!(public.verifies(&other, &signature), Valid::No);
        let mut broken = signature;
        broken[63] ^= 1;
        assert_eq!(public.verifies(message, &broken), Valid::No);
    }
}

#[test]
fn a_key_in_memory_conforms() {
    conforms(&MemorySigner::from_secret(&[7; 32]).unwrap());
}

#[test]
fn a_key_file_conforms_and_reads_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("signing.pem");
    let made = FileSigner::create(&path).unwrap();
    conforms(&made);
    let read = FileSigner::open(&path).unwrap();
    conforms(&read);
    assert_eq!(made.public(), read.public());
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(
        format!("{made:?}"),
        format!("FileSigner({})", made.public().id())
    );
}

#[test]
fn a_key_file_is_never_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("signing.pem");
    let made = FileSigner::create(&path).unwrap();
    assert!(matches!(
        FileSigner::create(&path),
        Err(KeyFileError::Io { act: "create", .. })
    ));
    assert_eq!(FileSigner::open(&path).unwrap().public(), made.public());
}

#[test]
fn an_exposed_or_broken_key_file_is_refused_without_telling_what_it_holds() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("signing.pem");
    FileSigner::create(&path).unwrap();
    let link = dir.path().join("link.pem");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(matches!(
        FileSigner::open(&link),
        Err(KeyFileError::Io { act: "open", .. })
    ));
    for mode in [0o640, 0o604, 0o660] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        assert!(
            matches!(FileSigner::open(&path), Err(KeyFileError::Exposed { .. })),
            "{mode:o}"
        );
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(
        &path,
        "-----BEGIN PRIVATE KEY-----\nsecretsecret\n-----END PRIVATE KEY-----\n",
    )
    .unwrap();
    let error = FileSigner::open(&path).unwrap_err();
    assert!(matches!(error, KeyFileError::Form { .. }));
    assert!(!error.to_string().contains("secret"));
    assert!(matches!(
        FileSigner::open(dir.path()),
        Err(KeyFileError::Exposed { .. })
    ));
}

#[test]
fn openssl_reads_the_key_file_and_names_the_same_public_half() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("signing.pem");
    let made = FileSigner::create(&path).unwrap();
    let out = Command::new("openssl")
        .arg("pkey")
        .arg("-pubout")
        .arg("-in")
        .arg(&path)
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    assert_eq!(
        String::from_utf8(out.stdout).unwrap(),
        made.public().to_pem()
    );
}

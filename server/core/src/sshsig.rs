//! OpenSSH's file signatures (SSHSIG), because `ssh-keygen` is on every runner: the bytes to sign, the file, the check.
//!
//! Never signs. One form only: version 1, SHA-512, our namespace, LF lines; anything else is another file and is refused.

use crate::keys::{NAMESPACE, PublicKey, Valid};
use ssh_key::{Algorithm, HashAlg, LineEnding, Signature, SshSig};

/// Why a file is not the signature it stands for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SshSigError {
    /// Not an SSHSIG file at all, or one that does not read back to the same bytes.
    #[error("not an SSH signature file as this server writes it: {0}")]
    Form(String),
    /// For another purpose.
    #[error("made for namespace `{0}`, not `{NAMESPACE}`")]
    Namespace(String),
    /// By another key.
    #[error("made by another key than the envelope")]
    Key,
    /// It does not hold.
    #[error("does not hold over these bytes")]
    Wrong,
}

/// What the key signs for this message.
///
/// # Errors
/// Where the encoding fails, which it has no way to.
pub fn to_be_signed(message: &[u8]) -> Result<Vec<u8>, SshSigError> {
    SshSig::signed_data(NAMESPACE, HashAlg::Sha512, message).map_err(form)
}

/// The signature file.
///
/// # Errors
/// Where the signature has not 64 bytes.
pub fn file(key: &PublicKey, signature: &[u8]) -> Result<String, SshSigError> {
    let signature = Signature::new(Algorithm::Ed25519, signature).map_err(form)?;
    SshSig::new(key.ssh_data(), NAMESPACE, HashAlg::Sha512, signature)
        .and_then(|sig| sig.to_pem(LineEnding::LF))
        .map_err(form)
}

/// Whether the file is this key's signature over the message.
///
/// # Errors
/// What is wrong with it.
pub fn verify(key: &PublicKey, message: &[u8], file: &[u8]) -> Result<(), SshSigError> {
    let sig = SshSig::from_pem(file).map_err(form)?;
    if sig.namespace() != NAMESPACE {
        return Err(SshSigError::Namespace(crate::text::shown(
            sig.namespace(),
            60,
        )));
    }
    if sig.public_key() != &key.ssh_data() {
        return Err(SshSigError::Key);
    }
    let again = sig.to_pem(LineEnding::LF).map_err(form)?;
    if again.as_bytes() != file || sig.hash_alg() != HashAlg::Sha512 || !sig.reserved().is_empty() {
        return Err(SshSigError::Form("it is spelled in another way".to_owned()));
    }
    match key.verifies(&to_be_signed(message)?, sig.signature_bytes()) {
        Valid::Yes => Ok(()),
        Valid::No => Err(SshSigError::Wrong),
    }
}

fn form(error: ssh_key::Error) -> SshSigError {
    SshSigError::Form(error.to_string())
}

//! Statements become envelopes: the only place where a private key is used.
//!
//! Signs what was judged and nothing else: [`sign`] takes `Statements`, which only the judge's verdicts become. Never logs,
//! prints or passes on a private half. A failure aborts the score; it is never only logged.

mod file;
mod folder;
mod memory;

pub use file::{FileSigner, KeyFileError, KeyKind};
pub use folder::{Drawn, KeyFolder, KeyFolderError};
pub use memory::MemorySigner;

use tribunal_core::envelope::{Envelopes, SealError, seal};
use tribunal_core::keys::PublicKey;
use tribunal_core::reason::{Aborted, AbortedCode};
use tribunal_core::statement::Statements;

/// Why a signer gave no signature.
#[derive(Debug, thiserror::Error)]
#[error("the signer gave no signature: {0}")]
pub struct SignerError(pub String);

/// Who holds a signing key.
pub trait Signer: Send + Sync {
    /// The public half, and with it the key's name.
    fn public(&self) -> &PublicKey;

    /// The ed25519 signature over these bytes.
    ///
    /// # Errors
    /// Where the key cannot be used now.
    fn sign(&self, message: &[u8]) -> Result<[u8; 64], SignerError>;
}

/// Why a score could not be signed; always ours.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct SignError(#[from] SealError<SignerError>);

impl From<SignError> for Aborted {
    fn from(error: SignError) -> Self {
        Self::new(AbortedCode::Internal, error.to_string())
    }
}

/// Sign a score's statements: all of them, or none.
///
/// # Errors
/// Where the signer fails or its signature does not verify; the score is aborted then.
pub fn sign(statements: Statements, signer: &dyn Signer) -> Result<Envelopes, SignError> {
    Ok(seal(statements, signer.public(), |message| {
        signer.sign(message)
    })?)
}

#[cfg(test)]
mod tests;

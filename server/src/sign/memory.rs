//! A signing key that lives in memory alone: for tests, and for trying things out without leaving a key behind.

use super::{Signer, SignerError};
use ed25519_dalek::{Signer as _, SigningKey};
use tribunal_core::keys::{KeyError, PublicKey};

/// A key made of a given secret.
pub struct MemorySigner {
    key: SigningKey,
    public: PublicKey,
}

impl MemorySigner {
    /// The key with this secret.
    ///
    /// # Errors
    /// Where its public half has no name.
    pub fn from_secret(secret: &[u8; 32]) -> Result<Self, KeyError> {
        let key = SigningKey::from_bytes(secret);
        let public = PublicKey::from_bytes(key.verifying_key().as_bytes())?;
        Ok(Self { key, public })
    }
}

impl Signer for MemorySigner {
    fn public(&self) -> &PublicKey {
        &self.public
    }
    fn sign(&self, message: &[u8]) -> Result<[u8; 64], SignerError> {
        self.key
            .try_sign(message)
            .map(|signature| signature.to_bytes())
            .map_err(|_| SignerError("ed25519 failed".to_owned()))
    }
}

impl std::fmt::Debug for MemorySigner {
    /// The name alone.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MemorySigner({})", self.public.id())
    }
}

//! Public halves of signing keys: their names, their dates, and the forms in which people hand them on.
//!
//! Turns SPKI PEM or an `allowed_signers` file into a [`KeyRing`], and a key into both. Never sees a private half.
//! Fails with `KeyError`, which names the line.

use crate::id::{KeyId, UnixTime};
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePublicKey as _, EncodePublicKey as _};
use ed25519_dalek::{Signature, VerifyingKey};
use serde::{Deserialize, Serialize};

pub(crate) mod signer_lines;
mod signers;

/// The SSHSIG namespace of verdicts: a signature made for anything else is not one.
pub const NAMESPACE: &str = "tribunal-verdict";

/// The principal under which a server's key stands in an `allowed_signers` file.
pub const PRINCIPAL: &str = "tribunal";

/// Why something is not a key, or not a list of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Neither form.
    #[error(
        "neither a PEM public key nor an allowed_signers file with a key for namespace `{NAMESPACE}`"
    )]
    NoKey,
    /// PEM that does not hold an ed25519 public key.
    #[error("PEM block {block} is not an ed25519 public key: {why}")]
    Pem {
        /// Which, counted from 1.
        block: usize,
        /// What is wrong.
        why: String,
    },
    /// No such key in the ring.
    #[error("no key {0}")]
    Unknown(KeyId),
    /// A line of allowed_signers that does not parse.
    #[error("line {line}: {why}")]
    Line {
        /// Which, counted from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
}

/// The public half of a signing key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicKey {
    key: VerifyingKey,
    id: KeyId,
}

impl PublicKey {
    /// The key with these bytes.
    ///
    /// # Errors
    /// Where they are no point of the curve.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, KeyError> {
        let why = |why: String| KeyError::Pem { block: 1, why };
        let key = VerifyingKey::from_bytes(bytes).map_err(|e| why(e.to_string()))?;
        let id = ssh_form(&key)
            .fingerprint(ssh_key::HashAlg::Sha256)
            .to_string()
            .parse()
            .map_err(|e: crate::id::IdError| why(e.to_string()))?;
        Ok(Self { key, id })
    }

    /// The key in one SPKI PEM block.
    ///
    /// # Errors
    /// Where it is something else.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let key = VerifyingKey::from_public_key_pem(pem).map_err(|e| KeyError::Pem {
            block: 1,
            why: e.to_string(),
        })?;
        Self::from_bytes(key.as_bytes())
    }

    /// SPKI PEM, as openssl and cosign read it.
    #[must_use]
    pub fn to_pem(&self) -> String {
        // Encoding 32 bytes under a fixed header has no way to fail; an empty text would be refused by every reader.
        self.key
            .to_public_key_pem(LineEnding::LF)
            .unwrap_or_default()
    }

    /// `ssh-ed25519 AAAA…`.
    #[must_use]
    pub fn to_openssh(&self) -> String {
        ssh_form(&self.key).to_openssh().unwrap_or_default()
    }

    /// Its name: the OpenSSH fingerprint.
    #[must_use]
    pub const fn id(&self) -> &KeyId {
        &self.id
    }

    /// Its form in OpenSSH's own structures.
    pub(crate) fn ssh_data(&self) -> ssh_key::public::KeyData {
        ssh_form(&self.key).key_data().clone()
    }

    /// Its 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.key.as_bytes()
    }

    /// Whether the signature is this key's over these bytes. Strict: small-order and non-canonical forms are refused.
    #[must_use]
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> Valid {
        let Ok(signature) = Signature::from_slice(signature) else {
            return Valid::No;
        };
        match self.key.verify_strict(message, &signature) {
            Ok(()) => Valid::Yes,
            Err(_) => Valid::No,
        }
    }
}

/// Whether a signature holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Valid {
    /// It is the key's over these bytes.
    Yes,
    /// It is not.
    No,
}

impl TryFrom<String> for PublicKey {
    type Error = KeyError;
    fn try_from(pem: String) -> Result<Self, KeyError> {
        Self::from_pem(&pem)
    }
}
impl From<PublicKey> for String {
    fn from(key: PublicKey) -> Self {
        key.to_pem()
    }
}

fn ssh_form(key: &VerifyingKey) -> ssh_key::PublicKey {
    ssh_key::PublicKey::new(
        ssh_key::public::KeyData::Ed25519(ssh_key::public::Ed25519PublicKey(key.to_bytes())),
        "",
    )
}

/// A key with the dates between which it may have signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// The public half.
    pub key: PublicKey,
    /// It signs from here on; `None` is always.
    pub valid_after: Option<UnixTime>,
    /// It was retired here: what it issued before stays good.
    pub valid_before: Option<UnixTime>,
    /// It is not to be believed from here on, whatever it says.
    pub revoked_since: Option<UnixTime>,
}

impl KeyRecord {
    /// A key without dates.
    #[must_use]
    pub const fn undated(key: PublicKey) -> Self {
        Self {
            key,
            valid_after: None,
            valid_before: None,
            revoked_since: None,
        }
    }

    /// When it stops: retirement or revocation, whichever is first.
    #[must_use]
    pub fn ends(&self) -> Option<UnixTime> {
        self.valid_before
            .into_iter()
            .chain(self.revoked_since)
            .min()
    }

    /// Whether it may have issued something at this time.
    ///
    /// # Errors
    /// The sentence that says why not.
    pub fn may_issue(&self, at: UnixTime) -> Result<(), String> {
        let id = self.key.id();
        if let Some(since) = self.revoked_since.filter(|since| at >= *since) {
            return Err(format!("key {id} is revoked since {}", since.rfc3339()));
        }
        if let Some(after) = self.valid_after.filter(|after| at < *after) {
            return Err(format!("key {id} signs only from {} on", after.rfc3339()));
        }
        if let Some(before) = self.valid_before.filter(|before| at >= *before) {
            return Err(format!("key {id} was retired at {}", before.rfc3339()));
        }
        Ok(())
    }

    /// Its line of an `allowed_signers` file.
    #[must_use]
    pub fn allowed_signers_line(&self) -> String {
        signers::line(self)
    }
}

/// The keys that a verifier believes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyRing(Vec<KeyRecord>);

impl KeyRing {
    /// A ring of these.
    #[must_use]
    pub const fn new(records: Vec<KeyRecord>) -> Self {
        Self(records)
    }

    /// One or more PEM blocks, or an `allowed_signers` file.
    ///
    /// # Errors
    /// `KeyError`, naming the block or line.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let records = if text.contains("-----BEGIN") {
            pem_blocks(text)?
        } else {
            signers::parse(text)?
        };
        if records.is_empty() {
            return Err(KeyError::NoKey);
        }
        Ok(Self(records))
    }

    /// All of them.
    #[must_use]
    pub fn records(&self) -> &[KeyRecord] {
        &self.0
    }

    /// Every record of the key with this name: a file may hold one key twice, with different dates.
    pub fn of<'a>(&'a self, id: &'a KeyId) -> impl Iterator<Item = &'a KeyRecord> {
        self.0.iter().filter(move |record| record.key.id() == id)
    }

    /// The ring after `fresh` took over at this time: keys that signed until then are retired, and stay known.
    #[must_use]
    pub fn rotated(mut self, fresh: PublicKey, at: UnixTime) -> Self {
        for record in &mut self.0 {
            record.valid_before = record.valid_before.or(Some(at));
        }
        self.0.push(KeyRecord {
            key: fresh,
            valid_after: Some(at),
            valid_before: None,
            revoked_since: None,
        });
        self
    }

    /// The ring after this key was revoked; an earlier revocation stays.
    ///
    /// # Errors
    /// Where the ring has no such key.
    pub fn revoked(mut self, id: &KeyId, since: UnixTime) -> Result<Self, KeyError> {
        let mut found = false;
        for record in self.0.iter_mut().filter(|record| record.key.id() == id) {
            found = true;
            record.revoked_since = record.revoked_since.into_iter().chain([since]).min();
        }
        found
            .then_some(self)
            .ok_or_else(|| KeyError::Unknown(id.clone()))
    }

    /// The whole ring as an `allowed_signers` file.
    #[must_use]
    pub fn allowed_signers(&self) -> String {
        self.0
            .iter()
            .map(|record| record.allowed_signers_line() + "\n")
            .collect()
    }
}

fn pem_blocks(text: &str) -> Result<Vec<KeyRecord>, KeyError> {
    const END: &str = "-----END PUBLIC KEY-----";
    let mut records = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let block = records.len() + 1;
        let why = |why: &str| KeyError::Pem {
            block,
            why: why.to_owned(),
        };
        let end = rest
            .find(END)
            .ok_or_else(|| why("it has no `END PUBLIC KEY` line"))?
            + END.len();
        let (pem, tail) = rest.split_at(end);
        let key = PublicKey::from_pem(pem).map_err(|e| why(&e.to_string()))?;
        records.push(KeyRecord::undated(key));
        rest = tail.trim_start();
    }
    Ok(records)
}

#[cfg(test)]
mod tests;

//! Signed statements as files: a DSSE envelope in a Sigstore bundle v0.3, the payload itself, an SSHSIG, the word.
//!
//! [`seal`] is the only way from [`Statements`] to [`Envelopes`]: all of a score's files or none. Every signature is
//! checked before it leaves, so a broken signer aborts the score and publishes nothing. Never holds a private key.

use crate::id::KeyId;
use crate::judge::{VerdictKind, Word};
use crate::keys::{PublicKey, Valid};
use crate::sshsig::{self, SshSigError};
use crate::statement::{PAYLOAD_TYPE, Payload, Statements};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// What a bundle says it is.
pub const BUNDLE_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// Why nothing was sealed; always ours.
#[derive(Debug, thiserror::Error)]
pub enum SealError<E> {
    /// The signer refused or broke.
    #[error("failed to sign {stem}")]
    Signer {
        /// The statement.
        stem: &'static str,
        /// What the signer says.
        #[source]
        source: E,
    },
    /// The signer gave a signature that its own public key does not verify.
    #[error("the signature of {stem} does not verify under key {key}")]
    Unverifiable {
        /// The statement.
        stem: &'static str,
        /// The key.
        key: KeyId,
    },
    /// A file could not be written down.
    #[error("failed to write the files of {stem}")]
    Form {
        /// The statement.
        stem: &'static str,
        /// What is wrong.
        #[source]
        source: FormError,
    },
}

/// Why an envelope has no file form, or a file is no envelope.
#[derive(Debug, thiserror::Error)]
pub enum FormError {
    /// JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// SSHSIG.
    #[error(transparent)]
    SshSig(#[from] SshSigError),
}

/// One file that a score hands out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerdictFile {
    /// Its name, without a folder.
    pub name: String,
    /// Its exact bytes.
    pub bytes: Vec<u8>,
}

/// The signed files of one score: all of them, or there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelopes {
    key: KeyId,
    words: [Word; 3],
    files: Vec<VerdictFile>,
}

impl Envelopes {
    /// The key that signed.
    #[must_use]
    pub const fn key(&self) -> &KeyId {
        &self.key
    }
    /// The three words, in the order of the join.
    #[must_use]
    pub const fn words(&self) -> &[Word; 3] {
        &self.words
    }
    /// The word of one verdict.
    #[must_use]
    pub const fn word(&self, kind: VerdictKind) -> Word {
        let [src_score, oracle_integrity, flake_lease] = self.words;
        match kind {
            VerdictKind::SrcScore => src_score,
            VerdictKind::OracleIntegrity => oracle_integrity,
            VerdictKind::FlakeLease => flake_lease,
        }
    }
    /// The files.
    #[must_use]
    pub fn files(&self) -> &[VerdictFile] {
        &self.files
    }
    /// The files, given away.
    #[must_use]
    pub fn into_files(self) -> Vec<VerdictFile> {
        self.files
    }
}

/// Sign the statements. Consumes them: what was signed once is not signed again.
///
/// # Errors
/// Where the signer fails, or its signature does not verify; nothing is handed out then.
pub fn seal<E>(
    statements: Statements,
    key: &PublicKey,
    mut sign: impl FnMut(&[u8]) -> Result<[u8; 64], E>,
) -> Result<Envelopes, SealError<E>> {
    let mut files = Vec::new();
    let mut words = [Word::NotRun; 3];
    let mut signed = |stem: &'static str, message: &[u8]| {
        let signature = sign(message).map_err(|source| SealError::Signer { stem, source })?;
        match key.verifies(message, &signature) {
            Valid::Yes => Ok(signature),
            Valid::No => Err(SealError::Unverifiable {
                stem,
                key: key.id().clone(),
            }),
        }
    };
    for ((payload, word), place) in statements.verdicts().iter().zip(&mut words) {
        let stem = payload.stem();
        let form = |source: FormError| SealError::Form { stem, source };
        let dsse = signed(stem, &pae(payload.bytes()))?;
        let message = sshsig::to_be_signed(payload.bytes()).map_err(|e| form(e.into()))?;
        let ssh = signed(stem, &message)?;
        let ssh = sshsig::file(key, &ssh).map_err(|e| form(e.into()))?;
        let bundle = bundle(payload, key, &dsse).map_err(|e| form(e.into()))?;
        let mut push = |ending: &str, bytes: Vec<u8>| {
            files.push(VerdictFile {
                name: format!("{stem}{ending}"),
                bytes,
            });
        };
        push(".txt", format!("{word}\n").into_bytes());
        push(".sigstore.json", bundle);
        push(".json", payload.bytes().to_vec());
        push(".json.sig", ssh.into_bytes());
        *place = *word;
    }
    if let Some(payload) = statements.test_result() {
        let stem = payload.stem();
        let dsse = signed(stem, &pae(payload.bytes()))?;
        let bytes = bundle(payload, key, &dsse).map_err(|e| SealError::Form {
            stem,
            source: e.into(),
        })?;
        files.push(VerdictFile {
            name: format!("{stem}.sigstore.json"),
            bytes,
        });
    }
    Ok(Envelopes {
        key: key.id().clone(),
        words,
        files,
    })
}

/// DSSE's pre-authentication encoding: what an envelope's signature is over.
#[must_use]
pub fn pae(payload: &[u8]) -> Vec<u8> {
    let mut out = format!(
        "DSSEv1 {} {PAYLOAD_TYPE} {} ",
        PAYLOAD_TYPE.len(),
        payload.len()
    )
    .into_bytes();
    out.extend_from_slice(payload);
    out
}

fn bundle(
    payload: &Payload,
    key: &PublicKey,
    signature: &[u8],
) -> Result<Vec<u8>, serde_json::Error> {
    Bundle {
        media_type: BUNDLE_TYPE.to_owned(),
        verification_material: VerificationMaterial {
            public_key: KeyHint {
                hint: key.id().to_string(),
            },
        },
        dsse_envelope: Dsse {
            payload: STANDARD.encode(payload.bytes()),
            payload_type: PAYLOAD_TYPE.to_owned(),
            signatures: vec![DsseSignature {
                sig: STANDARD.encode(signature),
                keyid: key.id().to_string(),
            }],
        },
    }
    .to_bytes()
}

/// A Sigstore bundle as we write it, and as we read it: a key we do not write is one we do not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Bundle {
    pub(crate) media_type: String,
    pub(crate) verification_material: VerificationMaterial,
    pub(crate) dsse_envelope: Dsse,
}

impl Bundle {
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut bytes = serde_json::to_vec(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct VerificationMaterial {
    pub(crate) public_key: KeyHint,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyHint {
    pub(crate) hint: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Dsse {
    pub(crate) payload: String,
    pub(crate) payload_type: String,
    pub(crate) signatures: Vec<DsseSignature>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DsseSignature {
    pub(crate) sig: String,
    pub(crate) keyid: String,
}

#[cfg(test)]
mod tests;

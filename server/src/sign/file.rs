//! The signing key in a file: PKCS#8 PEM, mode 0600, read once, wiped from memory when the server ends.

use super::{Signer, SignerError};
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _, KeypairBytes};
use ed25519_dalek::{Signer as _, SigningKey};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use tribunal_core::keys::{KeyError, PublicKey};
use zeroize::{Zeroize as _, Zeroizing};

/// A PEM block of one ed25519 key is 120 bytes; what is far longer is another file.
const MAX_BYTES: u64 = 4096;

/// Why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It cannot be read or written.
    #[error("failed to {act} the key file {path}")]
    Io {
        /// What was tried.
        act: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// Others could read it, or it is no plain file.
    #[error(
        "the key file {path} must be a plain file of this user that nobody else can read: {what}; chmod 600 it"
    )]
    Exposed {
        /// Where.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// It holds no ed25519 key. What it does hold is not told.
    #[error("the key file {path} holds no PKCS#8 PEM ed25519 key")]
    Form {
        /// Where.
        path: PathBuf,
    },
    /// No randomness.
    #[error("failed to draw a key")]
    Entropy,
    /// The public half has no name.
    #[error(transparent)]
    Public(#[from] KeyError),
}

/// Who keeps a key file from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// This user: its own file, which no other may read.
    Own,
    /// The service manager, in a folder that only this service enters: root's file, where an access list for this user
    /// shows as the group's right to read.
    Credential,
}

impl KeyKind {
    /// What is wrong with such a file, if something is.
    fn exposed(self, mode: u32, owner: u32, user: u32) -> Option<String> {
        let (owners_match, open) = match self {
            Self::Credential if owner == 0 => (true, mode & 0o037),
            Self::Own | Self::Credential => (owner == user, mode & 0o077),
        };
        if open != 0 {
            Some(format!("its mode is {:03o}", mode & 0o777))
        } else if !owners_match {
            Some(format!("its owner is uid {owner}"))
        } else {
            None
        }
    }
}

/// A key that was read from a file.
pub struct FileSigner {
    // SigningKey wipes itself when dropped.
    key: SigningKey,
    public: PublicKey,
}

impl FileSigner {
    /// Draw a key and write it to a new file, durable before this returns. Never overwrites.
    ///
    /// # Errors
    /// Where the file exists or cannot be written.
    pub fn create(path: &Path) -> Result<Self, KeyFileError> {
        let mut secret = Zeroizing::new([0_u8; 32]);
        getrandom::fill(secret.as_mut_slice()).map_err(|_| KeyFileError::Entropy)?;
        let signer = Self::of(SigningKey::from_bytes(&secret))?;
        let form = || KeyFileError::Form {
            path: path.to_owned(),
        };
        // Version 1, without the public half: openssl 3.0 does not read version 2.
        let mut bytes = KeypairBytes {
            secret_key: *secret,
            public_key: None,
        };
        let pem = bytes.to_pkcs8_pem(LineEnding::LF).map_err(|_| form());
        bytes.secret_key.zeroize();
        let pem = pem?;
        let io = |act| {
            move |source| KeyFileError::Io {
                act,
                path: path.to_owned(),
                source,
            }
        };
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(io("create"))?;
        file.write_all(pem.as_bytes()).map_err(io("write"))?;
        file.sync_all().map_err(io("sync"))?;
        let folder = path
            .parent()
            .filter(|p| !p.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        File::open(folder)
            .and_then(|d| d.sync_all())
            .map_err(io("sync the folder of"))?;
        Ok(signer)
    }

    /// Read a key of this user's own.
    ///
    /// # Errors
    /// Where it is exposed, unreadable, or no key.
    pub fn open(path: &Path) -> Result<Self, KeyFileError> {
        Self::open_as(KeyKind::Own, path)
    }

    /// Read a key.
    ///
    /// # Errors
    /// Where it is exposed, unreadable, or no key.
    pub fn open_as(kind: KeyKind, path: &Path) -> Result<Self, KeyFileError> {
        let io = |act| {
            move |source| KeyFileError::Io {
                act,
                path: path.to_owned(),
                source,
            }
        };
        let nofollow = rustix::fs::OFlags::NOFOLLOW
            .union(rustix::fs::OFlags::CLOEXEC)
            .bits();
        let mut file = OpenOptions::new()
            .read(true)
            .custom_flags(nofollow.cast_signed())
            .open(path)
            .map_err(io("open"))?;
        let about = file.metadata().map_err(io("look at"))?;
        let exposed = |what: String| KeyFileError::Exposed {
            path: path.to_owned(),
            what,
        };
        if !about.is_file() || about.len() > MAX_BYTES {
            return Err(exposed("it is no small plain file".to_owned()));
        }
        let user = rustix::process::geteuid().as_raw();
        if let Some(what) = kind.exposed(about.mode(), about.uid(), user) {
            return Err(exposed(what));
        }
        let mut pem = Zeroizing::new(String::with_capacity(MAX_BYTES as usize));
        file.read_to_string(&mut pem).map_err(io("read"))?;
        let key = SigningKey::from_pkcs8_pem(&pem).map_err(|_| KeyFileError::Form {
            path: path.to_owned(),
        })?;
        Self::of(key)
    }

    fn of(key: SigningKey) -> Result<Self, KeyFileError> {
        let public = PublicKey::from_bytes(key.verifying_key().as_bytes())?;
        Ok(Self { key, public })
    }
}

impl Signer for FileSigner {
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

impl std::fmt::Debug for FileSigner {
    /// The name alone.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FileSigner({})", self.public.id())
    }
}

#[cfg(test)]
mod tests {
    use super::KeyKind;

    #[test]
    fn who_may_read_a_key_file() {
        let (ours, roots, others) = (1000, 0, 7);
        let table = [
            (KeyKind::Own, 0o100_600, ours, true),
            (KeyKind::Own, 0o100_400, ours, true),
            (KeyKind::Own, 0o100_440, ours, false),
            (KeyKind::Own, 0o100_400, roots, false),
            (KeyKind::Own, 0o100_600, others, false),
            (KeyKind::Credential, 0o100_400, ours, true),
            (KeyKind::Credential, 0o100_440, ours, false),
            (KeyKind::Credential, 0o100_400, roots, true),
            (KeyKind::Credential, 0o100_440, roots, true),
            (KeyKind::Credential, 0o100_460, roots, false),
            (KeyKind::Credential, 0o100_444, roots, false),
            (KeyKind::Credential, 0o100_400, others, false),
        ];
        for (kind, mode, owner, fits) in table {
            let wrong = kind.exposed(mode, owner, ours);
            assert_eq!(
                wrong.is_none(),
                fits,
                "{kind:?} {mode:o} {owner}: {wrong:?}"
            );
        }
    }
}

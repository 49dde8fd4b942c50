//! The secret that held-out pins are drawn from: 32 bytes in one file of the data directory, which nobody else can read.
//!
//! It goes into draws and nowhere else: never into a container, a log, an error or a report. Made when it is first needed;
//! a copy of the data directory draws as the original does. Fails with `DrawsError`, which is ours.

use crate::sandbox::Questions;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use tribunal_core::held_out;
use tribunal_core::id::Digest;
use tribunal_core::outcome::{Lane, Pins};
use tribunal_core::policy::{PinPolicy, Runs};
use zeroize::Zeroizing;

/// The file's name in the data directory.
pub const FILE: &str = "held_out.secret";
const BYTES: usize = 32;

/// Why nothing can be drawn.
#[derive(Debug, thiserror::Error)]
pub enum DrawsError {
    /// The file cannot be read or written.
    #[error("{act} the secret of held-out pins {path}: {source}")]
    Io {
        /// What was tried.
        act: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Others could read it, or it is something else.
    #[error(
        "use the secret of held-out pins {path}: {what}; it must be a plain file of {BYTES} bytes of this user, mode 0600"
    )]
    Exposed {
        /// Where.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// No randomness.
    #[error("draw a secret: the system gives no entropy")]
    Entropy,
}

/// What draws.
pub struct Draws {
    secret: Zeroizing<[u8; BYTES]>,
}

impl std::fmt::Debug for Draws {
    /// Nothing of it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Draws")
    }
}

impl Draws {
    /// Of a data directory; its secret is made where it has none.
    ///
    /// # Errors
    /// The disk, no entropy, or a file that others can read.
    pub fn of(data: &Path) -> Result<Self, DrawsError> {
        let path = data.join(FILE);
        match read(&path) {
            Err(DrawsError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                make(data, &path)?;
                read(&path)
            }
            other => other,
        }
    }

    /// From these bytes: for rooms without a data directory.
    #[must_use]
    pub fn from_secret(secret: [u8; BYTES]) -> Self {
        Self {
            secret: Zeroizing::new(secret),
        }
    }

    /// The pins of one draw.
    #[must_use]
    pub fn draw(&self, overlay: &Digest, number: u32, policy: &PinPolicy) -> Pins {
        held_out::draw(&self.secret, overlay, number, policy)
    }

    /// What the oracle's questions are drawn by in one attempt.
    #[must_use]
    pub fn questions(&self, overlay: &Digest, lane: Lane, number: u32, runs: &Runs) -> Questions {
        Questions(held_out::questions(
            &self.secret,
            overlay,
            lane,
            number,
            runs,
        ))
    }
}

fn io(act: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> DrawsError {
    let path = path.to_owned();
    move |source| DrawsError::Io { act, path, source }
}

/// Whole or not at all, and never over one that is there: of two processes at once, both use the first one's.
fn make(data: &Path, path: &Path) -> Result<(), DrawsError> {
    let mut name = [0_u8; 8];
    let mut secret = Zeroizing::new([0_u8; BYTES]);
    getrandom::fill(&mut name).map_err(|_| DrawsError::Entropy)?;
    getrandom::fill(secret.as_mut_slice()).map_err(|_| DrawsError::Entropy)?;
    let beside = data.join(format!(".{FILE}.{}", hex::encode(name)));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)
        .map_err(io("make", path))?;
    let written = file
        .write_all(secret.as_slice())
        .and_then(|()| file.sync_all())
        .and_then(|()| match fs::hard_link(&beside, path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        });
    let removed = fs::remove_file(&beside);
    written.and(removed).map_err(io("write", path))?;
    File::open(data)
        .and_then(|folder| folder.sync_all())
        .map_err(io("keep", path))
}

fn read(path: &Path) -> Result<Draws, DrawsError> {
    let nofollow = rustix::fs::OFlags::NOFOLLOW
        .union(rustix::fs::OFlags::CLOEXEC)
        .bits();
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(nofollow.cast_signed())
        .open(path)
        .map_err(io("open", path))?;
    let about = file.metadata().map_err(io("look at", path))?;
    let exposed = |what: String| DrawsError::Exposed {
        path: path.to_owned(),
        what,
    };
    if !about.is_file() || about.len() != BYTES as u64 {
        return Err(exposed(format!("it is no plain file of {BYTES} bytes")));
    }
    if about.mode() & 0o077 != 0 {
        return Err(exposed(format!("its mode is {:03o}", about.mode() & 0o777)));
    }
    if about.uid() != rustix::process::geteuid().as_raw() {
        return Err(exposed(format!("its owner is uid {}", about.uid())));
    }
    let mut secret = Zeroizing::new([0_u8; BYTES]);
    file.read_exact(secret.as_mut_slice())
        .map_err(io("read", path))?;
    Ok(Draws { secret })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use tribunal_core::policy::Policy;

    #[test]
    fn a_secret_is_made_once_and_nobody_else_may_read_it() {
        let data = tempfile::tempdir().unwrap();
        let pins = |draws: &Draws| draws.draw(&Digest::of(b"o"), 0, &Policy::default().pins);
        let first = Draws::of(data.path()).unwrap();
        let path = data.path().join(FILE);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(data.path()).unwrap().count(), 1);
        assert_eq!(pins(&Draws::of(data.path()).unwrap()), pins(&first));
        assert_ne!(pins(&Draws::from_secret([1; 32])), pins(&first));
        assert_eq!(format!("{first:?}"), "Draws");

        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(
            Draws::of(data.path()),
            Err(DrawsError::Exposed { .. })
        ));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, b"short").unwrap();
        assert!(matches!(
            Draws::of(data.path()),
            Err(DrawsError::Exposed { .. })
        ));
    }

    #[test]
    fn of_many_at_once_all_have_the_same() {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().to_owned();
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let path = path.clone();
                std::thread::spawn(move || *Draws::of(&path).unwrap().secret)
            })
            .collect();
        let secrets: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        assert!(secrets.iter().all(|secret| *secret == secrets[0]));
    }
}

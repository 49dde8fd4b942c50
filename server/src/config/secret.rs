//! Where a secret stands: a file, or a credential that the service manager hands over (`credential:NAME`, which is the file
//! NAME in `$CREDENTIALS_DIRECTORY`). Never reads one.

use std::fmt;
use std::path::{Path, PathBuf};

const CREDENTIAL: &str = "credential:";
const FOLDER: &str = "CREDENTIALS_DIRECTORY";

/// What a configuration says of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretFile {
    /// A file.
    Path(PathBuf),
    /// A credential of this name.
    Credential(CredentialName),
}

/// A name that leads nowhere but into the folder of credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialName(String);

/// Why a secret is nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// Not started with credentials.
    #[error("there is no $CREDENTIALS_DIRECTORY: only a service manager hands credentials over")]
    NoFolder,
    /// A name that is none.
    #[error("a credential's name is 1 to 128 of A-Z a-z 0-9 - _ . and does not begin with a dot")]
    Name,
}

impl SecretFile {
    /// A configuration's word; a relative path is relative to `folder`.
    ///
    /// # Errors
    /// `Name`.
    pub fn of(text: &str, folder: &Path) -> Result<Self, SecretError> {
        let Some(name) = text.strip_prefix(CREDENTIAL) else {
            return Ok(Self::Path(folder.join(text)));
        };
        let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        let is_name = (1..=128).contains(&name.len()) && name.bytes().all(fits);
        if is_name && !name.starts_with('.') {
            Ok(Self::Credential(CredentialName(name.to_owned())))
        } else {
            Err(SecretError::Name)
        }
    }

    /// The file to read now.
    ///
    /// # Errors
    /// `NoFolder`.
    pub fn locate(&self) -> Result<PathBuf, SecretError> {
        self.below(std::env::var_os(FOLDER).map(PathBuf::from))
    }

    fn below(&self, folder: Option<PathBuf>) -> Result<PathBuf, SecretError> {
        match self {
            Self::Path(path) => Ok(path.clone()),
            Self::Credential(CredentialName(name)) => folder
                .filter(|folder| folder.is_absolute())
                .map(|folder| folder.join(name))
                .ok_or(SecretError::NoFolder),
        }
    }
}

impl fmt::Display for SecretFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Credential(CredentialName(name)) => write!(f, "{CREDENTIAL}{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
    use super::*;

    #[test]
    fn a_credential_is_a_file_in_its_folder_and_nowhere_else() {
        let here = Path::new("/etc/tribunal");
        let folder = Some(PathBuf::from("/run/credentials/x.service"));
        let key = SecretFile::of("credential:signing-key", here).unwrap();
        assert_eq!(
            key.below(folder.clone()).unwrap(),
            Path::new("/run/credentials/x.service/signing-key")
        );
        for none in [None, Some(PathBuf::new()), Some(PathBuf::from("here"))] {
            assert_eq!(key.below(none), Err(SecretError::NoFolder));
        }
        assert_eq!(SecretFile::of(&key.to_string(), here).unwrap(), key);
        for bad in [
            "",
            "a/b",
            "..",
            ".hidden",
            "a b",
            "\u{e9}",
            &"n".repeat(129),
        ] {
            let text = format!("credential:{bad}");
            assert_eq!(SecretFile::of(&text, here), Err(SecretError::Name), "{bad}");
        }
        let file = SecretFile::of("keys/a.pem", here).unwrap();
        let path = Path::new("/etc/tribunal/keys/a.pem");
        assert_eq!(file.below(folder).unwrap(), path);
        assert_eq!(SecretFile::of(&file.to_string(), here).unwrap(), file);
    }
}

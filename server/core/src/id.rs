//! The names of things. Each is a private field with `FromStr` as the only way in and a `Display` that round-trips.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Why a text is not the id it claims to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} must be {rule}, got {got}")]
pub struct IdError {
    /// The kind of id, as the field calls it.
    pub what: &'static str,
    /// What would have been accepted.
    pub rule: &'static str,
    /// The offending text, escaped and capped.
    pub got: String,
}

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:literal, $valid:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The text of this id.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                let valid: fn(&str) -> bool = $valid;
                if valid(text) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(IdError { what: $what, rule: $rule, got: crate::text::shown(text, 80) })
                }
            }
        }
        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                text.parse()
            }
        }
        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    };
}

fn lower_hex(text: &str) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

fn object_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && lower_hex(text)
}

fn slug(text: &str) -> bool {
    (1..=63).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b))
        && text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && !text.contains("..")
        && !text.ends_with('.')
}

id_type!(
    /// A commit, by its full object id. Refs, tags and short ids are not commit ids.
    CommitId, "a commit id", "40 or 64 lower-case hex digits", object_id
);
id_type!(
    /// A tree, by its full object id.
    TreeId, "a tree id", "40 or 64 lower-case hex digits", object_id
);
id_type!(
    /// Any git object, by its full object id.
    ObjectId, "an object id", "40 or 64 lower-case hex digits", object_id
);
id_type!(
    /// `sha256:` and 64 hex digits.
    Digest, "a digest", "`sha256:` and 64 lower-case hex digits",
    |t| t.strip_prefix("sha256:").is_some_and(|h| h.len() == 64 && lower_hex(h))
);
id_type!(
    /// A repository as the operator registered it.
    RepoName, "a repository name",
    "1 to 63 of a-z 0-9 - _ . beginning with a letter or digit", slug
);
id_type!(
    /// One score: 32 hex digits, drawn by the server.
    ScoreId, "a score id", "32 lower-case hex digits", |t| t.len() == 32 && lower_hex(t)
);
id_type!(
    /// One access token, by the public part of its name.
    TokenId, "a token id", "16 lower-case hex digits", |t| t.len() == 16 && lower_hex(t)
);
id_type!(
    /// The caller's own name for a request; the same id never makes a second score.
    RequestId, "a request id", "1 to 64 of A-Z a-z 0-9 - _",
    |t| (1..=64).contains(&t.len()) && t.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
);
id_type!(
    /// A signing key: the OpenSSH fingerprint of its public half, `SHA256:` and unpadded base64.
    KeyId, "a key id", "an OpenSSH fingerprint, SHA256: and 43 characters",
    |t| t.strip_prefix("SHA256:").is_some_and(|b| b.len() == 43 && b.bytes().all(|c| c.is_ascii_alphanumeric() || b"+/".contains(&c)))
);
id_type!(
    /// A test case as the runner names it. Holds any character but NUL; never split it.
    NodeId, "a node id", "1 to 4096 bytes without NUL",
    |t| (1..=4096).contains(&t.len()) && !t.contains('\0')
);
id_type!(
    /// A path in a repository: UTF-8, relative, no empty, `.` or `..` part.
    RepoPath, "a repository path", "a relative UTF-8 path without empty, `.` or `..` parts",
    |t| !t.is_empty() && !t.contains('\0') && t.split('/').all(|part| !matches!(part, "" | "." | ".."))
);

impl NodeId {
    /// The part of the name that no parameter can choose: what stands before the first bracket.
    #[must_use]
    pub fn without_parameters(&self) -> Self {
        let function = self.0.split('[').next().unwrap_or_default();
        if function.is_empty() {
            Self("[…]".to_owned())
        } else {
            Self(function.to_owned())
        }
    }
}

impl RepoPath {
    /// A path that this crate itself spells; a test parses each of them.
    pub(crate) fn literal(text: &'static str) -> Self {
        Self(text.to_owned())
    }
}

impl Digest {
    /// SHA-256 of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(format!(
            "sha256:{}",
            hex::encode(sha2::Sha256::digest(bytes))
        ))
    }

    /// The 64 hex digits alone, as in-toto wants them.
    #[must_use]
    pub fn hex(&self) -> &str {
        self.0.strip_prefix("sha256:").unwrap_or(&self.0)
    }
}

/// The one integer that seeds every tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seed(pub u32);

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Unix time in whole seconds. Where it comes from is the caller's affair; nothing in this crate reads a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixTime(pub i64);

impl UnixTime {
    /// RFC 3339 in UTC, whole seconds.
    #[must_use]
    pub fn rfc3339(self) -> String {
        jiff::Timestamp::from_second(self.0)
            .map_or_else(|_| "out of range".to_owned(), |t| t.to_string())
    }
}

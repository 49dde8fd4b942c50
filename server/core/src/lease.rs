//! `ci/flake_leases.json`: who may be silent, why, and for how long. Strict: a file that does not parse is never "no leases".
//!
//! Turns bytes into leases, leases and cases into matches, and one lease with what was seen into findings. Knows no clock:
//! the gate's time is an argument. Fails with `LeaseFileError`, which names line and column.

use crate::id::UnixTime;
use crate::outcome::Signature;
use std::fmt;
use std::str::FromStr;

mod expiry;
mod matching;
mod parse;
mod standing;

pub use matching::{Candidate, Match, Names};
pub(crate) use standing::expired;
pub use standing::{Fault, Functions, ShortDigest, standing};

/// Why the lease file is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct LeaseFileError {
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in bytes.
    pub column: usize,
    /// What is wrong there, fit to be shown.
    pub message: String,
}

/// A parsed lease file. No file is an empty one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaseFile {
    leases: Vec<Lease>,
}

impl LeaseFile {
    /// Parse the file's bytes; `None` is a tree without one.
    ///
    /// # Errors
    /// The first mistake, with its position.
    pub fn parse(bytes: Option<&[u8]>) -> Result<Self, LeaseFileError> {
        match bytes {
            Some(bytes) => parse::parse(bytes).map(|leases| Self { leases }),
            None => Ok(Self::default()),
        }
    }

    /// Its leases, in the file's order.
    #[must_use]
    pub fn leases(&self) -> &[Lease] {
        &self.leases
    }
}

/// One lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Which case, as the file spells it.
    pub qualname: String,
    /// The test as it was when the lease was written.
    pub digest: LeaseDigest,
    /// The failure it covers; empty where it names none.
    pub signature: Signature,
    /// It holds only while the gate's time is before this.
    pub expires_at: UnixTime,
    /// Who answers for it.
    pub owner: String,
    /// Why.
    pub reason: String,
}

/// The digest a lease carries.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LeaseDigest {
    /// Code, constants, names, flags, decorators, defaults; bound to one interpreter.
    V2 {
        /// `cp313`.
        tag: String,
        /// 64 digits.
        hex: String,
    },
    /// 16 digits over `co_code` alone: blind to constants.
    Short(String),
}

impl fmt::Display for LeaseDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V2 { tag, hex } => write!(f, "v2:{tag}:{hex}"),
            Self::Short(hex) => f.write_str(hex),
        }
    }
}

impl FromStr for LeaseDigest {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const RULE: &str = "neither `v2:<python tag>:<64 hex digits>` nor 16 hex digits";
        let hex = |text: &str, length: usize| {
            text.len() == length
                && text
                    .bytes()
                    .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        };
        if hex(text, 16) {
            return Ok(Self::Short(text.to_owned()));
        }
        let (tag, digits) = text
            .strip_prefix("v2:")
            .and_then(|t| t.split_once(':'))
            .ok_or(RULE)?;
        let tag_fits = (1..=32).contains(&tag.len())
            && tag.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if tag_fits && hex(digits, 64) {
            Ok(Self::V2 {
                tag: tag.to_owned(),
                hex: digits.to_owned(),
            })
        } else {
            Err(RULE)
        }
    }
}

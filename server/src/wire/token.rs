//! Access tokens: `tbl_<id>_<secret>`, 16 and 64 hex digits. The id is public and finds the record; the secret is 256
//! random bits, shown once, kept as its SHA-256 alone, compared in constant time.

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tribunal_core::id::TokenId;
use zeroize::Zeroizing;

/// A token as its owner has it.
pub struct Token {
    id: TokenId,
    secret: Zeroizing<String>,
}

/// There is no entropy to draw a token from.
#[derive(Debug, thiserror::Error)]
#[error("draw a token from the system's entropy")]
pub struct NoEntropy;

impl Token {
    /// A new one.
    ///
    /// # Errors
    /// Where the system gives no entropy.
    pub fn mint() -> Result<Self, NoEntropy> {
        let mut id = [0; 8];
        let mut secret = Zeroizing::new([0; 32]);
        getrandom::fill(&mut id).map_err(|_| NoEntropy)?;
        getrandom::fill(&mut *secret).map_err(|_| NoEntropy)?;
        Ok(Self {
            id: hex::encode(id).parse().map_err(|_| NoEntropy)?,
            secret: Zeroizing::new(hex::encode(*secret)),
        })
    }

    /// What a caller sent, if it is a token at all.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix("tbl_")?.split_once('_')?;
        let hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        if secret.len() != 64 || !secret.bytes().all(hex) {
            return None;
        }
        Some(Self {
            id: id.parse().ok()?,
            secret: Zeroizing::new(secret.to_owned()),
        })
    }

    /// Its public id.
    #[must_use]
    pub const fn id(&self) -> &TokenId {
        &self.id
    }

    /// What is stored of its secret.
    #[must_use]
    pub fn secret_hash(&self) -> [u8; 32] {
        Sha256::digest(self.secret.as_bytes()).into()
    }

    /// Whether its secret is the one that was hashed.
    #[must_use]
    pub fn opens(&self, secret_hash: &[u8; 32]) -> Opens {
        if bool::from(self.secret_hash().ct_eq(secret_hash)) {
            Opens::Yes
        } else {
            Opens::No
        }
    }

    /// The whole token, to be shown once.
    #[must_use]
    pub fn reveal(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("tbl_{}_{}", self.id, *self.secret))
    }
}

/// Whether a token opens the door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opens {
    /// It does.
    Yes,
    /// It does not.
    No,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Token({})", self.id)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
    use super::*;

    #[test]
    fn a_token_opens_its_own_record_only() {
        let (one, two) = (Token::mint().unwrap(), Token::mint().unwrap());
        let parsed = Token::parse(&one.reveal()).unwrap();
        assert_eq!(parsed.id(), one.id());
        assert_eq!(parsed.opens(&one.secret_hash()), Opens::Yes);
        assert_eq!(parsed.opens(&two.secret_hash()), Opens::No);
        assert!(!format!("{one:?}").contains(one.secret.as_str()));
    }

    #[test]
    fn what_is_no_token_is_none() {
        let good = Token::mint().unwrap().reveal().to_string();
        for text in [
            "",
            "tbl_",
            "tbl__",
            &good[1..],
            &good[..good.len() - 1],
            &good.to_uppercase(),
            &format!("{good}0"),
            &format!(" {good}"),
        ] {
            assert!(Token::parse(text).is_none(), "{text}");
        }
    }
}

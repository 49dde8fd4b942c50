//! The token: read from where it is, shown to nobody.

use std::fmt;
use std::path::PathBuf;

/// An access token. Shows itself to nobody but the wire.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// The token as the wire needs it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Where a token comes from, with the name of that place.
pub(super) enum TokenSource {
    Text(&'static str, String),
    File(&'static str, PathBuf),
}

impl TokenSource {
    pub(super) fn read(self) -> Result<Token, String> {
        let (origin, text) = match self {
            Self::Text(origin, text) => (origin, text),
            Self::File(origin, path) => match std::fs::read_to_string(&path) {
                Ok(text) => (origin, text),
                Err(e) => return Err(format!("{origin}: {}: {e}", path.display())),
            },
        };
        let token = text.trim();
        // Whatever a header cannot carry is a mistake here, told without showing the secret.
        if token.is_empty() || !token.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(format!("{origin}: holds no token, or more than a token"));
        }
        Ok(Token(token.to_owned()))
    }
}

//! Cassettes: records of clock, entropy, listings and HTTP, and the ledger in which people answer for them.
//!
//! Turns the bytes of two trees into records in effect, findings, and the ledger's difference by pin name. Strict: what
//! does not parse is named with its key and position, never taken for "no cassette". Pure: the same code judges on the
//! server and in a checkout without one. Never runs anything, never prints a secret that it found.

mod acceptance;
mod change;
mod in_effect;
mod json;
mod ledger;
mod rules;
mod schema;
mod secrets;
mod shelf;

pub use acceptance::{NAMESPACE, Signers, Window};
pub use change::{Change, PinChange, changes};
pub use in_effect::InEffect;
pub use json::Mistake;
pub use ledger::{Entry, Ledger, Note, NoteChange};
pub use rules::{Hearing, ON_BASE, hear};
pub use schema::{Cassette, Exchange};
pub use secrets::{credential_in, is_credential, is_credential_header, redacted};
pub use shelf::{CassetteFacts, Kind, Leaf, Shelf};

pub(crate) use in_effect::{digest, in_effect};

#[cfg(test)]
mod tests;

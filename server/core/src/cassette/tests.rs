//! The table of the protocol, and every cheap way around it.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod keys;
mod parsing;
mod table;
mod tree;

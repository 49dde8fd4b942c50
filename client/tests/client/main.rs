//! The client as others run it: the binary, folders, a scripted server. `tests/` at the top has the real one.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod cassettes;
mod chores;
mod join;
mod score;
mod scripted;
mod signed;
mod tls;

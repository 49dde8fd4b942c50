//! The pure heart of Tribunal: facts go in, verdicts and the bytes to sign come out.
//!
//! Nothing here knows a clock, a file, a socket, a container or the environment; every time and every byte is an
//! argument. The rooms stand in the order a score walks through them, and each step consumes the value of the one
//! before, so that an overlay cannot be run before the patch is classified and nothing can be signed that was not judged.

pub mod cassette;
pub mod classify;
pub mod envelope;
pub mod git;
pub mod held_out;
pub mod id;
pub mod join;
pub mod judge;
pub mod junit;
pub mod keys;
pub mod lease;
pub mod manifest;
pub mod outcome;
pub mod plan;
pub mod policy;
pub mod reason;
pub mod report;
pub mod request;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod signed_sample;
pub mod sshsig;
pub mod statement;
pub mod text;
pub mod trace;
pub mod verify;

//! The command line of agents, CI and maintainers: a workspace's commit goes out, three signed verdicts come back.
//!
//! I/O and presentation only: what a verdict means, and whether three of them allow a merge, is `tribunal-core`'s
//! knowledge. Never trusts what the server says of itself where a key is given, never writes a token anywhere, never
//! touches the workspace beyond the folder it was told to write.

pub mod checkout;
pub mod cli;
pub mod commands;
pub mod config;
pub mod console;
pub mod exit;
pub mod failure;
pub mod gate;
pub mod init;
pub mod lease_file;
pub mod mcp;
pub mod outdir;
pub mod outside;
pub mod policy_file;
pub mod progress;
pub mod remote;
pub mod report;
pub mod scoring;
pub mod workspace;

//! Tools of the black-box tests: a real server process, the real client, real repositories, the cases of `cases/`.
//!
//! A test asks for a [`Server`] (its own, or the one that its test binary shares), registers a repository of its own,
//! and runs the client in a workspace. Nothing here looks inside a process; everything ends when its owner does.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tools of tests fail loudly, where they stand"
)]

pub mod binaries;
pub mod case;
pub mod client;
pub mod expect;
pub mod pack;
pub mod repo;
pub mod sandbox;
pub mod scored;
pub mod server;
pub mod world;

pub use case::{Case, Materialized};
pub use client::{Client, Ran};
pub use repo::Repo;
pub use scored::Scored;
pub use server::{Registered, Role, Server};
pub use world::World;

/// Ask again and again until it holds; a panic after a minute.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !holds() {
        assert!(
            std::time::Instant::now() < deadline,
            "never happened: {what}"
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

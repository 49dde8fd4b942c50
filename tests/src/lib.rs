//! Tools of the black-box tests: a real server process, the real client, real repositories, the cases of `cases/`.
//!
//! A test asks for a [`Server`] (its own, or the one that its test binary shares), registers a repository of its own,
//! and runs the client in a workspace. Nothing here looks inside a process; everything ends when its owner does.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tools of tests fail loudly, where they stand"
)]

pub mod agent;
pub mod binaries;
pub mod browse;
pub mod cable;
pub mod case;
pub mod chromium;
pub mod client;
pub mod expect;
pub mod hostile;
pub mod leftovers;
pub mod pack;
pub mod plain;
pub mod port;
pub mod receiver;
pub mod repo;
pub mod sandbox;
pub mod schema;
pub mod scored;
pub mod server;
pub mod stage;
pub mod wire;
pub mod world;

pub use agent::Agent;
pub use browse::Browser;
pub use cable::Cable;
pub use case::{Case, Materialized};
pub use chromium::Chromium;
pub use client::{Client, Ran};
pub use repo::Repo;
pub use scored::Scored;
pub use server::{Registered, Role, Server};
pub use stage::Stage;
pub use wire::Wire;
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

/// Say something that a test which passes must not keep to itself: past the harness, which swallows what is printed.
pub fn loudly(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "\n*** {text}\n");
}

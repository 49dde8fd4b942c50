//! What every kind of sealed room must do: one suite, run over each.

pub mod docker;
pub mod fake;
mod order;
pub mod proxy;
pub mod suite;

pub use order::{Order, source, tree};

use std::sync::Arc;
use tribunal_core::outcome::{AttemptFacts, Outcome, fold};
use tribunal_server::sandbox::Sandbox;

/// A sandbox under test, and the view from outside that only its kind has.
#[async_trait::async_trait]
pub trait Subject: Send + Sync {
    /// The sandbox.
    fn sandbox(&self) -> Arc<dyn Sandbox>;
    /// An image it can make rooms of.
    fn image(&self) -> String;
    /// How many rooms exist, running or not.
    async fn rooms(&self) -> anyhow::Result<usize>;
    /// How many trees exist, complete or not.
    async fn trees(&self) -> anyhow::Result<usize>;
    /// End the first process of every room, as an operator's `kill -9` would.
    async fn kill_rooms(&self) -> anyhow::Result<()>;
    /// Shut down.
    async fn drain(&self);
}

/// What an attempt says of its cases: `test_x[y]: word`, in the order they were reported, file names left out.
#[must_use]
pub fn told(attempt: &AttemptFacts) -> Vec<String> {
    attempt
        .cases
        .iter()
        .map(|case| {
            let node = case.node.as_str();
            let name = node.split_once("::").map_or(node, |(_, name)| name);
            let phases: Vec<_> = case.phases.iter().collect();
            let outcome = fold(&phases, attempt.end.end);
            let detail = match &outcome {
                Outcome::Passed | Outcome::Xpassed | Outcome::Missing => String::new(),
                Outcome::Skipped(signature) | Outcome::Xfailed(signature) => {
                    format!(" {}", signature.as_str())
                }
                Outcome::Red(reason, signatures) => {
                    let seen: Vec<&str> = signatures.iter().map(|s| s.as_str()).collect();
                    format!(" {reason} {}", seen.join(", "))
                }
            };
            format!("{name}: {}{}", outcome.word(), detail.trim_end())
        })
        .collect()
}

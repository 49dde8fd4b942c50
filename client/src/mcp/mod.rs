//! `tribunal mcp`: a coding agent's tool calls become calls of this crate's other rooms, on stdin and stdout.
//!
//! Never does what the command line does not: the same score, report and join, in the fewest words that suffice. Nothing
//! but the protocol goes to stdout. What cannot be done is the call's own answer, with a reason code; a process that ends
//! would tell an agent nothing. Never ends a score that a caller stopped waiting for: its name picks it up.

mod answers;
mod arguments;
mod budget;
mod errors;
mod explain;
mod leases;
mod parts;
mod reports;
mod scores;
mod server;
mod telling;
mod tools;
mod verify;

use crate::config::{Environment, Flags, Needs, Settings};
use crate::console::{Console, Format};
use crate::exit::Exit;
use crate::failure::Failure;
use rmcp::ServiceExt as _;
use rmcp::transport::io::stdio_pipes;
use server::Tribunal;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How long calls have to end once nobody listens.
const GRACE: Duration = Duration::from_secs(2);

/// Where the settings come from: resolved anew for every call, so that a mistake is that call's answer and a token that
/// was renewed counts.
#[derive(Debug, Clone)]
struct Sources {
    flags: Flags,
    env: Environment,
}

impl Sources {
    fn settings(&self, needs: Needs) -> Result<Settings, Failure> {
        Ok(Settings::resolve(&self.flags, &self.env, needs)?)
    }
}

/// Serve until stdin ends or somebody interrupts.
///
/// # Errors
/// There is no runtime, or whoever is at the other end does not speak the protocol.
pub fn serve(flags: &Flags, env: &Environment) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Failure::usage("start", e, "free some file descriptors"))?;
    let sources = Sources {
        flags: flags.clone(),
        env: env.clone(),
    };
    let served = runtime.block_on(session(sources));
    // A read of stdin that nobody ends would hold a runtime that is dropped.
    runtime.shutdown_timeout(GRACE);
    served
}

async fn session(sources: Sources) -> Result<Exit, Failure> {
    let told = |e: &dyn std::fmt::Display| {
        let why = tribunal_core::text::shown(&e.to_string(), 300);
        Failure::usage(
            "speak MCP",
            why,
            "this command is started by an agent's client",
        )
    };
    let mut terminate = signal(SignalKind::terminate()).map_err(|e| told(&e))?;
    let running = tokio::select! {
        running = Tribunal::new(sources).serve(stdio_pipes()) => running.map_err(|e| told(&e))?,
        _ = tokio::signal::ctrl_c() => return Ok(Exit::MergeOk),
        _ = terminate.recv() => return Ok(Exit::MergeOk),
    };
    let stop = running.cancellation_token();
    let mut ended = std::pin::pin!(running.waiting());
    tokio::select! {
        _ = &mut ended => return Ok(Exit::MergeOk),
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    stop.cancel();
    // What does not end in time ends with the runtime.
    let _ = tokio::time::timeout(GRACE, ended).await;
    Ok(Exit::MergeOk)
}

/// Notes and warnings of the rooms below go to stderr, results nowhere: they are the call's answer.
fn console() -> Console {
    Console::over(
        Format::Text,
        Box::new(std::io::sink()),
        Box::new(std::io::stderr()),
    )
}

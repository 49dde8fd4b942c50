//! The commands: each turns its arguments into calls of the other rooms and an exit code.

mod cassette;
mod columns;
mod conclude;
mod explain;
mod fetch;
mod flaky;
mod init;
mod join;
mod lease;
mod list;
mod manifest;
mod modes;
mod score;
mod watching;

use crate::cli::{Cassette, Cli, Command, Lease};
use crate::config::{Environment, Needs, Settings};
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::mcp;

/// Do what the command line says, and tell what became of it.
#[must_use]
pub fn run(cli: &Cli, env: &Environment, console: &mut Console) -> Exit {
    match dispatch(cli, env, console) {
        Ok(exit) => exit,
        Err(failure) => {
            console.fail(&failure);
            failure.exit
        }
    }
}

fn dispatch(cli: &Cli, env: &Environment, console: &mut Console) -> Result<Exit, Failure> {
    let settings = Settings::resolve(&cli.flags, env, needs(&cli.command))?;
    match &cli.command {
        Command::Mcp => mcp::serve(&cli.flags, env),
        Command::Score(args) => online(score::run(args, &settings, console)),
        Command::Fetch(args) => online(fetch::run(args, &settings, console)),
        Command::Join(args) => join::run(args, &settings, console),
        Command::Verify(args) => join::run_verify(args, &settings, console),
        Command::Explain(args) => online(explain::run(args, &settings, console)),
        Command::Watch(args) => online(list::watch(args, &settings, console)),
        Command::List(args) => online(list::run(args, &settings, console)),
        Command::Cancel(args) => online(list::cancel(args, &settings, console)),
        Command::Init(args) => init::run(args, console),
        Command::Manifest(args) => manifest::run(args, console),
        Command::Modes(args) => online(modes::run(args, &settings, console)),
        Command::Lease {
            command: Lease::New(args),
        } => online(lease::run(args, &settings, console)),
        Command::Cassette { command } => match command {
            Cassette::Check(args) => cassette::check(args, console),
            Cassette::Diff(args) => cassette::diff(args, console),
            Cassette::Accept(args) => cassette::accept(args, cli.flags.key.as_deref(), console),
            Cassette::Record(args) => online(cassette::record(args, &settings, console)),
        },
    }
}

fn needs(command: &Command) -> Needs {
    match command {
        // An agent's client shows no exit codes: mistakes are told by each call.
        Command::Mcp => Needs::Nothing,
        Command::Join(_)
        | Command::Verify(_)
        | Command::Init(_)
        | Command::Manifest(_)
        | Command::Cassette {
            command: Cassette::Check(_) | Cassette::Diff(_) | Cassette::Accept(_),
        } => Needs::Offline,
        Command::Explain(args) if args.is_folder() => Needs::Offline,
        Command::Explain(_)
        | Command::Score(_)
        | Command::Fetch(_)
        | Command::Watch(_)
        | Command::List(_)
        | Command::Cancel(_)
        | Command::Modes(_)
        | Command::Cassette {
            command: Cassette::Record(_),
        }
        | Command::Lease { .. } => Needs::Server,
    }
}

/// Run to the end on a runtime of its own; one thread is enough to wait with.
fn online<F: Future<Output = Result<Exit, Failure>>>(command: F) -> Result<Exit, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::usage("start", e, "free some file descriptors"))?
        .block_on(command)
}

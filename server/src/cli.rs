//! The grammar of `tribunal-server`, and what `--help` says.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tribunal_core::id::{KeyId, RepoName, TokenId, UnixTime};
use tribunal_server::admin::Exit;
use tribunal_server::config::duration;

/// Scores an agent's commits with tests that the agent cannot touch, and signs three verdicts.
#[derive(Parser)]
#[command(name = "tribunal-server", version, after_help = exit_codes())]
pub(crate) struct Cli {
    /// The data directory that `init` made.
    #[arg(long, env = "TRIBUNAL_DATA", global = true, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// A configuration file; `check-config` shows the defaults.
    #[arg(long, env = "TRIBUNAL_CONFIG", global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// One JSON document on stdout, and nothing else.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

fn exit_codes() -> String {
    let lines = Exit::ALL.map(|exit| format!("  {:>2}  {}\n", exit.code(), exit.meaning()));
    format!("Exit codes:\n{}", lines.concat())
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make a data directory: signing key, database, and an operator's token on the last line of stdout, once
    Init,
    /// Run; prints `listening on ADDR` on stdout when it is ready to score
    Serve(Serve),
    /// Repositories whose commits are scored
    #[command(subcommand)]
    Repo(Repo),
    /// Access tokens; only their hashes are stored
    #[command(subcommand)]
    Token(Token),
    /// Runner images
    #[command(subcommand)]
    Image(Image),
    /// Signing keys
    #[command(subcommand)]
    Key(Key),
    /// Forget ended scores, evidence, uploads and, while no server runs, sealed trees that are old
    Gc {
        /// How old: `12h`, `30d`.
        #[arg(long, default_value = "30d", value_parser = age, value_name = "AGE")]
        older_than: Duration,
    },
    /// Write store and keys, as of one moment, into one tar file; keep it as you keep a private key
    Backup {
        /// A file that does not exist yet.
        file: PathBuf,
    },
    /// Run a stored score again with the same pins, held-out ones too; nothing of it is evidence
    Replay {
        /// Its id, or `repositories/R/scores/ID`.
        score: String,
    },
    /// Show the effective configuration, or every mistake in it
    CheckConfig(Overrides),
    /// Look at everything that scoring needs: each line ok, or what to do
    Doctor,
    /// Try known ways of gaming a grader on this machine: what a plain gate says, what this server says; exit 1 if one
    /// is bypassed. `--data` lends its images
    Selftest(Selftest),
}

#[derive(Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) overrides: Overrides,
}

#[derive(Args, Clone)]
pub(crate) struct Overrides {
    /// Where to listen; port 0 picks one. Beyond loopback only with TLS.
    #[arg(long, env = "TRIBUNAL_LISTEN", value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// Scores that run at the same time; the default is one a core.
    #[arg(long, env = "TRIBUNAL_WORKERS", value_name = "N")]
    pub(crate) workers: Option<usize>,
    /// What is logged on stderr: `info`, `debug`, `info,tribunal_server=trace`.
    #[arg(long, env = "TRIBUNAL_LOG", value_name = "FILTER")]
    pub(crate) log: Option<String>,
}

#[derive(Args)]
pub(crate) struct Selftest {
    /// Only cases whose names fit: `39*`, `*bomb`. May be given more than once.
    #[arg(long, value_name = "GLOB")]
    pub(crate) only: Vec<String>,
    /// For one case, at each of both judges: `90s`, `5m`.
    #[arg(long, default_value = "5m", value_parser = age, value_name = "DURATION")]
    pub(crate) deadline: Duration,
}

#[derive(Subcommand)]
pub(crate) enum Repo {
    /// Register one and fetch its protected branch; says what of its base is not supported, which sealed files need
    /// `shared`, and whether its oracle is alive
    Add {
        /// Its name: a-z 0-9 - _ .
        name: RepoName,
        /// Where to fetch from.
        #[arg(long, value_name = "URL_OR_PATH")]
        remote: String,
        /// The branch that supplies the oracle.
        #[arg(long, value_name = "BRANCH")]
        protect: String,
        /// Do not run base now: its oracle is looked at when it is first scored
        #[arg(long)]
        quick: bool,
    },
    /// All of them
    List,
    /// Fetch now; says what `add` says
    Sync {
        /// Its name.
        name: RepoName,
        /// Do not run base now: tell what is known
        #[arg(long)]
        quick: bool,
    },
    /// Forget one, its mirror and what was uploaded for it; scores stay
    Remove {
        /// Its name.
        name: RepoName,
    },
}

#[derive(Subcommand)]
pub(crate) enum Token {
    /// A new one, alone on the last line of stdout, once
    New {
        /// What it may do.
        #[arg(long)]
        role: RoleName,
        /// The only repository it reaches; without it, all.
        #[arg(long, value_name = "NAME")]
        repo: Option<RepoName>,
        /// When it ends: `12h`, `30d`; without it, never.
        #[arg(long, value_parser = age, value_name = "AGE")]
        expires: Option<Duration>,
    },
    /// All of them, without their secrets
    List,
    /// From now on it opens nothing
    Revoke {
        /// Its id, as `token list` shows it.
        id: TokenId,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum RoleName {
    /// Untrusted: uploads and scores, sees its own.
    Agent,
    /// Reads the repository's verdicts, may ask for a score.
    Ci,
    /// Owns the oracle: human change sets, fresh attempts, leases.
    Maintainer,
    /// Runs the server.
    Operator,
}

#[derive(Subcommand)]
pub(crate) enum Image {
    /// Build and register a runner image
    Build {
        /// The interpreter.
        #[arg(long, default_value = tribunal_server::image::PYTHON)]
        python: String,
        /// A project's own dependencies, with hashes, as pip writes them.
        #[arg(long, value_name = "FILE")]
        requirements: Option<PathBuf>,
        /// The Debian mirror to take the base from, instead of the usual one.
        #[arg(long, env = "TRIBUNAL_DEBIAN_MIRROR", value_name = "URL")]
        mirror: Option<String>,
        /// Make the Debian base anew, with the packages of today.
        #[arg(long)]
        renew: bool,
    },
    /// All that are registered
    List,
    /// Write a built image into one file, for a server that cannot build
    Export {
        /// The file; it is not there before it is whole.
        file: PathBuf,
        /// Which image, as `list` shows it.
        #[arg(long, default_value = tribunal_server::image::DEFAULT_TAG)]
        tag: String,
    },
    /// Give the engine an image that `export` wrote, and register it
    Import {
        /// The file; `-` is stdin.
        file: PathBuf,
    },
}

#[derive(Subcommand)]
pub(crate) enum Key {
    /// The public half, as PEM and as `allowed_signers` lines
    Show {
        /// Only one of both.
        #[arg(long)]
        format: Option<KeyForm>,
    },
    /// A new key signs from now on; old ones stay known with their dates
    Rotate,
    /// Nothing that a key signed since then is worth anything
    Revoke {
        /// Its fingerprint, `SHA256:…`.
        id: KeyId,
        /// Since when, RFC 3339.
        #[arg(long, value_parser = time, value_name = "TIME")]
        since: UnixTime,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum KeyForm {
    /// SPKI PEM of the key that signs now.
    Pem,
    /// An OpenSSH `allowed_signers` file of all keys.
    AllowedSigners,
}

fn age(text: &str) -> Result<Duration, String> {
    duration(text).ok_or_else(|| "give an age like 90s, 12h or 30d".to_owned())
}

fn time(text: &str) -> Result<UnixTime, String> {
    text.parse::<jiff::Timestamp>()
        .map(|t| UnixTime(t.as_second()))
        .map_err(|_| "give a time like 2026-09-12T10:00:00Z".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_grammar_holds_and_help_names_every_exit_code() {
        let mut command = Cli::command();
        command.clone().debug_assert();
        let help = command.render_long_help().to_string();
        for exit in Exit::ALL {
            assert!(help.contains(exit.meaning()), "{exit:?}");
        }
    }
}

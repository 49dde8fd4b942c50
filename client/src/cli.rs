//! The command line's grammar. Says what there is and nothing of what it does; its own errors are usage errors.

use crate::config::Flags;
use crate::exit::Exit;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use tribunal_core::id::CommitId;

/// Asks a tribunal server for three signed verdicts on a commit, and checks them.
#[derive(Debug, Parser)]
#[command(name = "tribunal", version, disable_help_subcommand = true)]
pub struct Cli {
    /// Where the server is, who asks, what is trusted.
    #[command(flatten)]
    pub flags: Flags,
    /// Print JSON on stdout and nothing else: one document, or one event a line where it streams
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Score a commit of this workspace: send what the server lacks, follow the run, write the verdict files
    Score(Score),
    /// For CI: fetch the verdicts on a commit, wait for them, or ask for them
    Fetch(Fetch),
    /// Verify the three verdicts as one set for their subject, and say whether they allow the merge; offline
    Join(Join),
    /// The same with every check spelled out, and the plain tools' lines that repeat it; offline
    Verify(Join),
    /// Each reason of a score: the case, what was seen in which attempt, what is owed
    Explain(Explain),
    /// For coding agents: an MCP server on stdin and stdout, until stdin ends
    Mcp,
    /// Follow a score to its end
    Watch(Named),
    /// The scores of a repository, newest first; with --flaky, the cases that they found mixed
    List(List),
    /// End a queued or running score
    Cancel(Named),
    /// Lay folders, manifest, policy and a CI file into this repository; never overwrites
    Init(Init),
    /// Compare the manifest with the sealed test files, or write it
    Manifest(Manifest),
    /// Which sealed files need the product in their own process; with --write, list them in the policy
    Modes(Modes),
    /// Leases for sealed cases that may fail or be skipped for a while
    Lease {
        /// What to do with them.
        #[command(subcommand)]
        command: Lease,
    },
    /// Cassettes: what is recorded for single tests, and who answers for it
    Cassette {
        /// What to do with them.
        #[command(subcommand)]
        command: Cassette,
    },
}

/// `score`.
#[derive(Debug, Args)]
pub struct Score {
    /// The commit that supplies the oracle, full id [default: the protected tip]
    #[arg(long, value_name = "SHA")]
    pub base: Option<CommitId>,
    /// The commit to score, any revision of this workspace
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    pub head: String,
    /// Where the verdict files go
    #[arg(long, value_name = "DIR", default_value = "ci_out")]
    pub out: PathBuf,
    /// Run new attempts even where stored ones of the same content exist (maintainers and operators)
    #[arg(long)]
    pub fresh: bool,
    /// Run one more lane, for advice alone
    #[arg(long, value_enum)]
    pub lane: Option<Lane>,
    /// Score a temporary commit of the uncommitted work on top of HEAD
    #[arg(long, conflicts_with = "head")]
    pub worktree: bool,
    /// Go on with each new commit of HEAD until interrupted; of commits that come meanwhile only the latest is scored
    #[arg(long, conflicts_with_all = ["head", "worktree"])]
    pub watch: bool,
    /// Whose change set the join expects
    #[arg(long, value_enum, default_value_t = ChangeSet::Agent)]
    pub change_set: ChangeSet,
    /// At most this many characters of what to fix
    #[arg(long, value_name = "N", default_value_t = 4000)]
    pub max_chars: usize,
}

/// Lanes that are run on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Lane {
    /// Head's tests under the policy's `proposed` paths: told in the report, of no weight in a verdict
    Proposed,
}

/// `fetch`.
#[derive(Debug, Args)]
pub struct Fetch {
    /// The commit whose verdicts are wanted, full id
    #[arg(long, value_name = "SHA")]
    pub head: CommitId,
    /// The commit that supplied the oracle, full id [default: the protected tip as it is now]
    #[arg(long, value_name = "SHA")]
    pub base: Option<CommitId>,
    /// Where the verdict files go
    #[arg(long, value_name = "DIR", default_value = "ci_out")]
    pub out: PathBuf,
    /// Wait this long for a completed score, as in 90s, 10m, 1h
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub wait: Option<Duration>,
    /// Ask for a score where there is none
    #[arg(long)]
    pub or_score: bool,
    /// Whose change set the join expects
    #[arg(long, value_enum, default_value_t = ChangeSet::Agent)]
    pub change_set: ChangeSet,
    /// At most this many characters of what to fix
    #[arg(long, value_name = "N", default_value_t = 4000)]
    pub max_chars: usize,
}

/// `join` and `verify`.
#[derive(Debug, Args)]
pub struct Join {
    /// The folder with the verdict files
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// The commit that was to be scored, full id [default: HEAD of this workspace]
    #[arg(long, value_name = "SHA")]
    pub head: Option<CommitId>,
    /// The commit that was to supply the oracle, full id [default: the tip that the verdicts name]
    #[arg(long, value_name = "SHA")]
    pub base: Option<CommitId>,
    /// Whose change set is expected
    #[arg(long, value_enum, default_value_t = ChangeSet::Agent)]
    pub change_set: ChangeSet,
    /// Append what came of it to this file, as Markdown for the page of a CI job
    #[arg(long, value_name = "FILE")]
    pub summary: Option<PathBuf>,
}

/// Whose change set a join expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ChangeSet {
    /// src, judged by base's oracle.
    Agent,
    /// Oracle only, by a maintainer's token.
    Human,
}

/// `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// A score's name or id, or a folder with its files
    #[arg(value_name = "NAME|DIR")]
    pub what: String,
    /// Only this case, as the report names it
    #[arg(long, value_name = "NODEID")]
    pub case: Option<String>,
    /// At most this many characters: the text comes in pages
    #[arg(long, value_name = "N")]
    pub max_chars: Option<usize>,
    /// Which page
    #[arg(long, value_name = "N", default_value_t = 1, requires = "max_chars")]
    pub page: usize,
}

impl Explain {
    /// Whether it names a folder, which is asked before any server is.
    #[must_use]
    pub fn is_folder(&self) -> bool {
        std::path::Path::new(&self.what).is_dir()
    }
}

/// `watch` and `cancel`.
#[derive(Debug, Args)]
pub struct Named {
    /// The score's name, or its id with --repo
    #[arg(value_name = "NAME")]
    pub name: String,
}

/// `list`.
#[derive(Debug, Args)]
pub struct List {
    /// Only scores of this commit
    #[arg(long, value_name = "SHA")]
    pub head: Option<CommitId>,
    /// Only scores against this base
    #[arg(long, value_name = "SHA")]
    pub base: Option<CommitId>,
    /// Only scores in this state
    #[arg(long, value_enum)]
    pub state: Option<State>,
    /// Instead of scores, the cases that they found mixed, by case digest: when, how often, and the source that was named
    #[arg(long, conflicts_with_all = ["head", "base", "state"])]
    pub flaky: bool,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: usize,
}

/// Where a score is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum State {
    /// Waiting.
    Queued,
    /// At work.
    Running,
    /// Judged and signed.
    Completed,
    /// Ended without a verdict.
    Aborted,
}

/// `init`.
#[derive(Debug, Args)]
pub struct Init {
    /// A root of product code; may be repeated [default: src/, or what the repository has]
    #[arg(long, value_name = "PATH")]
    pub src: Vec<String>,
    /// Which CI files to lay
    #[arg(long, value_enum, default_value_t = Ci::Auto)]
    pub ci: Ci,
    /// Tell coding agents how to work here: a part of AGENTS.md between marks, renewed when it is run again
    #[arg(long)]
    pub agents: bool,
    /// Lay a SKILL.md for them into this folder of skills [default: .agents/skills]
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".agents/skills")]
    pub skill: Option<String>,
}

/// Which CI a repository uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Ci {
    /// What its remotes and files look like; GitHub where they say nothing.
    Auto,
    /// GitHub Actions.
    Github,
    /// GitLab CI.
    Gitlab,
    /// Both.
    Both,
    /// Neither.
    None,
}

/// `manifest`.
#[derive(Debug, Args)]
pub struct Manifest {
    /// Write it instead of only comparing
    #[arg(long)]
    pub write: bool,
}

/// `modes`.
#[derive(Debug, Args)]
pub struct Modes {
    /// Write the policy's list of shared files
    #[arg(long)]
    pub write: bool,
    /// The commit whose oracle is looked at, full id [default: the protected tip]
    #[arg(long, value_name = "SHA")]
    pub commit: Option<CommitId>,
}

/// `lease …`.
#[derive(Debug, Subcommand)]
pub enum Lease {
    /// Write a lease for a sealed case as it is on the protected tip, with the digest the server takes of it
    New(LeaseNew),
}

/// `lease new`.
#[derive(Debug, Args)]
pub struct LeaseNew {
    /// The case, as the report names it: tests/sealed/test_a.py::test_b
    #[arg(value_name = "NODEID")]
    pub node: String,
    /// Who answers for it
    #[arg(long, value_name = "MAIL")]
    pub owner: String,
    /// When it ends: RFC 3339 with an offset, unix seconds, or a time from now as in 14d
    #[arg(long, value_name = "WHEN")]
    pub expires: String,
    /// Why the case may be silent
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// The failure that it covers, as in "AssertionError: first line of the message" [default: how the case fails now]
    #[arg(long, value_name = "TEXT")]
    pub signature: Option<String>,
    /// The commit whose case is leased, full id [default: the protected tip]
    #[arg(long, value_name = "SHA")]
    pub commit: Option<CommitId>,
    /// Print the lease file instead of writing it
    #[arg(long)]
    pub dry_run: bool,
}

/// `cassette …`.
#[derive(Debug, Subcommand)]
pub enum Cassette {
    /// Judge the cassettes and the ledger of this checkout as the server would; offline
    Check(CassetteCheck),
    /// What this checkout does to them against base, by pin name, and what is wrong with it; offline
    Diff(CassetteCheck),
    /// Accept a cassette: sign its ledger entry with an SSH key; offline. --key names the key, or its public half where an
    /// agent holds it [default: git's user.signingkey]
    Accept(CassetteAccept),
    /// Record what one case reads: the server runs it, this machine performs its requests to the hosts named with --host;
    /// writes the cassette, its bodies and a ledger entry that nobody has accepted
    Record(CassetteRecord),
}

/// `cassette record`.
#[derive(Debug, Args)]
pub struct CassetteRecord {
    /// The case, as the report names it: tests/test_a.py::test_b
    #[arg(value_name = "NODEID")]
    pub node: String,
    /// The commit whose tests and src are run, any revision of this workspace
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    pub commit: String,
    /// A host that this machine may ask on the case's behalf, with its port where that is not the scheme's own
    #[arg(long, value_name = "HOST")]
    pub host: Vec<String>,
    /// Where requests to a host go instead of where its name leads
    #[arg(long, value_name = "HOST=ADDRESS:PORT", value_parser = place)]
    pub connect: Vec<(String, String)>,
    /// More authorities that servers may have their certificates from, PEM
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// A directory that the room lacks, to be listed as on this machine, or as PLACE is
    #[arg(long, value_name = "DIR[=PLACE]")]
    pub fs: Vec<String>,
    /// Pin this too: a header of answers, `query` where it differs each time, `request_sha256` for bodies of requests
    #[arg(long, value_name = "NAME")]
    pub pin: Vec<String>,
    /// Why the pins are what they are, for the notes of the ledger
    #[arg(long, value_name = "TEXT")]
    pub why: Option<String>,
    /// Print the cassette instead of writing it
    #[arg(long)]
    pub dry_run: bool,
}

fn place(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((host, place)) if !host.is_empty() && place.contains(':') => {
            Ok((host.to_owned(), place.to_owned()))
        }
        Some(_) | None => Err("write it as api.example.org=127.0.0.1:8443".to_owned()),
    }
}

/// `cassette check` and `cassette diff`.
#[derive(Debug, Args)]
pub struct CassetteCheck {
    /// A folder of the checkout
    #[arg(value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// What to compare with [default: the remote's main branch, or the local one; the checkout itself outside of git]
    #[arg(long, value_name = "REV")]
    pub base: Option<String>,
}

/// `cassette accept`.
#[derive(Debug, Args)]
pub struct CassetteAccept {
    /// The cassettes' files
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// The principal of ci/allowed_signers that accepts [default: git's user.email]
    #[arg(long = "as", value_name = "PRINCIPAL")]
    pub principal: Option<String>,
    /// Bring the entry up to date first: hash, pins, and a note with this text for every pin that changed
    #[arg(long, value_name = "TEXT")]
    pub why: Option<String>,
    /// What the pins are compared with, for the notes [default: as in `cassette check`]
    #[arg(long, value_name = "REV")]
    pub base: Option<String>,
}

/// What parsing the arguments came to.
pub enum Parsed {
    /// A command.
    Run(Box<Cli>),
    /// Help or version, or a usage error: the text, and how the process ends.
    Told(clap::Error, Exit),
}

/// Parse these arguments, the program's name first.
#[must_use]
pub fn parse(args: impl IntoIterator<Item = std::ffi::OsString>) -> Parsed {
    let parsed = grammar()
        .try_get_matches_from(args)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    match parsed {
        Ok(cli) => Parsed::Run(Box::new(cli)),
        Err(error) => {
            let exit = if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::MergeOk
            };
            Parsed::Told(error, exit)
        }
    }
}

/// The grammar, with the exit codes under every help text.
#[must_use]
pub fn grammar() -> clap::Command {
    fn with_codes(command: clap::Command) -> clap::Command {
        command.after_help(Exit::help()).mut_subcommands(with_codes)
    }
    with_codes(Cli::command())
}

/// `90s`, `10m`, `2h`, `30d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let rule = || "a number with s, m, h or d behind it, as in 10m".to_owned();
    let unit = text.chars().next_back().ok_or_else(rule)?;
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(rule()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| rule())?;
    number
        .checked_mul(seconds)
        .map(Duration::from_secs)
        .ok_or_else(rule)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

    use super::*;

    fn parsed(line: &str) -> Parsed {
        parse(line.split_whitespace().map(Into::into))
    }

    #[test]
    fn the_grammar_holds() {
        grammar().debug_assert();
    }

    #[test]
    fn every_help_names_every_exit_code() {
        fn check(mut command: clap::Command) {
            let help = command.render_long_help().to_string();
            for exit in Exit::ALL {
                assert!(
                    help.contains(exit.meaning()),
                    "{}: {exit:?}",
                    command.get_name()
                );
            }
            for sub in command.get_subcommands() {
                check(sub.clone());
            }
        }
        check(grammar());
    }

    #[test]
    fn mistakes_are_usage_and_help_is_not() {
        for (line, want) in [
            ("tribunal", Exit::Usage),
            ("tribunal nope", Exit::Usage),
            ("tribunal score --nope", Exit::Usage),
            ("tribunal score --token x", Exit::Usage),
            ("tribunal fetch", Exit::Usage),
            ("tribunal fetch --head abc123", Exit::Usage),
            ("tribunal join", Exit::Usage),
            ("tribunal score --worktree --head main", Exit::Usage),
            ("tribunal score --watch --head main", Exit::Usage),
            ("tribunal score --watch --worktree", Exit::Usage),
            ("tribunal explain x --page 2", Exit::Usage),
            ("tribunal list --flaky --state completed", Exit::Usage),
            ("tribunal --help", Exit::MergeOk),
            ("tribunal score --help", Exit::MergeOk),
            ("tribunal --version", Exit::MergeOk),
        ] {
            match parsed(line) {
                Parsed::Told(_, exit) => assert_eq!(exit, want, "{line}"),
                Parsed::Run(_) => panic!("{line} was accepted"),
            }
        }
    }

    #[test]
    fn no_argument_takes_a_token() {
        fn check(command: &clap::Command) {
            for arg in command.get_arguments() {
                assert_ne!(arg.get_long(), Some("token"));
            }
            command.get_subcommands().for_each(check);
        }
        check(&grammar());
    }

    #[test]
    fn durations() {
        assert_eq!(duration("90s").unwrap(), Duration::from_secs(90));
        assert_eq!(duration("10m").unwrap(), Duration::from_secs(600));
        assert_eq!(duration("30d").unwrap(), Duration::from_secs(2_592_000));
        for bad in [
            "",
            "10",
            "m",
            "-1m",
            "1.5h",
            "1w",
            "99999999999999999999d",
            "5é",
        ] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}

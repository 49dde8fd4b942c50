//! `join` and `verify`: three files, one key, one subject, one line. Offline.

use crate::cli;
use crate::config::Settings;
use crate::console::{Console, Tone};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::gate::{self, Joined};
use crate::report;
use crate::workspace::Workspace;
use std::io::Write as _;
use std::path::Path;
use tribunal_core::id::CommitId;
use tribunal_core::join::{Expected, Join, Known};
use tribunal_core::verify::{Check, CheckResult, Step};

/// Characters of what to fix in a summary.
const FIXES: usize = 8000;

/// Print exactly the join's line, and why it is blocked beside it.
pub(super) fn run(
    args: &cli::Join,
    settings: &Settings,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let joined = joined(args, settings)?;
    summarize(args, &joined.join)?;
    console.say(&joined.join.to_string());
    console.json(&gate::json_of(&joined.join, &joined.source));
    tell_failures(&joined.join, console);
    Ok(gate::exit_of(&joined.join))
}

/// Print every check, the line, and how to repeat it without us.
pub(super) fn run_verify(
    args: &cli::Join,
    settings: &Settings,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let Joined { join, ring, source } = joined(args, settings)?;
    summarize(args, &join)?;
    for check in join.checks() {
        let line = check_line(check, console);
        console.say(&line);
    }
    console.say(&join.to_string());
    let lines = gate::plain_tools(&args.dir, &ring, &join);
    console.say("");
    console.say("# The same without tribunal:");
    for line in &lines {
        console.say(line);
    }
    let mut document = gate::json_of(&join, &source);
    document["plain_tools"] = lines.into();
    console.json(&document);
    Ok(gate::exit_of(&join))
}

/// Why a join is blocked, and what was left out of it.
pub(super) fn tell_failures(join: &Join, console: &mut Console) {
    for check in join.checks() {
        match &check.result {
            CheckResult::Failed(seen) => {
                let head = console.for_err(Tone::Bad, &check.step.to_string());
                console.note(&format!("{head}: {}: {seen}", check.subject));
                console.note(&format!("  next: {}", gate::next_after(check.step)));
            }
            CheckResult::NotAsked(seen) if check.step == Step::Repository => {
                console.warn(&format!(
                    "the repository is not checked ({seen}); pass --repo NAME"
                ));
            }
            CheckResult::NotAsked(_) | CheckResult::Held(_) => {}
        }
    }
}

/// Markdown for a CI job's page, where that was asked for.
fn summarize(args: &cli::Join, join: &Join) -> Result<(), Failure> {
    let Some(path) = &args.summary else {
        return Ok(());
    };
    // A report that its verdicts do not vouch for says nothing here.
    let vouched = join
        .words()
        .iter()
        .all(|word| matches!(word, Known::Signed(_)))
        && join.failures().all(|check| check.step != Step::Report);
    let report = vouched.then(|| report::in_folder(&args.dir).ok()).flatten();
    let fixes = report
        .map(|report| report::fixes(&report, FIXES))
        .unwrap_or_default();
    let append = || {
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)?;
        file.write_all(report::summary(join, &fixes).as_bytes())
    };
    append().map_err(|error: std::io::Error| {
        Failure::usage(
            "write the summary",
            format!("{}: {error}", path.display()),
            "name a file that can be written with --summary",
        )
    })
}

fn check_line(check: &Check, console: &Console) -> String {
    match &check.result {
        CheckResult::Held(seen) => {
            let mark = console.for_out(Tone::Good, "ok       ");
            format!("{mark} {}: {}: {seen}", check.step, check.subject)
        }
        CheckResult::Failed(seen) => {
            let mark = console.for_out(Tone::Bad, "FAILED   ");
            let next = gate::next_after(check.step);
            format!(
                "{mark} {}: {}: {seen}\n          next: {next}",
                check.step, check.subject
            )
        }
        CheckResult::NotAsked(seen) => {
            let mark = console.for_out(Tone::Faint, "not asked");
            format!("{mark} {}: {}: {seen}", check.step, check.subject)
        }
    }
}

fn joined(args: &cli::Join, settings: &Settings) -> Result<Joined, Failure> {
    let expected = Expected {
        repository: settings.known_repo().cloned(),
        head: head(args.head.as_ref())?,
        base: args.base.clone(),
        change_set: args.change_set.into(),
        now: gate::now(),
    };
    Joined::of(&args.dir, &expected, settings)
}

/// What was named, or HEAD of the workspace: a join without a subject would take anybody's PASS.
fn head(named: Option<&CommitId>) -> Result<CommitId, Failure> {
    if let Some(head) = named {
        return Ok(head.clone());
    }
    let workspace = Workspace::discover(Path::new("."))?.ok_or_else(|| {
        Failure::usage(
            "know which commit is to be merged",
            "no --head was given, and this is no git workspace",
            "pass --head SHA, or run this in the workspace",
        )
    })?;
    Ok(workspace.commit("HEAD")?)
}

//! `cassette`: the records of single tests in this checkout, judged by the code that the server judges with; offline, but for
//! recording.

mod accept;
mod draft;
mod record;
mod shelves;
mod sign;

pub(super) use accept::run as accept;
pub(super) use record::run as record;

use crate::cli;
use crate::console::{Console, Tone};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::gate::now;
use crate::report::ledger_line;
use serde_json::json;
use shelves::Shelves;
use tribunal_core::cassette::{Hearing, ON_BASE, hear};
use tribunal_core::plan::Finding;
use tribunal_core::reason::Reason;
use tribunal_core::text::shown;

/// `check`: 0 where nothing is wrong, 1 where something is.
pub(super) fn check(args: &cli::CassetteCheck, console: &mut Console) -> Result<Exit, Failure> {
    let shelves = Shelves::read(&args.dir, args.base.as_deref())?;
    let heard = hear(&shelves.policy, &shelves.facts);
    Ok(conclude(&shelves, &heard, console))
}

/// `diff`: the same, and before it the difference by pin name.
pub(super) fn diff(args: &cli::CassetteCheck, console: &mut Console) -> Result<Exit, Failure> {
    let shelves = Shelves::read(&args.dir, args.base.as_deref())?;
    let heard = hear(&shelves.policy, &shelves.facts);
    console.say(&format!("against {}", shelves.against));
    if heard.changes.is_empty() {
        console.say("no cassette changed");
    }
    for change in &heard.changes {
        console.say(ledger_line(change).trim_start());
    }
    Ok(conclude(&shelves, &heard, console))
}

fn conclude(shelves: &Shelves, heard: &Hearing, console: &mut Console) -> Exit {
    let mut findings = findings(heard);
    if shelves.is_alone() {
        // Compared with itself everything is base's.
        for finding in &mut findings {
            finding.detail = finding.detail.replacen(ON_BASE, "", 1);
        }
    }
    for finding in &findings {
        let code = console.for_out(Tone::Bad, finding.reason.code());
        let subject = finding.subject.as_deref().unwrap_or("-");
        console.say(&format!(
            "{code}: {}: {}",
            shown(subject, 300),
            shown(&finding.detail, 600)
        ));
    }
    let count = shelves.records();
    if findings.is_empty() {
        console.say(&format!("{count} cassettes, nothing wrong with them"));
    }
    let told: Vec<_> = findings
        .iter()
        .map(|f| json!({"code": f.reason.code(), "subject": f.subject, "detail": f.detail}))
        .collect();
    console.json(&json!({
        "against": shelves.against, "cassettes": count, "findings": told, "ledger": heard.changes,
    }));
    if findings.is_empty() {
        Exit::MergeOk
    } else {
        Exit::Blocked
    }
}

/// Everything that the server would hold against the checkout if it were scored now.
fn findings(heard: &Hearing) -> Vec<Finding> {
    let pointers = heard.pointers.iter().map(|path| {
        Finding::at(
            Reason::LfsPointer,
            path,
            "a Git LFS pointer, content not fetched",
        )
    });
    pointers.chain(heard.findings(now())).collect()
}

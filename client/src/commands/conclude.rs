//! The end of a score: files are written, verified, joined, and what to fix is said in few words.

use super::join::tell_failures;
use crate::config::Settings;
use crate::console::{Console, Tone};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::gate::{self, KeySource};
use crate::outdir::{OutFile, publish};
use crate::remote::Remote;
use crate::report;
use crate::scoring::Concluded;
use std::path::Path;
use tribunal_core::join::{Decision, Expected, Join};

/// Lines of the ledger's difference; `explain` has them all.
const LEDGER_LINES: usize = 20;

/// What is to be done with the files of a completed score.
pub(super) struct Conclusion<'a> {
    /// The score's full name.
    pub(super) name: &'a str,
    /// Its files.
    pub(super) files: Vec<OutFile>,
    /// Where they go; `None` is nowhere.
    pub(super) out: Option<&'a Path>,
    /// What the join is to expect.
    pub(super) expected: Expected,
    /// How much is said of what to fix.
    pub(super) max_chars: usize,
}

impl Conclusion<'_> {
    /// Write, verify, join, tell.
    pub(super) async fn tell(
        self,
        remote: &Remote,
        settings: &Settings,
        console: &mut Console,
    ) -> Result<Exit, Failure> {
        let Concluded {
            join: joined,
            source,
            report,
        } = Concluded::of(&self.files, &self.expected, remote, settings).await?;
        if let Some(out) = self.out {
            publish(out, &self.files)?;
        }
        let fixes = report
            .as_ref()
            .map(|report| report::fixes(report, self.max_chars))
            .filter(|text| !text.is_empty());
        let line = coloured(&joined, console);
        console.say(&line);
        if let Some(fixes) = &fixes {
            console.say(fixes);
        }
        let ledger = report.as_ref().map(report::ledger).unwrap_or_default();
        for line in ledger.iter().take(LEDGER_LINES) {
            console.say(line.trim_start());
        }
        let warnings = report.as_ref().map(report::warnings).unwrap_or_default();
        for warning in &warnings {
            console.warn(warning);
        }
        let mut document = gate::json_of(&joined, &source);
        document["event"] = "result".into();
        document["name"] = self.name.into();
        document["fix"] = fixes.into();
        document["ledger"] = ledger.iter().map(|line| line.trim_start()).collect();
        document["warnings"] = warnings.into();
        document["out"] = self.out.map(|out| out.display().to_string()).into();
        console.json(&document);
        if gate::exit_of(&joined) == Exit::Unverified {
            tell_failures(&joined, console);
        }
        if let Some(out) = self.out {
            console.note(&format!("{} → {}", self.name, out.display()));
        }
        match source {
            KeySource::File(_) => console.note(&source.told()),
            KeySource::Server(_) => console.warn(&source.told()),
        }
        Ok(gate::exit_of(&joined))
    }
}

fn coloured(join: &Join, console: &Console) -> String {
    let tone = match join.decision() {
        Decision::MergeOk => Tone::Good,
        Decision::MergeBlocked(_) => Tone::Bad,
    };
    console.for_out(tone, &join.to_string())
}

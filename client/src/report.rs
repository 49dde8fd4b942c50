//! A report becomes text for whoever has to act: in the fewest words that suffice, or with all there is.
//!
//! All of it may hold the candidate's own text, so all of it is escaped; lengths are bounded. Never judges: what a reason
//! means and what to do about it stands in the report.

mod explain;
mod findings;
mod fixes;
mod lanes;
mod pages;
mod summary;

use explain::explain_case;
pub use explain::{explain, ledger, ledger_line};
pub use findings::{Finding, findings};
pub use fixes::{finding_lines, fixes, warnings};
pub use pages::Pages;
pub use summary::summary;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::outdir::OutFile;
use std::path::Path;
use tribunal_core::report::{CasePart, Report};
use tribunal_core::text::shown;

/// The file's name among a score's files.
pub const NAME: &str = "report.json";

/// Why there is no report to speak of.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// It is not among the files.
    #[error("there is no {NAME}")]
    Missing,
    /// It is not one that this version reads.
    #[error("{NAME} is not one that this version reads: {0}")]
    Form(#[from] serde_json::Error),
    /// It tells nothing of a case of that name.
    #[error("the report has no case {0}")]
    NoCase(String),
    /// It is shorter than that.
    #[error("there is no page {number} of {count}")]
    NoPage {
        /// The page that was asked for.
        number: usize,
        /// How many there are.
        count: usize,
    },
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        let next = match &error {
            ReportError::Missing | ReportError::Form(_) => {
                let next = "fetch the files again; if that does not help, client and server are of different versions";
                return Self::new(Exit::Unverified, "read the report", error, next);
            }
            ReportError::NoCase(_) => {
                "name it as the report does, as in tests/sealed/test_a.py::test_b; a policy may keep names from agents"
            }
            ReportError::NoPage { .. } => "pages are counted from 1",
        };
        Self::usage("explain the score", error, next)
    }
}

/// Read a report.
///
/// # Errors
/// It is none, or of another version.
pub fn parse(bytes: &[u8]) -> Result<Report, ReportError> {
    Ok(serde_json::from_slice(bytes)?)
}

/// The report among a score's files.
///
/// # Errors
/// There is none, or it is of another version.
pub fn among(files: &[OutFile]) -> Result<Report, ReportError> {
    let file = files.iter().find(|file| file.name == NAME);
    parse(&file.ok_or(ReportError::Missing)?.content)
}

/// The report in a folder of verdict files.
///
/// # Errors
/// There is none, or it is of another version.
pub fn in_folder(folder: &Path) -> Result<Report, ReportError> {
    parse(&std::fs::read(folder.join(NAME)).map_err(|_| ReportError::Missing)?)
}

/// The whole report as text, or all there is to one case.
///
/// # Errors
/// The report tells nothing of that case.
pub fn told(report: &Report, case: Option<&str>) -> Result<String, ReportError> {
    match case {
        None => Ok(explain(report)),
        Some(node) => {
            explain_case(report, node).ok_or_else(|| ReportError::NoCase(shown(node, 300)))
        }
    }
}

/// The case that a reason's subject names.
fn case_of<'a>(report: &'a Report, subject: Option<&str>) -> Option<&'a CasePart> {
    let subject = subject?;
    report
        .cases
        .iter()
        .find(|case| case.node.as_str() == subject)
}

/// The same among the tests that the patch touches.
fn touched_case_of<'a>(report: &'a Report, subject: Option<&str>) -> Option<&'a CasePart> {
    let (subject, lane) = (subject?, report.merge_lane.as_ref()?);
    lane.cases.iter().find(|case| case.node.as_str() == subject)
}

/// One frame of a traceback.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    /// Its file, from the tree's root where it is in the tree.
    file: String,
    /// The line.
    line: String,
    /// What stands there.
    code: String,
}

/// What of a traceback is nobody's who reads it.
const HARNESS: &str = "/opt/tribunal/harness/";

/// The frames of a traceback, outermost first. What the product's process says of its own comes before the test's in the
/// text; they are further in.
fn frames(traceback: &str) -> Vec<Frame> {
    let crossed = traceback.strip_prefix("In the product:\n");
    let (product, test) = crossed
        .and_then(|text| text.split_once("\n\n"))
        .unwrap_or(("", traceback));
    let mut frames = frames_of(test);
    frames.retain(|frame| !frame.file.starts_with(HARNESS));
    frames.extend(frames_of(product));
    frames
}

/// In the runner's short form (`file:12: in name`) or in the interpreter's own.
fn frames_of(traceback: &str) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut lines = traceback.lines().peekable();
    while let Some(text) = lines.next() {
        let place = match text.trim_start().strip_prefix("File \"") {
            Some(rest) => rest.split_once("\", line "),
            None if text.starts_with([' ', 'E', '>']) => None,
            None => text
                .split_once(": in ")
                .and_then(|(place, _)| place.rsplit_once(':')),
        };
        let Some((file, rest)) = place else {
            continue;
        };
        let line: String = rest.chars().take_while(char::is_ascii_digit).collect();
        if line.is_empty() {
            continue;
        }
        let code = lines
            .peek()
            .filter(|code| code.starts_with("    "))
            .map(|code| code.trim())
            .unwrap_or_default();
        frames.push(Frame {
            file: file.strip_prefix("/tree/").unwrap_or(file).to_owned(),
            line,
            code: code.to_owned(),
        });
    }
    frames
}

#[cfg(test)]
mod tests;

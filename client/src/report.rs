//! A report becomes text for whoever has to act: in the fewest words that suffice, or with all there is.
//!
//! All of it may hold the candidate's own text, so all of it is escaped; lengths are bounded. Never judges: what a reason
//! means and what to do about it stands in the report.

mod explain;
mod fixes;
mod lanes;

pub use explain::{explain, ledger, ledger_line};
pub use fixes::{fixes, warnings};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::outdir::OutFile;
use tribunal_core::report::{CasePart, Report};

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
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        Self::new(
            Exit::Unverified,
            "read the report",
            error,
            "fetch the files again; if that does not help, client and server are of different versions",
        )
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

/// The case that a reason's subject names.
fn case_of<'a>(report: &'a Report, subject: Option<&str>) -> Option<&'a CasePart> {
    let subject = subject?;
    report
        .cases
        .iter()
        .find(|case| case.node.as_str() == subject)
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

/// The frames of a traceback, in the runner's short form (`file:12: in name`) or in the interpreter's own.
fn frames(traceback: &str) -> Vec<Frame> {
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

//! A report becomes text for whoever has to act: in the fewest words that suffice, or with all there is.
//!
//! All of it may hold the candidate's own text, so all of it is escaped; lengths are bounded. Never judges: what a reason
//! means and what to do about it stands in the report.

mod explain;
mod fixes;

pub use explain::explain;
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

/// The lines of a traceback that say where: its last frame within a file of the tree, as `path:line: code`.
fn place(traceback: &str, file: Option<&str>) -> Option<String> {
    let mut found = None;
    let mut lines = traceback.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((path, rest)) = line
            .trim_start()
            .strip_prefix("File \"")
            .and_then(|rest| rest.split_once("\", line "))
        else {
            continue;
        };
        let path = path.strip_prefix("/tree/").unwrap_or(path);
        if file.is_some_and(|file| file != path) {
            continue;
        }
        let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let code = lines
            .peek()
            .map(|code| code.trim())
            .filter(|code| !code.starts_with("File \""))
            .unwrap_or_default();
        found = Some(format!("{path}:{number}: {code}"));
    }
    found
}

#[cfg(test)]
mod tests;

//! `explain`: a folder's report, or a score's, with all there is to each reason.

use crate::cli;
use crate::config::Settings;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::remote::{Remote, score_name};
use crate::report::{NAME, ReportError, among, explain, parse};
use std::path::Path;
use tribunal_core::report::Report;

/// Run it. Explaining is no verdict: it ends with 0 whatever it explains.
pub(super) async fn run(
    args: &cli::Explain,
    settings: &Settings,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let report = if args.is_folder() {
        let bytes =
            std::fs::read(Path::new(&args.what).join(NAME)).map_err(|_| ReportError::Missing)?;
        parse(&bytes)?
    } else {
        let name = score_name(&args.what, settings.known_repo())?;
        let remote = Remote::connect(settings).await?;
        among(&remote.verdicts(&name).await?)?
    };
    console.say(&bounded(explain(&report), args.max_chars));
    console.json(&document(&report)?);
    Ok(Exit::MergeOk)
}

fn document(report: &Report) -> Result<serde_json::Value, ReportError> {
    Ok(serde_json::to_value(report)?)
}

fn bounded(text: String, max_chars: Option<usize>) -> String {
    match max_chars {
        Some(max) if text.chars().count() > max => {
            let mut cut: String = text.chars().take(max.saturating_sub(1)).collect();
            cut.push('…');
            cut
        }
        Some(_) | None => text,
    }
}

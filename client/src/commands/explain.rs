//! `explain`: a folder's report, or a score's, with all there is to each reason, or to one case; in pages where asked.

use crate::cli;
use crate::config::Settings;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::remote::{Remote, score_name};
use crate::report::{Pages, ReportError, among, in_folder, told};
use std::path::Path;

/// Room for the line that says which page this is.
const NOTE: usize = 60;

/// Run it. Explaining is no verdict: it ends with 0 whatever it explains.
pub(super) async fn run(
    args: &cli::Explain,
    settings: &Settings,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let report = if args.is_folder() {
        in_folder(Path::new(&args.what))?
    } else {
        let name = score_name(&args.what, settings.known_repo())?;
        let remote = Remote::connect(settings).await?;
        among(&remote.verdicts(&name).await?)?
    };
    let text = told(&report, args.case.as_deref())?;
    console.say(&match args.max_chars {
        Some(max) => page_of(text, max, args.page)?,
        None => text,
    });
    console.json(&serde_json::to_value(&report).map_err(ReportError::from)?);
    Ok(Exit::MergeOk)
}

/// That page, with a line under it where there are others.
fn page_of(text: String, max: usize, number: usize) -> Result<String, ReportError> {
    if text.chars().count() <= max && number == 1 {
        return Ok(text);
    }
    let pages = Pages::of(&text, max.saturating_sub(NOTE).max(1), |_| 1);
    let count = pages.count();
    let page = pages.page(number)?;
    let note = match number < count {
        true => format!("… page {number} of {count}; --page {} goes on", number + 1),
        false => format!("… page {number} of {count}"),
    };
    let room = max.saturating_sub(page.chars().count() + 1);
    let note: String = note.chars().take(room).collect();
    Ok(format!("{page}\n{note}").trim_end().to_owned())
}

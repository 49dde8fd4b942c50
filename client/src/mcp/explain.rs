//! `explain`: a score's report, or all there is to one case, page by page.

use super::Sources;
use super::arguments::ExplainArguments;
use super::budget::{Answer, in_json};
use super::errors::ErrorAnswer;
use super::reports::Reports;
use crate::config::Needs;
use crate::failure::Failure;
use crate::remote::score_name;
use crate::report::{Pages, told};
use rmcp::schemars::{self, JsonSchema};
use serde::Serialize;

/// Room for the fields around a page; a case's name may be long.
const AROUND: usize = 700;

/// A page of a report
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct ExplainAnswer {
    /// The score's name; null where it was none
    name: Option<String>,
    /// Which page this is, counted from 1
    page: usize,
    /// How many there are at this max_chars; 0 where there is none
    pages: usize,
    /// The page
    text: String,
    /// Why the call came to nothing
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorAnswer>,
}

/// Explain it.
pub(super) async fn explain(
    arguments: &ExplainArguments,
    sources: &Sources,
    reports: &Reports,
) -> ExplainAnswer {
    let known = sources
        .settings(Needs::Server)
        .and_then(|settings| score_name(&arguments.score, settings.known_repo()));
    let name = known.as_ref().ok().cloned();
    let paged = async {
        let report = reports.of(&known?, sources).await?;
        let text = told(&report, arguments.case.as_deref())?;
        let room = arguments.max_chars.saturating_sub(AROUND);
        let pages = Pages::of(&text, room, in_json);
        let page = pages.page(arguments.page)?.to_owned();
        Ok::<_, Failure>((page, pages.count()))
    };
    match paged.await {
        Ok((text, pages)) => ExplainAnswer {
            name,
            page: arguments.page,
            pages,
            text,
            error: None,
        },
        Err(failure) => ExplainAnswer::failed(name, arguments.page, &failure),
    }
}

impl ExplainAnswer {
    pub(super) fn failed(name: Option<String>, page: usize, failure: &Failure) -> Self {
        Self {
            name,
            page,
            pages: 0,
            text: String::new(),
            error: Some(failure.into()),
        }
    }
}

impl Answer for ExplainAnswer {
    fn text(&self) -> String {
        if let Some(error) = &self.error {
            return error.text();
        }
        match self.page < self.pages {
            true => format!(
                "{}\n… page {} of {}; page {} goes on",
                self.text,
                self.page,
                self.pages,
                self.page + 1
            ),
            false => format!("{}\n(page {} of {})", self.text, self.page, self.pages),
        }
    }

    fn shrink(&mut self) -> bool {
        self.error.as_mut().is_some_and(ErrorAnswer::shrink)
    }

    fn failed(&self) -> bool {
        self.error.is_some()
    }
}

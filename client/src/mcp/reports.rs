//! Reports of completed scores, kept for the pages that follow: a completed score's report is what it is.
//!
//! Never keeps more than a few; what was not completed is asked for anew.

use super::Sources;
use crate::config::Needs;
use crate::failure::Failure;
use crate::remote::Remote;
use crate::report::among;
use std::sync::{Arc, Mutex};
use tribunal_core::report::Report;

/// How many; an agent reads one at a time.
const MOST: usize = 4;

/// The ones that were read last.
#[derive(Debug, Clone, Default)]
pub(super) struct Reports(Arc<Mutex<Vec<Kept>>>);

/// One of them.
#[derive(Debug)]
struct Kept {
    /// The score's name.
    name: String,
    report: Arc<Report>,
}

impl Reports {
    /// The report of this score.
    ///
    /// # Errors
    /// The server does not hand it out.
    pub(super) async fn of(&self, name: &str, sources: &Sources) -> Result<Arc<Report>, Failure> {
        if let Some(report) = self.kept(name) {
            return Ok(report);
        }
        let settings = sources.settings(Needs::Server)?;
        let remote = Remote::connect(&settings).await?;
        let report = Arc::new(among(&remote.verdicts(name).await?)?);
        self.keep(name, &report);
        Ok(report)
    }

    fn kept(&self, name: &str) -> Option<Arc<Report>> {
        let kept = self.0.lock().ok()?;
        let found = kept.iter().find(|kept| kept.name == name)?;
        Some(Arc::clone(&found.report))
    }

    fn keep(&self, name: &str, report: &Arc<Report>) {
        // Without the list every page is fetched anew, and no call fails for it.
        if let Ok(mut kept) = self.0.lock() {
            kept.retain(|kept| kept.name != name);
            kept.push(Kept {
                name: name.to_owned(),
                report: Arc::clone(report),
            });
            let over = kept.len().saturating_sub(MOST);
            kept.drain(..over);
        }
    }
}

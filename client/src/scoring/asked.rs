//! A request for a score: the commit is sent where the server lacks it, and asked for again.

use super::send::{is, send_missing};
use crate::cli::Lane;
use crate::config::Settings;
use crate::console::Console;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::remote::{Remote, repository_name};
use crate::workspace::Workspace;
use tribunal_core::id::CommitId;
use tribunal_core::reason::RefusedCode;
use tribunal_proto::v1::{CreateScoreRequest, Score};

/// What is asked for.
pub struct Asked<'a> {
    /// The commit.
    pub head: &'a CommitId,
    /// Against this one; `None` is the tip.
    pub base: Option<&'a CommitId>,
    /// New attempts.
    pub fresh: bool,
    /// One more lane, for advice.
    pub lane: Option<Lane>,
}

impl Asked<'_> {
    /// Make the score, sending the commit where the server does not have it and a workspace does.
    ///
    /// # Errors
    /// The server refuses it, or does not answer.
    pub async fn create(
        &self,
        remote: &Remote,
        settings: &Settings,
        workspace: Option<&Workspace>,
        progress: &Progress,
        console: &mut Console,
    ) -> Result<Score, Failure> {
        let repo = settings.repo()?;
        let request = CreateScoreRequest {
            parent: repository_name(repo),
            head: self.head.to_string(),
            base: self.base.map(ToString::to_string).unwrap_or_default(),
            request_id: request_id()?,
            fresh: self.fresh,
            proposed: self.lane == Some(Lane::Proposed),
        };
        let score = match (remote.create_score(&request).await, workspace) {
            (Err(failure), Some(workspace)) if is(&failure, RefusedCode::UnknownCommit) => {
                let about = remote.repository(repo).await?;
                send_missing(
                    remote, repo, &about, workspace, self.head, progress, console,
                )
                .await?;
                remote.create_score(&request).await?
            }
            (answer, _) => answer?,
        };
        progress.created(&score, console);
        Ok(score)
    }
}

/// Drawn anew for every run of a command, kept for its retries: so a retry never makes a second score.
fn request_id() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|e| Failure::usage("draw a request id", e, "mend this machine's entropy"))?;
    Ok(hex::encode(bytes))
}

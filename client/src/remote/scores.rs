//! Unary calls, one method each: asked again while only the connection is to blame, told as a failure otherwise.

use super::status::{Again, again, failure_of};
use super::{Remote, repository_name, request};
use crate::failure::Failure;
use crate::outdir::OutFile;
use std::future::Future;
use std::time::Duration;
use tonic::{Response, Status};
use tribunal_core::id::{CommitId, RepoName};
use tribunal_proto::v1;

/// How often a call that is safe to repeat is made.
const TRIES: u32 = 4;
/// Longest pause between two tries.
const PAUSE: Duration = Duration::from_secs(15);

/// Which scores are listed.
#[derive(Debug, Clone, Default)]
pub struct ListFilter {
    /// Only of this head.
    pub head: Option<CommitId>,
    /// Only against this base.
    pub base: Option<CommitId>,
    /// Only in this state.
    pub state: v1::ScoreState,
    /// At most this many.
    pub limit: usize,
}

impl Remote {
    /// The repository, fetched anew by the server.
    ///
    /// # Errors
    /// As the server says.
    pub async fn repository(&self, repo: &RepoName) -> Result<v1::Repository, Failure> {
        let what = format!("ask about the repository {repo}");
        let answer = repeat(&what, || async {
            let message = v1::GetRepositoryRequest {
                name: repository_name(repo),
            };
            self.repositories().get_repository(request(message)).await
        })
        .await?;
        answer.repository.ok_or_else(|| empty(&what))
    }

    /// The sealed cases of a commit.
    ///
    /// # Errors
    /// As the server says.
    pub async fn cases(
        &self,
        repo: &RepoName,
        commit: Option<&CommitId>,
    ) -> Result<(Vec<v1::SealedCase>, Vec<v1::UncollectedFile>), Failure> {
        let mut cases = Vec::new();
        let mut uncollected = Vec::new();
        let mut page_token = String::new();
        loop {
            let page = repeat("list the sealed cases", || async {
                let message = v1::ListCasesRequest {
                    parent: repository_name(repo),
                    commit: commit.map(ToString::to_string).unwrap_or_default(),
                    page_size: 0,
                    page_token: page_token.clone(),
                };
                // A collection in a sealed room takes its time.
                let mut request = request(message);
                request.set_timeout(Duration::from_secs(600));
                self.repositories().list_cases(request).await
            })
            .await?;
            cases.extend(page.cases);
            uncollected.extend(page.uncollected_files);
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return Ok((cases, uncollected));
            }
        }
    }

    /// How the sealed files of a commit, or of the protected tip, can run; with the commit that was read.
    ///
    /// # Errors
    /// As the server says.
    pub async fn modes(
        &self,
        repo: &RepoName,
        commit: Option<&CommitId>,
    ) -> Result<(String, Vec<v1::SealedFile>), Failure> {
        let mut files = Vec::new();
        let mut page_token = String::new();
        loop {
            let page = repeat("list how sealed files run", || async {
                let mut request = request(v1::ListModesRequest {
                    parent: repository_name(repo),
                    commit: commit.map(ToString::to_string).unwrap_or_default(),
                    page_size: 0,
                    page_token: page_token.clone(),
                });
                // Base may have to be run, both ways.
                request.set_timeout(Duration::from_secs(600));
                self.repositories().list_modes(request).await
            })
            .await?;
            files.extend(page.files);
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return Ok((page.commit, files));
            }
        }
    }

    /// Ask for a score. The request id makes it safe to repeat.
    ///
    /// # Errors
    /// As the server says.
    pub async fn create_score(
        &self,
        message: &v1::CreateScoreRequest,
    ) -> Result<v1::Score, Failure> {
        let what = "ask for a score";
        let answer = repeat(what, || async {
            self.scores().create_score(request(message.clone())).await
        })
        .await?;
        answer.score.ok_or_else(|| empty(what))
    }

    /// The score as it is now.
    ///
    /// # Errors
    /// As the server says.
    pub async fn score(&self, name: &str) -> Result<v1::Score, Failure> {
        let what = "look at the score";
        let answer = repeat(what, || async {
            let message = v1::GetScoreRequest {
                name: name.to_owned(),
            };
            self.scores().get_score(request(message)).await
        })
        .await?;
        answer.score.ok_or_else(|| empty(what))
    }

    /// End a score.
    ///
    /// # Errors
    /// As the server says.
    pub async fn cancel(&self, name: &str) -> Result<v1::Score, Failure> {
        let what = "cancel the score";
        let answer = repeat(what, || async {
            let message = v1::CancelScoreRequest {
                name: name.to_owned(),
            };
            self.scores().cancel_score(request(message)).await
        })
        .await?;
        answer.score.ok_or_else(|| empty(what))
    }

    /// The scores of a repository, newest first.
    ///
    /// # Errors
    /// As the server says.
    pub async fn list(
        &self,
        repo: &RepoName,
        filter: &ListFilter,
    ) -> Result<Vec<v1::Score>, Failure> {
        let mut scores = Vec::new();
        let mut page_token = String::new();
        loop {
            let page = repeat("list scores", || async {
                let left = filter.limit.saturating_sub(scores.len()).min(500);
                let message = v1::ListScoresRequest {
                    parent: repository_name(repo),
                    page_size: i32::try_from(left).unwrap_or(500),
                    page_token: page_token.clone(),
                    head: filter
                        .head
                        .as_ref()
                        .map(ToString::to_string)
                        .unwrap_or_default(),
                    base: filter
                        .base
                        .as_ref()
                        .map(ToString::to_string)
                        .unwrap_or_default(),
                    state: filter.state.into(),
                };
                self.scores().list_scores(request(message)).await
            })
            .await?;
            scores.extend(page.scores);
            page_token = page.next_page_token;
            if page_token.is_empty() || scores.len() >= filter.limit {
                scores.truncate(filter.limit);
                return Ok(scores);
            }
        }
    }

    /// The cases that scores of a repository found mixed, the one seen last first.
    ///
    /// # Errors
    /// As the server says.
    pub async fn flaky(
        &self,
        repo: &RepoName,
        limit: usize,
    ) -> Result<Vec<v1::FlakyCase>, Failure> {
        let mut cases = Vec::new();
        let mut page_token = String::new();
        loop {
            let page = repeat("list mixed cases", || async {
                let left = limit.saturating_sub(cases.len()).min(500);
                let message = v1::ListFlakyCasesRequest {
                    parent: repository_name(repo),
                    page_size: i32::try_from(left).unwrap_or(500),
                    page_token: page_token.clone(),
                };
                self.scores().list_flaky_cases(request(message)).await
            })
            .await?;
            cases.extend(page.cases);
            page_token = page.next_page_token;
            if page_token.is_empty() || cases.len() >= limit {
                cases.truncate(limit);
                return Ok(cases);
            }
        }
    }

    /// The files of a completed score.
    ///
    /// # Errors
    /// As the server says.
    pub async fn verdicts(&self, name: &str) -> Result<Vec<OutFile>, Failure> {
        let answer = repeat("fetch the verdict files", || async {
            let message = v1::GetVerdictsRequest {
                name: name.to_owned(),
            };
            self.scores().get_verdicts(request(message)).await
        })
        .await?;
        Ok(out_files(answer.files))
    }

    /// The server's own keys: good for showing, not for trusting.
    ///
    /// # Errors
    /// As the server says.
    pub async fn server_keys(&self) -> Result<Vec<v1::Key>, Failure> {
        let answer = repeat("list the server's keys", || async {
            let message = v1::ListKeysRequest {
                page_size: 500,
                page_token: String::new(),
            };
            self.keys().list_keys(request(message)).await
        })
        .await?;
        Ok(answer.keys)
    }
}

/// The wire's files as ours.
pub(super) fn out_files(files: Vec<v1::VerdictFile>) -> Vec<OutFile> {
    files
        .into_iter()
        .map(|file| OutFile {
            name: file.name,
            content: file.content.to_vec(),
        })
        .collect()
}

/// Make a call again while that may help.
async fn repeat<T, F>(what: &str, call: impl Fn() -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<Response<T>, Status>>,
{
    let mut tries = 0;
    loop {
        tries += 1;
        let status = match call().await {
            Ok(answer) => return Ok(answer.into_inner()),
            Err(status) => status,
        };
        match again(&status) {
            Again::After(pause) if tries < TRIES => {
                tokio::time::sleep(pause.saturating_mul(1 << (tries - 1)).min(PAUSE)).await;
            }
            Again::After(_) | Again::Pointless => return Err(failure_of(what, &status)),
        }
    }
}

fn empty(what: &str) -> Failure {
    failure_of(what, &Status::data_loss("the server's answer is empty"))
}

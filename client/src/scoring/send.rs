//! Commits that the server lacks: found out, bundled, sent.

use crate::console::Console;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::remote::Remote;
use crate::workspace::{Bundle, Depth, Exclude, Workspace};
use tribunal_core::id::{CommitId, RepoName};
use tribunal_core::reason::RefusedCode;
use tribunal_proto::v1::Repository;

/// Send what the server lacks of `head`.
///
/// # Errors
/// Git or the server says no.
pub async fn send_missing(
    remote: &Remote,
    repo: &RepoName,
    about: &Repository,
    workspace: &Workspace,
    head: &CommitId,
    progress: &Progress,
    console: &mut Console,
) -> Result<(), Failure> {
    let known: Vec<CommitId> = about
        .prerequisite_commits
        .iter()
        .chain([&about.tip])
        .filter_map(|id| id.parse().ok())
        .collect();
    let sure = Exclude::of_known(workspace, &known)?;
    let has_tip = known
        .iter()
        .any(|id| id.as_str() == about.tip && sure.holds(id));
    let mut tries = Vec::new();
    if !has_tip {
        // The workspace is behind: what its remotes showed is a better guess than everything, but only a guess.
        let branch = about.protected_ref.trim_start_matches("refs/heads/");
        let guess = Exclude::guessed(workspace, branch)?;
        if guess != Exclude::Nothing {
            tries.push(sure.clone().and(guess));
        }
    }
    tries.push(sure.clone());
    tries.push(Exclude::Nothing);
    tries.dedup();
    let mut last = None;
    for exclude in tries {
        let Some(bundle) = Bundle::make(workspace, head, &exclude)? else {
            if exclude == sure {
                return Ok(());
            }
            // The guess left head itself out, which the server does not have.
            continue;
        };
        let told = progress.uploading(bundle.commits(), bundle.size(), console);
        match remote.upload(repo, &bundle, &told).await {
            Ok(()) => return Ok(()),
            Err(failure) if is(&failure, RefusedCode::MissingPrerequisite) => last = Some(failure),
            Err(failure) => return Err(failure),
        }
    }
    match last {
        None => Ok(()),
        Some(failure) => Err(match workspace.depth()? {
            Depth::Whole => failure,
            Depth::Shallow => Failure {
                next: "this clone is shallow: `git fetch --unshallow`, then ask again".to_owned(),
                ..failure
            },
        }),
    }
}

/// Whether a failure carries this code.
#[must_use]
pub fn is(failure: &Failure, code: RefusedCode) -> bool {
    failure.code.as_deref() == Some(code.code())
}

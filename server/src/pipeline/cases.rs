//! The sealed cases of a commit with their functions' digests, for whoever writes leases.
//!
//! Walks the same rooms as a score as far as base's own run, and no further: no attempt of the commit's src is made.

use super::prepared::Prepared;
use super::{NoVerdict, Rooms};
use crate::sandbox::FunctionDigest;
use tokio_util::sync::CancellationToken;
use tribunal_core::id::{CommitId, NodeId, RepoName, RepoPath};
use tribunal_core::outcome::Signature;
use tribunal_core::request::Caller;

/// The sealed cases of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedCases {
    /// The commit that was read.
    pub commit: CommitId,
    /// In manifest order.
    pub cases: Vec<SealedCase>,
    /// Sealed files that could not be imported or compiled, with the message. Raw text: escape before showing.
    pub uncollected: Vec<(RepoPath, String)>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedCase {
    /// The runner's id.
    pub node: NodeId,
    /// Its file.
    pub file: RepoPath,
    /// What a lease names: file stem, classes, function, dotted.
    pub qualname: String,
    /// Its function's digests; `None` where it has no code object.
    pub digest: Option<FunctionDigest>,
    /// Names of the marks it carries.
    pub marks: Vec<String>,
    /// How it fails when its silence is taken off; `None` where it is not silenced, or passes.
    pub signature: Option<Signature>,
}

/// Collect a commit's sealed files, on base's own src. `None` is the protected tip.
///
/// # Errors
/// Refused as an admission is, or our own trouble.
pub async fn cases(
    rooms: &Rooms,
    caller: &Caller,
    repository: &RepoName,
    commit: Option<&CommitId>,
    cancel: CancellationToken,
) -> Result<SealedCases, NoVerdict> {
    let _busy = rooms.vigil.busy(1);
    let prepared = Prepared::of(rooms, caller, repository, commit).await?;
    let run = prepared.run(rooms, &cancel);
    let ground = run.ground().await?;
    let signatures = run.signatures(&ground).await?;
    let base = ground.base;
    let digest_of = |file: &RepoPath, name: &str| {
        let mut all = base.digests.iter();
        all.find(|d| d.file == *file && d.qualname == name).cloned()
    };
    let cases = base.attempt.collected.iter().map(|case| SealedCase {
        node: case.node.clone(),
        qualname: format!("{}.{}", stem(&case.file), case.qualname),
        digest: digest_of(&case.file, &case.qualname),
        marks: case.marks.clone(),
        signature: signatures
            .iter()
            .find(|(node, _)| *node == case.node)
            .map(|(_, signature)| signature.clone()),
        file: case.file.clone(),
    });
    let errors = base.attempt.collection_errors.iter();
    let errors = errors.map(|e| {
        (
            e.file.clone(),
            format!("{}: {}", e.exception.kind, e.exception.message),
        )
    });
    Ok(SealedCases {
        commit: prepared.commit.clone(),
        cases: cases.collect(),
        uncollected: errors.chain(base.undigested.iter().cloned()).collect(),
    })
}

fn stem(file: &RepoPath) -> &str {
    let name = file.as_str().rsplit('/').next().unwrap_or_default();
    name.strip_suffix(".py").unwrap_or(name)
}

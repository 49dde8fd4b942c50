//! A repository's base as the oracle meets it, for whoever registers it: what is red, what needs `shared`, who is alive.

use super::base::BaseRun;
use super::mutants::Planting;
use super::prepared::Prepared;
use super::{NoVerdict, Rooms};
use crate::image;
use tokio_util::sync::CancellationToken;
use tribunal_core::id::{CommitId, NodeId, RepoName, RepoPath};
use tribunal_core::judge::{self, Mutants, NeedShared, NullProduct};
use tribunal_core::reason::{Aborted, AbortedCode};
use tribunal_core::request::{Caller, Role};

/// What was seen of the protected tip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The tip.
    pub commit: CommitId,
    /// Cases, and files that cannot be collected, that are red on base, however they run.
    pub red: Vec<NodeId>,
    /// Files that need `shared`, with the cases that tell.
    pub need_shared: NeedShared,
    /// What the oracle said of the null product.
    pub null: NullProduct,
    /// What it said of planted changes; `None` where they were not run yet.
    pub mutants: Option<Mutants>,
}

impl Look {
    fn of(commit: CommitId, base: &BaseRun, files: &[RepoPath], mutants: Option<Mutants>) -> Self {
        let mut red = judge::red(&base.attempt, files);
        let of_mode = |node: &NodeId| {
            let mut need = base.need_shared.iter();
            need.any(|(file, nodes)| nodes.contains(node) || file.as_str() == node.as_str())
        };
        red.retain(|node| !of_mode(node));
        Self {
            commit,
            red,
            need_shared: base.need_shared.clone(),
            null: base.null,
            mutants,
        }
    }
}

/// What is known of the tip already; takes no room. `None` where base was not run yet.
///
/// # Errors
/// A base that cannot be scored at all, or our own trouble.
pub async fn known(rooms: &Rooms, repository: &RepoName) -> Result<Option<Look>, NoVerdict> {
    let prepared = Prepared::of(rooms, &nobody()?, repository, None).await?;
    let never = CancellationToken::new();
    let run = prepared.run(rooms, &never);
    let tag = prepared.plan.patch().policy().runner.image.clone();
    let data = rooms.data.clone();
    let image = super::off(move || {
        image::find(&data, &tag)
            .map_err(|error| Aborted::new(AbortedCode::Internal, error.to_string()))
    })
    .await?;
    let Some(image) = image else {
        return Ok(None);
    };
    let Some(base) = run.known_base(&image).await? else {
        return Ok(None);
    };
    let mutants = run.known_mutants(&image).await?;
    let commit = prepared.commit.clone();
    Ok(Some(Look::of(
        commit,
        &base,
        prepared.plan.files(),
        mutants,
    )))
}

/// Run base where it is not known. The changes that were not planted yet are handed out, to be run by the caller.
pub(super) async fn look(
    rooms: &Rooms,
    repository: &RepoName,
    cancel: &CancellationToken,
) -> Result<(Look, Option<Planting>), NoVerdict> {
    let prepared = Prepared::of(rooms, &nobody()?, repository, None).await?;
    let run = prepared.run(rooms, cancel);
    let ground = run.ground().await?;
    let planting = match ground.mutants {
        Some(_) => None,
        None => Some(run.planting(&ground)?),
    };
    let look = Look::of(
        prepared.commit.clone(),
        &ground.base,
        prepared.plan.files(),
        ground.mutants,
    );
    Ok((look, planting))
}

/// Look at the protected tip here and now, planted changes and all.
///
/// # Errors
/// A base that cannot be scored at all, or our own trouble.
pub async fn look_now(
    rooms: &Rooms,
    repository: &RepoName,
    cancel: &CancellationToken,
) -> Result<Look, NoVerdict> {
    let (mut look, planting) = look(rooms, repository, cancel).await?;
    if let Some(mut planting) = planting {
        look.mutants = planting.run(&*rooms.sandbox, cancel).await?;
        if let Some(mutants) = &look.mutants {
            planting.keep(&rooms.store, mutants).await?;
        }
    }
    Ok(look)
}

/// Who looks: an operator that sent nothing.
fn nobody() -> Result<Caller, Aborted> {
    let token = "0000000000000000"
        .parse()
        .map_err(|_| Aborted::new(AbortedCode::Internal, "the nobody token has no id"))?;
    Ok(Caller {
        token,
        role: Role::Operator,
        scope: None,
    })
}

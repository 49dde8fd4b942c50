//! Mixed cases whose sources leave it open what moves them, once more under one changed pin at a time.
//!
//! Advice for the report: nothing of it is kept as evidence, told while it runs, or in a verdict. Only the files with such
//! cases run, in one room for the sealed ones and one for the touched ones, and only if that is soon over.

use super::evidence::{Evidence, Ground, Run};
use super::running::Keeping;
use crate::overlay::LaidOverlay;
use crate::sandbox::{AttemptMode, AttemptOrder, RunOrder, SandboxError};
use std::collections::BTreeMap;
use tribunal_core::id::{NodeId, RepoPath};
use tribunal_core::judge::{Moved, Perturbed, changed_pins, open_cases, settled};
use tribunal_core::outcome::{AttemptFacts, Lane, Pins};
use tribunal_core::reason::Aborted;

/// Attempts under each change, and under none.
const MOST: u32 = 12;
/// Fewer would name nothing: of a fair coin, eight equal throws under any of five changes are too likely.
const FEWEST: u32 = 9;
/// Milliseconds that all of them may take, by how long the attempts before took.
const WORTH_MS: u64 = 90_000;

impl Run<'_> {
    /// Which one change settles which mixed case.
    pub(super) async fn perturb(
        &self,
        ground: &Ground,
        laid: Option<&LaidOverlay>,
        evidence: &Evidence,
    ) -> Result<BTreeMap<NodeId, Moved>, Aborted> {
        let mut moved = BTreeMap::new();
        let property = &evidence.property.attempts;
        let open = open_cases(property);
        let files = files_of(self.plan.files(), &open);
        if let Some(rounds) = rounds(property).filter(|_| !files.is_empty()) {
            self.tell("changing one pin at a time for mixed cases")
                .await;
            let mut order = self.order(&ground.image, &ground.tree, self.overlay.src_tar());
            order.lane = Lane::Perturbed;
            order.files = files;
            let seen = self.perturbed(order, rounds, AttemptMode::Silenced).await?;
            name(&open, property, &seen, &mut moved);
        }
        let Some(laid) = laid else {
            return Ok(moved);
        };
        for run in &evidence.merge.runs {
            let open = open_cases(&run.attempts);
            let files = files_of(&run.files, &open);
            let Some(rounds) = rounds(&run.attempts).filter(|_| !files.is_empty()) else {
                continue;
            };
            self.tell("changing one pin at a time for mixed touched tests")
                .await;
            let owner = format!("{} perturbed", self.id);
            let tree = laid.tree(&ground.image.engine_id, &owner);
            let sandbox = &self.rooms.sandbox;
            let tree = sandbox.seal(tree).await.map_err(super::merge_lane::ours)?;
            let order = self.lane_order(ground, &tree, laid, &files, Lane::Perturbed);
            let seen = self.perturbed(order, rounds, AttemptMode::Merge).await;
            if let Err(SandboxError::Aborted(error)) = sandbox.unseal(tree).await {
                tracing::warn!(%error, "a tree of touched tests is left for a later sweep");
            }
            name(&open, &run.attempts, &seen?, &mut moved);
        }
        Ok(moved)
    }

    async fn perturbed(
        &self,
        mut order: RunOrder,
        rounds: u32,
        mode: AttemptMode,
    ) -> Result<Vec<Perturbed>, Aborted> {
        let Some(first) = self.plan.attempts().first() else {
            return Ok(Vec::new());
        };
        let pins = &first.pins;
        let changes: Vec<Option<Moved>> = std::iter::once(None)
            .chain(Moved::ALL.into_iter().map(Some))
            .collect();
        let other = changed_pins(pins, Some(Moved::HashSeed)).hash_seed;
        order.starts = vec![pins.hash_seed, pins.hash_seed, other, other];
        let each = changes
            .iter()
            .flat_map(|change| (0..rounds).map(move |n| (*change, n)));
        order.attempts = (0_u32..)
            .zip(each)
            .map(|(index, (change, n))| attempt(index, n, pins, change, mode))
            .collect();
        let ran = self.run(order, Keeping::Silence).await?;
        let mut attempts = ran.facts.attempts.into_iter();
        let rounds = usize::try_from(rounds).unwrap_or(0);
        Ok(changes
            .into_iter()
            .map(|changed| Perturbed {
                changed,
                attempts: attempts.by_ref().take(rounds).collect(),
            })
            .collect())
    }
}

/// Those of the files in which one of these cases stands.
fn files_of(files: &[RepoPath], cases: &[NodeId]) -> Vec<RepoPath> {
    let holds = |file: &&RepoPath| {
        cases.iter().any(|node| {
            let place = node.as_str().strip_prefix(file.as_str());
            place.is_some_and(|rest| rest.starts_with("::"))
        })
    };
    files.iter().filter(holds).cloned().collect()
}

fn attempt(
    index: u32,
    n: u32,
    pins: &Pins,
    change: Option<Moved>,
    mode: AttemptMode,
) -> AttemptOrder {
    let first = if change == Some(Moved::HashSeed) {
        2
    } else {
        0
    };
    AttemptOrder {
        mode,
        changed: change,
        ..AttemptOrder::of(index, first + n % 2, changed_pins(pins, change))
    }
}

/// How often each change can be tried; `None` where the attempts took too long for it.
fn rounds(seen: &[AttemptFacts]) -> Option<u32> {
    let count = u64::try_from(seen.len()).ok().filter(|&count| count > 0)?;
    let mean = seen.iter().map(|facts| facts.end.wall_ms).sum::<u64>() / count;
    let changes = u64::try_from(Moved::ALL.len()).unwrap_or(u64::MAX) + 1;
    let each = WORTH_MS / changes / mean.max(1);
    let rounds = u32::try_from(each).unwrap_or(u32::MAX).min(MOST);
    (rounds >= FEWEST).then_some(rounds)
}

fn name(
    open: &[NodeId],
    seen: &[AttemptFacts],
    perturbed: &[Perturbed],
    into: &mut BTreeMap<NodeId, Moved>,
) {
    for node in open {
        if let Some(moved) = settled(node, seen, perturbed) {
            into.insert(node.clone(), moved);
        }
    }
}

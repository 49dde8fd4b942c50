//! The merge lane's rooms: the touched tests as they merge, on the src that is scored, and base's versions of them once.
//!
//! Each room's tree is a volume of its own, which ends with the lane. Files that run equally often share a room. Never
//! judges; what marks a text gained is read in the same room, before any attempt.

use super::base::{key, on_base, plain};
use super::evidence::{Ground, LaneEvidence, Run};
use super::off;
use super::running::Keeping;
use crate::overlay::{LaidOverlay, Texts};
use crate::sandbox::{AttemptMode, AttemptOrder, MarksAsked, RunOrder, SandboxError, SealedTree};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tribunal_core::id::{Digest, RepoPath};
use tribunal_core::judge::{FORBIDDEN, MergeEvidence, MergeRun};
use tribunal_core::outcome::{AttemptFacts, Lane, MarksFound};
use tribunal_core::plan::{Text, TouchedText, reruns};
use tribunal_core::reason::{Aborted, AbortedCode};
use tribunal_core::report;
use tribunal_core::request::Freshness;

/// Everything that the judge sees of touched tests.
#[derive(Default)]
pub(super) struct MergeLane {
    pub(super) base: Option<AttemptFacts>,
    pub(super) runs: Vec<MergeRun>,
    /// How many attempts of each run were stored.
    stored: Vec<usize>,
    pub(super) marks: Vec<MarksFound>,
    /// What was laid over what.
    pub(super) overlay: Option<Digest>,
    pub(super) took: Duration,
}

impl MergeLane {
    /// As the judge takes it.
    pub(super) fn of(&self) -> MergeEvidence<'_> {
        MergeEvidence {
            base: self.base.as_ref(),
            runs: &self.runs,
            marks: &self.marks,
        }
    }

    /// Each attempt with where it came from.
    pub(super) fn sources(&self) -> Vec<(report::AttemptSource, &AttemptFacts)> {
        let runs = self.runs.iter().zip(&self.stored);
        runs.flat_map(|(run, stored)| {
            run.attempts.iter().enumerate().map(move |(n, facts)| {
                if n < *stored {
                    (report::AttemptSource::Stored, facts)
                } else {
                    (report::AttemptSource::Fresh, facts)
                }
            })
        })
        .collect()
    }
}

/// Files that run equally often, with what the store has of them.
struct Group {
    files: Vec<RepoPath>,
    reruns: u32,
    known: LaneEvidence,
}

impl Group {
    fn suffices(&self, freshness: Freshness) -> bool {
        freshness == Freshness::Stored && self.known.stored >= self.reruns as usize
    }
}

impl Run<'_> {
    /// The whole lane; nothing where the patch touches no test.
    pub(super) async fn merge_lane(
        &self,
        ground: &Ground,
        laid: Option<&LaidOverlay>,
        freshness: Freshness,
    ) -> Result<MergeLane, Aborted> {
        let touched = self.plan.touched();
        let Some(laid) = laid else {
            return Ok(MergeLane::default());
        };
        let begun = Instant::now();
        let base = self.merge_base(ground, &touched.base_files).await?;
        let mut groups = Vec::new();
        for (reruns, files) in self.by_reruns(&touched.files) {
            let known = self.stored(&self.merge_key(ground, laid, &files)).await?;
            groups.push(Group {
                files,
                reruns,
                known,
            });
        }
        let (marks, asked) = self.known_marks(ground, laid, &touched.texts).await?;
        let mut lane = MergeLane {
            base,
            marks,
            overlay: Some(laid.digest().clone()),
            stored: groups.iter().map(|group| group.known.stored).collect(),
            ..MergeLane::default()
        };
        let idle = asked.is_empty() && groups.iter().all(|group| group.suffices(freshness));
        if idle {
            lane.runs = groups.into_iter().map(run_of).collect();
        } else {
            self.tell("laying the touched tests over base").await;
            let tree = laid.tree(&ground.image.engine_id, self.id.as_str());
            let sandbox = &self.rooms.sandbox;
            let tree = sandbox.seal(tree).await.map_err(ours)?;
            let ran = self
                .merge_rooms(ground, laid, &tree, groups, asked, freshness, &mut lane)
                .await;
            if let Err(SandboxError::Aborted(error)) = sandbox.unseal(tree).await {
                tracing::warn!(%error, "a tree of touched tests is left for a later sweep");
            }
            ran?;
        }
        lane.took = begun.elapsed();
        Ok(lane)
    }

    /// Proposed tests, for advice: run, told, and not kept.
    pub(super) async fn proposed(
        &self,
        ground: &Ground,
        laid: Option<&LaidOverlay>,
    ) -> Result<Option<Vec<MergeRun>>, Aborted> {
        let Some(laid) = laid else {
            return Ok(None);
        };
        self.tell("laying the proposed tests over base").await;
        let files = &self.plan.touched().proposed.files;
        let runs = self.unkept(ground, laid, files, Lane::Proposed).await?;
        Ok(Some(runs))
    }

    /// These files of a laid tree as often as the policy wants each of them to run: nothing is kept.
    pub(super) async fn unkept(
        &self,
        ground: &Ground,
        laid: &LaidOverlay,
        files: &[RepoPath],
        lane: Lane,
    ) -> Result<Vec<MergeRun>, Aborted> {
        let owner = format!("{} unkept", self.id);
        let tree = laid.tree(&ground.image.engine_id, &owner);
        let sandbox = &self.rooms.sandbox;
        let tree = sandbox.seal(tree).await.map_err(ours)?;
        let ran = self.unkept_rooms(ground, laid, &tree, files, lane).await;
        if let Err(SandboxError::Aborted(error)) = sandbox.unseal(tree).await {
            tracing::warn!(%error, "a tree of laid tests is left for a later sweep");
        }
        ran
    }

    async fn unkept_rooms(
        &self,
        ground: &Ground,
        laid: &LaidOverlay,
        tree: &SealedTree,
        files: &[RepoPath],
        lane: Lane,
    ) -> Result<Vec<MergeRun>, Aborted> {
        let mut runs = Vec::new();
        for (reruns, files) in self.by_reruns(files) {
            let mut order = self.lane_order(ground, tree, laid, &files, lane);
            order.attempts = self.merge_attempts(reruns);
            let ran = self.run(order, Keeping::Progress).await?;
            runs.push(MergeRun {
                files,
                reruns,
                attempts: ran.facts.attempts,
            });
        }
        Ok(runs)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one call, what it was cut out of has them all"
    )]
    async fn merge_rooms(
        &self,
        ground: &Ground,
        laid: &LaidOverlay,
        tree: &SealedTree,
        groups: Vec<Group>,
        mut asked: Vec<(Digest, MarksAsked)>,
        freshness: Freshness,
        lane: &mut MergeLane,
    ) -> Result<(), Aborted> {
        if groups.is_empty() {
            self.marks_room(ground, tree, laid, &mut asked, lane)
                .await?;
        }
        for mut group in groups {
            if asked.is_empty() && group.suffices(freshness) {
                lane.runs.push(run_of(group));
                continue;
            }
            let (names, texts): (Vec<_>, Vec<_>) = std::mem::take(&mut asked).into_iter().unzip();
            let mut order = self.lane_order(ground, tree, laid, &group.files, Lane::Merge);
            order.marks = texts;
            if !group.suffices(freshness) {
                order.attempts = self.merge_attempts(group.reruns);
            }
            let keep = self.merge_key(ground, laid, &group.files);
            let ran = self.run(order, Keeping::Told(keep)).await?.facts;
            group.known.attempts.extend(ran.attempts);
            self.keep_marks(names, ran.marks, lane).await?;
            lane.runs.push(run_of(group));
        }
        Ok(())
    }

    /// Only texts to read: a touched file that no test file stands below.
    async fn marks_room(
        &self,
        ground: &Ground,
        tree: &SealedTree,
        laid: &LaidOverlay,
        asked: &mut Vec<(Digest, MarksAsked)>,
        lane: &mut MergeLane,
    ) -> Result<(), Aborted> {
        let (names, texts): (Vec<_>, Vec<_>) = std::mem::take(asked).into_iter().unzip();
        if texts.is_empty() {
            return Ok(());
        }
        let mut order = self.lane_order(ground, tree, laid, &[], Lane::Merge);
        order.marks = texts;
        let ran = self.run(order, Keeping::Silence).await?.facts;
        self.keep_marks(names, ran.marks, lane).await
    }

    async fn keep_marks(
        &self,
        names: Vec<Digest>,
        found: Vec<MarksFound>,
        lane: &mut MergeLane,
    ) -> Result<(), Aborted> {
        for (name, found) in names.into_iter().zip(found) {
            self.keep_as(name, &found).await?;
            lane.marks.push(found);
        }
        Ok(())
    }

    /// N attempts on the same starts as those of the sealed cases.
    pub(super) fn merge_attempts(&self, reruns: u32) -> Vec<AttemptOrder> {
        let starts = u32::try_from(self.plan.starts().len()).unwrap_or(1).max(1);
        let pins = self.plan.attempts().first().map(|first| &first.pins);
        let each = |pins: &tribunal_core::outcome::Pins| {
            let attempt = |index| AttemptOrder {
                mode: AttemptMode::Merge,
                ..AttemptOrder::of(index, index % starts, pins.clone())
            };
            (0..reruns).map(attempt).collect()
        };
        pins.map(each).unwrap_or_default()
    }

    /// An order for files of a laid tree, all in one process with the product.
    pub(super) fn lane_order(
        &self,
        ground: &Ground,
        tree: &SealedTree,
        laid: &LaidOverlay,
        files: &[RepoPath],
        lane: Lane,
    ) -> RunOrder {
        let mut order = RunOrder {
            lane,
            files: files.to_vec(),
            ..self.order(&ground.image, tree, laid.src_tar())
        };
        order.policy.runner.shared = files.to_vec();
        order
    }

    /// Base's versions of the files on base's src, once.
    async fn merge_base(
        &self,
        ground: &Ground,
        files: &[RepoPath],
    ) -> Result<Option<AttemptFacts>, Aborted> {
        if files.is_empty() {
            return Ok(None);
        }
        let names: Vec<&str> = files.iter().map(|file| file.as_str()).collect();
        let of_base = self.base_key(&ground.image);
        let name = key(&["merge-base/v1", of_base.as_str(), &names.join("\n")]);
        if let Some(base) = self.known(name.clone()).await? {
            return Ok(Some(base));
        }
        self.tell("running base's own versions of the touched tests")
            .await;
        let mut order = self.base_order(&ground.image, &ground.tree)?;
        order.files = files.to_vec();
        order.policy.runner.shared = files.to_vec();
        let attempt = AttemptOrder {
            mode: AttemptMode::Merge,
            ..plain(&order.policy)
        };
        let order = on_base(order, Lane::BaseCollection, vec![attempt]);
        let ran = self.run(order, Keeping::Progress).await?.facts;
        let attempts = ran.attempts;
        let Some(base) = attempts.into_iter().next() else {
            let message = "base's run of the touched tests is not one attempt";
            return Err(Aborted::new(AbortedCode::Internal, message));
        };
        self.keep_as(name, &base).await?;
        Ok(Some(base))
    }

    fn by_reruns(&self, files: &[RepoPath]) -> BTreeMap<u32, Vec<RepoPath>> {
        let policy = self.plan.patch().policy();
        let mut groups: BTreeMap<u32, Vec<RepoPath>> = BTreeMap::new();
        for file in files {
            groups
                .entry(reruns(policy, file))
                .or_default()
                .push(file.clone());
        }
        groups
    }

    /// Under what name attempts of these files are kept.
    pub(super) fn merge_key(
        &self,
        ground: &Ground,
        laid: &LaidOverlay,
        files: &[RepoPath],
    ) -> crate::store::AttemptKey {
        let names: Vec<&str> = files.iter().map(|file| file.as_str()).collect();
        let extra = format!("{}\n{}", laid.digest(), names.join("\n"));
        self.evidence_key(ground, Lane::Merge, &extra)
    }

    /// What the store knows of these texts, and what is still to be asked.
    async fn known_marks(
        &self,
        ground: &Ground,
        laid: &LaidOverlay,
        texts: &[TouchedText],
    ) -> Result<(Vec<MarksFound>, Vec<(Digest, MarksAsked)>), Aborted> {
        let mut known = Vec::new();
        let mut wanted = Vec::new();
        for text in texts {
            let Text::Blob(now) = &text.now else {
                continue;
            };
            let before: Vec<&str> = text.before.iter().map(|id| id.as_str()).collect();
            let more = &self.plan.patch().policy().runs.forbid_marks;
            let name = key(&[
                "marks/v1",
                ground.image.runner_digest.as_str(),
                text.file.as_str(),
                now.as_str(),
                &before.join("\n"),
                &FORBIDDEN.join("\n"),
                &more.join("\n"),
            ]);
            match self.known::<MarksFound>(name.clone()).await? {
                Some(found) => known.push(found),
                None => wanted.push((name, text.file.clone(), now.clone(), text.before.clone())),
            }
        }
        let texts: Texts = laid.texts();
        let asked = off(move || {
            let read = |id: &_| texts.read(id).map_err(Aborted::from);
            wanted
                .into_iter()
                .map(|(name, file, now, before)| {
                    let before = before.iter().map(read).collect::<Result<_, Aborted>>()?;
                    let now = read(&now)?;
                    Ok((name, MarksAsked { file, now, before }))
                })
                .collect::<Result<Vec<_>, Aborted>>()
        })
        .await?;
        Ok((known, asked))
    }
}

fn run_of(group: Group) -> MergeRun {
    MergeRun {
        files: group.files,
        reruns: group.reruns,
        attempts: group.known.attempts,
    }
}

pub(super) fn ours(error: SandboxError) -> Aborted {
    let SandboxError::Aborted(aborted) = error;
    aborted
}

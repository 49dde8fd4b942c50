//! What a judgement found mixed, for the list over time: each case with its digest, and the evidence that was judged.
//!
//! A sealed case is known by the digest of its function, as leases are; a touched test by the blob of its file, for what a
//! patch brings is not compiled to learn a name for it. Never judges.

use super::evidence::{Evidence, Ground, Run};
use crate::overlay::LaidOverlay;
use crate::store::{AttemptKey, Blame, MixedCase};
use tribunal_core::id::{NodeId, RepoPath};
use tribunal_core::judge::{CaseSummary, Judged, sighting};
use tribunal_core::outcome::{AttemptFacts, Lane};
use tribunal_core::report::told_name;

/// Mixed cases of one score that are kept for the list; the report has all.
const MOST: usize = 500;

impl Run<'_> {
    /// All of it, sealed cases first.
    pub(super) fn mixed(
        &self,
        ground: &Ground,
        laid: Option<&LaidOverlay>,
        evidence: &Evidence,
        judged: &Judged,
    ) -> Vec<MixedCase> {
        let property = &evidence.property.attempts;
        let key = self.evidence_key(ground, Lane::Property, "");
        let sealed = judged.cases().iter().filter_map(|case| {
            let digest = || function_digest(ground, case, property);
            self.seen(case, property, &key, digest)
        });
        let mut mixed: Vec<MixedCase> = sealed.collect();
        for run in &evidence.merge.runs {
            let (Some(laid), Some(judged)) = (laid, judged.merge()) else {
                continue;
            };
            let key = self.merge_key(ground, laid, &run.files);
            let blob = |file: &RepoPath| laid.blob(file).map(|id| format!("blob:{id}"));
            mixed.extend(judged.cases.iter().filter_map(|case| {
                let file = case.file.as_ref().filter(|file| run.files.contains(file))?;
                self.seen(case, &run.attempts, &key, || blob(file).unwrap_or_default())
            }));
        }
        mixed.truncate(MOST);
        mixed
    }

    fn seen(
        &self,
        case: &CaseSummary,
        attempts: &[AttemptFacts],
        evidence: &AttemptKey,
        digest: impl FnOnce() -> String,
    ) -> Option<MixedCase> {
        let seen = sighting(case, attempts)?;
        let diagnosis = case.diagnosis.as_ref()?;
        let level = self.plan.patch().policy().feedback.agent;
        Some(MixedCase {
            for_agent: told_name(&case.node, case.origin, evidence.lane, level),
            evidence: evidence.clone(),
            node: case.node.clone(),
            digest: digest(),
            attempts: seen.attempts,
            failures: seen.failures,
            blame: Blame {
                source: diagnosis.source,
                moved: diagnosis.moved,
                owed: diagnosis.owed,
            },
        })
    }
}

/// The digest of the sealed function that the case comes from; empty where it has no code object.
fn function_digest(ground: &Ground, case: &CaseSummary, attempts: &[AttemptFacts]) -> String {
    let qualname = |node: &NodeId| {
        let base = std::iter::once(&ground.base.attempt);
        let mut collected = base.chain(attempts).flat_map(|facts| &facts.collected);
        collected.find(|found| found.node == *node)
    };
    let Some(found) = qualname(&case.node) else {
        return String::new();
    };
    let mut digests = ground.base.digests.iter();
    let digest = digests.find(|d| d.file == found.file && d.qualname == found.qualname);
    digest.map(|d| d.v2.clone()).unwrap_or_default()
}

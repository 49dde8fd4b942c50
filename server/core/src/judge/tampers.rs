//! What product code did to its judge: tampers, canaries and the must-fail rerun, to grounds.
//!
//! Base's own code may do the same things for reasons of its own: what base shows too, for that case or outside of any, is
//! nobody's fault. Much of it depends on pins and on questions that are drawn for each attempt; so before anything counts,
//! base is run under the very draw in which head did it. What was seen is text that the candidate can choose, so it stands in `seen`, never in `detail`.

use super::docket::Entry;
use super::judged::{About, Ground};
use super::modes::NeedShared;
use super::{Evidence, prose};
use crate::id::{NodeId, RepoPath};
use crate::outcome::{
    AttemptFacts, CaseRecord, Class, Phase, PhaseOutcome, Raiser, Tamper, TamperKind, When,
};
use crate::reason::Reason;
use crate::text::shown;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// What a must-fail attempt's cases end with.
const MUST_FAIL: &str = "MustFail";

/// The must-fail rerun.
#[derive(Debug, Clone, Copy, Default)]
pub struct MustFailEvidence<'a> {
    /// Attempts on head.
    pub head: &'a [AttemptFacts],
    /// Attempts on base's own src, for the cases that head did not fail.
    pub base: &'a [AttemptFacts],
}

/// What is still to be run of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MustFailWants {
    /// Cases to run on head.
    pub head: Vec<NodeId>,
    /// Cases to run on base.
    pub base: Vec<NodeId>,
}

impl MustFailWants {
    /// Whether nothing is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.head.is_empty() && self.base.is_empty()
    }
}

/// A draw under which base is to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskBase {
    /// That of the pinned attempt with this index.
    Pinned(u32),
    /// The held-out draw of this number.
    HeldOut(u32),
}

/// What is held against the patch, or what base must be asked before anything is.
#[derive(Default)]
pub(super) struct Heard {
    pub(super) grounds: Vec<Ground>,
    pub(super) ask: Option<AskBase>,
}

/// One thing seen, and where.
#[derive(Default)]
struct Seen<'a> {
    attempts: BTreeSet<usize>,
    cases: BTreeSet<&'a NodeId>,
    whats: BTreeSet<&'a str>,
}

/// What base does as well.
struct OnBase<'a> {
    outside: HashSet<&'a Tamper>,
    within: HashSet<(&'a NodeId, &'a Tamper)>,
    anywhere: HashSet<&'a Tamper>,
    /// Cases that base passes.
    holds: HashSet<&'a NodeId>,
    /// Cases that base's own product does not end by raising: of others it is not known what it does to arguments and environment.
    through: HashSet<&'a NodeId>,
}

impl<'a> OnBase<'a> {
    fn of(attempts: impl Iterator<Item = &'a AttemptFacts>) -> Self {
        let attempts: Vec<&AttemptFacts> = attempts.collect();
        let cases: Vec<&CaseRecord> = attempts.iter().flat_map(|a| &a.cases).collect();
        let where_all = |is: fn(&Phase) -> bool| {
            let found = cases.iter().filter(move |case| case.phases.iter().all(is));
            found.map(|case| &case.node).collect()
        };
        let within: HashSet<(&NodeId, &Tamper)> = cases
            .iter()
            .flat_map(|case| {
                let all = case.phases.iter().flat_map(|phase| &phase.tamper);
                all.map(|tamper| (&case.node, tamper))
            })
            .collect();
        Self {
            through: where_all(|phase| phase.by != Raiser::Product),
            holds: where_all(|phase| phase.outcome == PhaseOutcome::Passed),
            outside: attempts.iter().flat_map(|a| &a.tamper).collect(),
            anywhere: within.iter().map(|(_, tamper)| *tamper).collect(),
            within,
        }
    }

    /// A case that base does not pass need not have come as far there; none of those is what a patch must pass.
    fn does(&self, node: Option<&NodeId>, tamper: &Tamper) -> bool {
        self.outside.contains(tamper)
            || node.is_some_and(|node| {
                self.within.contains(&(node, tamper))
                    || (self.anywhere.contains(tamper) && !self.holds.contains(node))
            })
    }
}

/// What was done in head's attempts that base does not do, not even under the draw in which head did it.
pub(super) fn hear(evidence: &Evidence<'_>) -> Heard {
    let (pinned, held) = (evidence.base_under, evidence.held_out);
    let known = evidence.base_run.iter().chain(pinned).chain(held.base);
    let base = OnBase::of(known);
    let lane = |head, under, about| runtime(head, &base, under, evidence.need_shared, about);
    let (mut grounds, open) = lane(evidence.property, pinned, About::Case);
    let (drawn, hidden) = lane(held.head, held.base, About::HeldOut);
    grounds.extend(drawn);
    let open = open.map(AskBase::Pinned);
    let ask = open.or(hidden.map(AskBase::HeldOut));
    Heard {
        ask: ask.filter(|_| grounds.is_empty()),
        grounds,
    }
}

/// What was done in these attempts that base does not do, and the first of them whose draw base was not run `under` yet.
/// `about` says how far it may be told.
fn runtime(
    attempts: &[AttemptFacts],
    base: &OnBase<'_>,
    under: &[AttemptFacts],
    need_shared: &NeedShared,
    about: About,
) -> (Vec<Ground>, Option<u32>) {
    let asked: BTreeSet<u32> = under.iter().map(|attempt| attempt.index).collect();
    let mut open = None;
    let mut kinds: BTreeMap<TamperKind, Seen<'_>> = BTreeMap::new();
    for (number, attempt) in (1..).zip(attempts) {
        let within = attempt.cases.iter().flat_map(|case| {
            let all = case.phases.iter().flat_map(|phase| &phase.tamper);
            all.map(|tamper| (Some(&case.node), tamper))
        });
        let outside = attempt.tamper.iter().map(|tamper| (None, tamper));
        for (node, tamper) in outside.chain(within) {
            let excused = tamper.kind == TamperKind::Refused
                && node.is_some_and(|node| needs_shared(need_shared, node));
            let unknown = tamper.kind == TamperKind::Changed
                && node.is_some_and(|node| !base.through.contains(node));
            if excused || unknown || base.does(node, tamper) {
                continue;
            }
            // No draw makes honest code write to the links.
            if tamper.kind != TamperKind::Protocol && !asked.contains(&attempt.index) {
                open = open.or(Some(attempt.index));
                continue;
            }
            let seen = kinds.entry(tamper.kind).or_default();
            seen.attempts.insert(number);
            seen.cases.extend(node);
            seen.whats.insert(&tamper.what);
        }
    }
    let grounds = kinds
        .into_iter()
        .map(|(kind, seen)| told(kind, &seen, attempts.len(), about))
        .collect();
    (grounds, open)
}

fn needs_shared(need: &NeedShared, node: &NodeId) -> bool {
    need.keys().any(|file| in_file(node, file))
}

fn in_file(node: &NodeId, file: &RepoPath) -> bool {
    node.as_str()
        .strip_prefix(file.as_str())
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn told(kind: TamperKind, seen: &Seen<'_>, total: usize, about: About) -> Ground {
    let reason = match kind {
        TamperKind::Protocol => Reason::TamperResultChannel,
        TamperKind::Refused
        | TamperKind::UniversalEquality
        | TamperKind::Lied
        | TamperKind::ForeignModule
        | TamperKind::Changed
        | TamperKind::Witness
        | TamperKind::Audit => Reason::TamperRuntime,
    };
    let did = match kind {
        TamperKind::Refused => "product code asked the sealed side for what it may not have",
        TamperKind::UniversalEquality => "a product object claims to equal what it cannot know",
        TamperKind::Lied => "product code forged a value",
        TamperKind::Protocol => "product code sent a message of its own making",
        TamperKind::ForeignModule => {
            "a module of the product came from outside src and its dependencies"
        }
        TamperKind::Changed => {
            "product code changed what a test goes by (what it passed, its environment, its directory) and base leaves alone, so that what the test expects is no longer its own"
        }
        TamperKind::Witness => "product code replaced what is not its own",
        TamperKind::Audit => "product code asked the interpreter for what no product needs",
    };
    let numbers: Vec<usize> = seen.attempts.iter().copied().collect();
    let mut detail = format!("{did}, in {}", prose::attempts(&numbers, total));
    let cases: Vec<&NodeId> = seen.cases.iter().copied().collect();
    if about == About::Case && cases.len() > 1 {
        detail.push_str(&format!(", in {}", prose::cases(&cases)));
    }
    let whats: Vec<String> = seen.whats.iter().take(3).map(|w| shown(w, 200)).collect();
    Ground {
        reason,
        about,
        subject: match (about, cases.as_slice()) {
            (About::Case, [first, ..]) => Some(first.to_string()),
            (About::Case, []) | (About::Patch | About::HeldOut, _) => None,
        },
        detail,
        seen: Some(whats.join(" | ")),
    }
}

/// Canaries that passed. Where base's own do too (a conftest that changes outcomes), they say nothing.
pub(super) fn canaries(
    attempts: &[AttemptFacts],
    base: &[AttemptFacts],
    about: About,
) -> Option<Ground> {
    if base.iter().any(|attempt| attempt.canaries.passed > 0) {
        return None;
    }
    let numbers: Vec<usize> = (1..)
        .zip(attempts)
        .filter(|(_, attempt)| attempt.canaries.passed > 0)
        .map(|(number, _)| number)
        .collect();
    (!numbers.is_empty()).then(|| Ground {
        reason: Reason::TamperCanary,
        about,
        subject: None,
        detail: format!(
            "a planted case that must fail did not fail as it must, in {}",
            prose::attempts(&numbers, attempts.len())
        ),
        seen: None,
    })
}

/// Cases of shared files that passed every time: those that the must-fail rerun is asked about.
fn asked<'a>(entries: &'a [Entry<'_>], shared: &[RepoPath]) -> Vec<&'a NodeId> {
    entries
        .iter()
        .filter(|entry| entry.class == Class::StablePass)
        .filter(|entry| {
            let file = entry.case.file.as_ref();
            file.is_some_and(|file| shared.contains(file))
        })
        .map(|entry| &entry.case.node)
        .collect()
}

/// Those of them that none of these attempts failed in the one way that they must.
fn unfailed<'a>(asked: &[&'a NodeId], attempts: &[AttemptFacts]) -> Vec<&'a NodeId> {
    let failed: HashSet<&NodeId> = attempts
        .iter()
        .flat_map(|attempt| &attempt.cases)
        .filter(|case| {
            let mut red = case
                .phases
                .iter()
                .filter(|phase| phase.outcome == PhaseOutcome::Failed);
            let first = red.next();
            first.is_some_and(|phase| {
                phase.when == When::Call
                    && phase.reported
                    && phase.by != Raiser::Product
                    && phase
                        .exception
                        .as_ref()
                        .is_some_and(|e| e.kind == MUST_FAIL)
            })
        })
        .map(|case| &case.node)
        .collect();
    let open = asked.iter().filter(|node| !failed.contains(**node));
    open.copied().collect()
}

pub(super) fn wants(
    entries: &[Entry<'_>],
    shared: &[RepoPath],
    evidence: MustFailEvidence<'_>,
) -> MustFailWants {
    let asked = asked(entries, shared);
    let own = |nodes: Vec<&NodeId>| nodes.into_iter().cloned().collect();
    if asked.is_empty() {
        MustFailWants::default()
    } else if evidence.head.is_empty() {
        MustFailWants {
            head: own(asked),
            base: Vec::new(),
        }
    } else if evidence.base.is_empty() {
        MustFailWants {
            head: Vec::new(),
            base: own(unfailed(&asked, evidence.head)),
        }
    } else {
        MustFailWants::default()
    }
}

/// Cases that head did not fail although they must fail, and that base does not pass either.
pub(super) fn must_fail(
    entries: &[Entry<'_>],
    shared: &[RepoPath],
    evidence: MustFailEvidence<'_>,
) -> Option<Ground> {
    if evidence.head.is_empty() {
        return None;
    }
    let asked = asked(entries, shared);
    let open = unfailed(&asked, evidence.head);
    // Red there in another way is no excuse: only that the sealed code itself swallows such a failure.
    let passed = |case: &&CaseRecord| {
        case.phases
            .iter()
            .all(|p| p.outcome == PhaseOutcome::Passed)
    };
    let cases = evidence.base.iter().flat_map(|attempt| &attempt.cases);
    let on_base: HashSet<&NodeId> = cases.filter(passed).map(|case| &case.node).collect();
    let guilty: Vec<&NodeId> = open
        .into_iter()
        .filter(|node| !on_base.contains(node))
        .collect();
    let first = guilty.first()?;
    Some(Ground {
        reason: Reason::TamperCanary,
        about: About::Case,
        subject: Some(first.to_string()),
        detail: format!(
            "with a failure at each end of its test, {} did not fail by it",
            prose::cases(&guilty)
        ),
        seen: None,
    })
}

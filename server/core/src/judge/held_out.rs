//! Attempts under pins that were not announced: which cases they hold against the patch.
//!
//! A case that fails there is compared with base under the same draw: red there too, it depends on the pins and that is a
//! warning; green, it is code that holds only where it was told what to expect. A case that base fails under the policy's
//! own pins cannot be compared: it is drawn once more, and a second failure counts. Cases that the policy names are
//! exempt. What a cassette fixes for its case no draw moves: such a case is held to what is left.
//!
//! What is told leaves the server: so a subject is a name that base itself gives a case, never one that head made up
//! while it knew the draw; everything else stands in `detail`, which only the operator gets.

use super::docket::{self, Entry};
use super::expected::{self, Case};
use super::judged::{About, FailureText, Ground, OnBase, Origin};
use super::observed::Observed;
use crate::held_out::is_exempt;
use crate::id::{NodeId, RepoPath};
use crate::outcome::{AttemptFacts, Class, End, Outcome};
use crate::policy::Runs;
use crate::reason::Reason;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What was seen under held-out pins. The index of an attempt is the number of its draw, on head and on base alike.
#[derive(Debug, Clone, Copy, Default)]
pub struct HeldOutEvidence<'a> {
    /// How many draws the score was to make.
    pub planned: u32,
    /// Attempts on head.
    pub head: &'a [AttemptFacts],
    /// Attempts on base's own src.
    pub base: &'a [AttemptFacts],
}

/// What is still to be run before the cases can be judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldOutWants {
    /// The number of a draw to make on head.
    pub again: Option<u32>,
    /// Draws under which base is to be run.
    pub base: Vec<u32>,
    /// Cases that failed and are not cleared yet, by the names that they are counted under.
    pub suspects: Vec<String>,
}

impl HeldOutWants {
    /// Whether nothing is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.again.is_none() && self.base.is_empty()
    }
}

/// Where a case stands.
enum Standing {
    Holds,
    Sensitive,
    Fails,
    Again,
    AskBase(Vec<u32>),
}

/// One case that failed somewhere.
struct Suspect {
    case: Case,
    failed: Vec<u32>,
    /// It was not reached in any draw in which it failed: something before it ended the attempt.
    lost: bool,
    standing: Standing,
}

/// What the judge gets of it.
#[derive(Default)]
pub(super) struct Heard {
    pub(super) src: Vec<Ground>,
    pub(super) warnings: Vec<Ground>,
    pub(super) wants: HeldOutWants,
    /// Names under which failures are counted.
    pub(super) failures: Vec<String>,
    /// By case: its outcome per draw, what it said, whether it is held against the patch.
    pub(super) cases: HashMap<NodeId, HeldOutCase>,
}

/// A case of the docket as it was under held-out pins.
#[derive(Default)]
pub(super) struct HeldOutCase {
    pub(super) outcomes: Vec<(u32, Outcome)>,
    pub(super) failure: Option<FailureText>,
    pub(super) code: Option<Reason>,
}

pub(super) fn hear(
    files: &[RepoPath],
    runs: &Runs,
    base: &AttemptFacts,
    entries: &[Entry<'_>],
    evidence: &HeldOutEvidence<'_>,
) -> Heard {
    let head: Vec<Observed<'_>> = evidence.head.iter().map(Observed::of).collect();
    let on_base: Vec<Observed<'_>> = evidence.base.iter().map(Observed::of).collect();
    let draws: BTreeSet<u32> = head.iter().map(|attempt| attempt.facts.index).collect();
    let known: HashMap<&NodeId, &Entry<'_>> = entries.iter().map(|e| (&e.case.node, e)).collect();
    let mut heard = Heard::default();
    let mut suspects = Vec::new();
    for case in expected::cases(base, files, head.iter().map(|attempt| attempt.facts)) {
        let entry = known.get(&case.node).copied();
        // What is held against the patch already needs no second reason.
        if entry.is_some_and(|entry| entry.code().is_some()) {
            continue;
        }
        let outcomes: Vec<(u32, Outcome)> = head
            .iter()
            .filter(|attempt| case.origin == Origin::Base || attempt.shows(&case.node))
            .filter_map(|attempt| Some((attempt.facts.index, attempt.outcome(&case)?)))
            .collect();
        let failing = |outcome: &Outcome| fails(entry, &case, outcome);
        let failed: BTreeSet<u32> = outcomes
            .iter()
            .filter(|(_, outcome)| failing(outcome))
            .map(|(draw, _)| *draw)
            .collect();
        let failed: Vec<u32> = failed.into_iter().collect();
        let lost = head
            .iter()
            .filter(|attempt| failed.contains(&attempt.facts.index))
            .all(|attempt| attempt.facts.end.end != End::Finished && !attempt.reached(&case.node));
        let standing = if failed.is_empty() || is_exempt(runs, &case.node) {
            Standing::Holds
        } else if entry.and_then(|entry| entry.on_base) == Some(OnBase::Red) {
            again(failed.len(), draws.len(), evidence.planned)
        } else {
            compared(&failed, |draw| {
                let mut there = on_base.iter().filter(|attempt| attempt.facts.index == draw);
                let first = there.next()?;
                Some(std::iter::once(first).chain(there).any(|attempt| {
                    // What only head has cannot be base's fault.
                    (case.origin == Origin::Base || attempt.shows(&case.node))
                        && attempt
                            .outcome(&case)
                            .is_some_and(|outcome| failing(&outcome))
                }))
            })
        };
        if let Some(entry) = entry {
            let seen = HeldOutCase {
                failure: docket::said(&entry.case, &outcomes, &head),
                outcomes,
                code: matches!(standing, Standing::Fails).then_some(Reason::HeldOutPins),
            };
            heard.cases.insert(case.node.clone(), seen);
        }
        if !matches!(standing, Standing::Holds) {
            suspects.push(Suspect {
                case,
                failed,
                lost,
                standing,
            });
        }
    }
    heard.tell(suspects, &draws);
    heard
}

impl Heard {
    fn tell(&mut self, suspects: Vec<Suspect>, draws: &BTreeSet<u32>) {
        let mut asked = BTreeSet::new();
        // By name: several ids that head made up may be one function of base's.
        let mut failing: BTreeMap<Option<String>, Ground> = BTreeMap::new();
        let mut lost = Vec::new();
        for suspect in suspects {
            let name = known_name(&suspect.case);
            let told = |reason| Ground {
                reason,
                about: About::HeldOut,
                subject: name.clone(),
                detail: format!(
                    "{} fails under {} of {} held-out draws ({})",
                    crate::text::shown(suspect.case.node.as_str(), 300),
                    suspect.failed.len(),
                    draws.len(),
                    numbers(&suspect.failed),
                ),
                seen: None,
            };
            match &suspect.standing {
                Standing::Holds => {}
                Standing::Sensitive => self.warnings.push(told(Reason::PinSensitive)),
                Standing::Fails if suspect.lost => {
                    lost.push((name.clone(), told(Reason::HeldOutPins)))
                }
                Standing::Fails => {
                    failing
                        .entry(name.clone())
                        .or_insert_with(|| told(Reason::HeldOutPins));
                }
                Standing::Again => {
                    self.wants.again = draws.last().map_or(Some(0), |last| last.checked_add(1));
                    self.wants.suspects.extend(name);
                }
                Standing::AskBase(missing) => {
                    asked.extend(missing.iter().copied());
                    self.wants.suspects.extend(name);
                }
            }
        }
        // A death takes the cases after it along; where nothing else is told, the first of them stands for it.
        if failing.is_empty() {
            failing.extend(lost.into_iter().take(1));
        }
        self.wants.base = asked.into_iter().collect();
        self.failures = failing.keys().flatten().cloned().collect();
        self.src = failing.into_values().collect();
    }
}

/// A case that base fails under the policy's pins, and that was green on head: one failure may be chance, two are not.
fn again(failed: usize, drawn: usize, planned: u32) -> Standing {
    if failed > 1 {
        Standing::Fails
    } else if drawn > planned as usize {
        Standing::Sensitive
    } else {
        Standing::Again
    }
}

/// Base under the draws in which head failed: green once is enough to hold it against the patch.
fn compared(failed: &[u32], red_on_base: impl Fn(u32) -> Option<bool>) -> Standing {
    let answers: Vec<(u32, Option<bool>)> = failed
        .iter()
        .map(|draw| (*draw, red_on_base(*draw)))
        .collect();
    if answers.iter().any(|(_, red)| *red == Some(false)) {
        return Standing::Fails;
    }
    let missing: Vec<u32> = answers
        .iter()
        .filter(|(_, red)| red.is_none())
        .map(|(draw, _)| *draw)
        .collect();
    if missing.is_empty() {
        Standing::Sensitive
    } else {
        Standing::AskBase(missing)
    }
}

/// What passes under the policy's pins must pass under others; what is silent there must not turn red.
fn fails(entry: Option<&Entry<'_>>, case: &Case, outcome: &Outcome) -> bool {
    if entry.is_none() && case.origin == Origin::Foreign {
        return true;
    }
    match entry.map(|entry| entry.class) {
        Some(Class::Silenced) => outcome.red().is_some(),
        Some(Class::StablePass | Class::StableRed | Class::Mixed) | None => {
            *outcome != Outcome::Passed
                && !(entry.is_none() && outcome.is_silent() && case.origin == Origin::Base)
        }
    }
}

/// The result channel held something that the harness did not write.
pub(super) fn tampered(attempts: &[AttemptFacts]) -> Option<Ground> {
    let spoiled = |attempt: &&AttemptFacts| attempt.end.end == End::Protocol;
    let numbers: Vec<u32> = attempts.iter().filter(spoiled).map(|a| a.index).collect();
    (!numbers.is_empty()).then(|| Ground {
        reason: Reason::TamperResultChannel,
        about: About::HeldOut,
        subject: None,
        detail: format!(
            "in held-out draw {}, something came that is no record",
            self::numbers(&numbers)
        ),
        seen: None,
    })
}

/// The name that base gives it: its id, or the sealed function that an id of head's own making comes from.
fn known_name(case: &Case) -> Option<String> {
    match (case.origin, &case.file) {
        (Origin::Base, _) => Some(case.node.to_string()),
        (Origin::Extra, Some(file)) => {
            Some(format!("{file}::{}", case.qualname.replace('.', "::")))
        }
        (Origin::Extra, None) | (Origin::Foreign, _) => None,
    }
}

fn numbers(draws: &[u32]) -> String {
    let numbers: Vec<String> = draws.iter().map(|draw| (draw + 1).to_string()).collect();
    numbers.join(", ")
}

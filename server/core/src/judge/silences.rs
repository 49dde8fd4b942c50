//! Is every silence paid for? Silenced cases, their leases and the unsilenced side run to grounds and warnings.

use super::docket::Entry;
use super::judged::{About, Ground, LeaseSummary, Origin};
use super::observed::Observed;
use super::src_score::death_ground;
use super::{Incomplete, prose};
use crate::id::{NodeId, RepoPath, UnixTime};
use crate::lease::{Fault, Functions, Lease, LeaseFile, Match, ShortDigest, expired, standing};
use crate::outcome::{Class, Outcome, Signature, death};
use crate::reason::Reason;
use crate::text::shown;
use std::collections::{BTreeSet, HashMap};

/// A lease that ends within this is about to be missed.
const SOON: i64 = 7 * 24 * 3600;

/// What the silences of a score come to.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) flake: Vec<Ground>,
    pub(super) src: Vec<Ground>,
    pub(super) warnings: Vec<Ground>,
    pub(super) leases: Vec<LeaseSummary>,
    /// Outcomes of the side run and the code, per silenced case.
    pub(super) cases: HashMap<NodeId, (Vec<Outcome>, Option<Reason>)>,
    /// The earliest end of a lease that holds and is used.
    pub(super) earliest: Option<UnixTime>,
}

/// What the judge asks of the side run, known once the property lane is over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SideRun {
    /// The leased cases, to be run unsilenced.
    pub cases: Vec<NodeId>,
    /// Their files, whose functions' digests are wanted.
    pub files: Vec<RepoPath>,
}

impl SideRun {
    /// There is nothing to run.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }
}

/// Cases whose lease is worth trying: silenced, leased, in date, with a signature.
pub(super) fn side_run(entries: &[Entry<'_>], gate: UnixTime) -> SideRun {
    let mut files = BTreeSet::new();
    let mut cases = Vec::new();
    for entry in entries {
        if leased_silence(entry).is_some_and(|lease| worth_trying(lease, gate)) {
            files.extend(entry.case.file.clone());
            cases.push(entry.case.node.clone());
        }
    }
    SideRun {
        cases,
        files: files.into_iter().collect(),
    }
}

fn worth_trying(lease: &Lease, gate: UnixTime) -> bool {
    expired(lease, gate).is_none() && !lease.signature.is_empty()
}

/// The lease that a silenced case of base's is silent under.
fn leased_silence<'a>(entry: &Entry<'a>) -> Option<&'a Lease> {
    if entry.class != Class::Silenced || entry.case.origin != Origin::Base {
        return None;
    }
    let (lease, found) = entry.lease?;
    match found {
        Match::No | Match::Ambiguous => None,
        Match::Function | Match::FunctionByPath | Match::Case | Match::CaseByPath => Some(lease),
    }
}

/// Everything the judgement of silences looks at.
pub(super) struct Hearing<'a, 'e> {
    pub(super) entries: &'e [Entry<'a>],
    pub(super) leases: &'a LeaseFile,
    pub(super) side: &'e [Observed<'e>],
    pub(super) functions: Functions<'e>,
    pub(super) short: ShortDigest,
    pub(super) gate: UnixTime,
}

impl<'a> Hearing<'a, '_> {
    pub(super) fn hear(&self) -> Result<Heard, Incomplete> {
        let mut heard = Heard::default();
        let mut refused: HashMap<&str, BTreeSet<Reason>> = HashMap::new();
        let mut used: HashMap<&str, Vec<NodeId>> = HashMap::new();
        for entry in self
            .entries
            .iter()
            .filter(|e| e.class == Class::Silenced && e.case.origin == Origin::Base)
        {
            let Some(lease) = leased_silence(entry) else {
                heard.flake.push(unleased(entry));
                heard.cases.insert(
                    entry.case.node.clone(),
                    (Vec::new(), Some(Reason::UnleasedSkip)),
                );
                continue;
            };
            used.entry(&lease.qualname)
                .or_default()
                .push(entry.case.node.clone());
            let case = self.leased(entry, lease)?;
            let node = Some(entry.case.node.to_string());
            let ground = |fault: Fault, seen: Option<String>| Ground {
                reason: fault.reason,
                about: About::Case,
                subject: node.clone(),
                detail: format!("lease `{}`: {}", shown(&lease.qualname, 200), fault.detail),
                seen,
            };
            refused
                .entry(&lease.qualname)
                .or_default()
                .extend(case.faults.iter().map(|(f, _)| f.reason));
            let code = case.faults.first().map(|(fault, _)| fault.reason);
            if case.faults.is_empty() {
                heard.earliest = heard.earliest.into_iter().chain([lease.expires_at]).min();
                heard
                    .warnings
                    .extend(self.expires_soon(lease).map(|fault| ground(fault, None)));
            }
            for (fault, seen) in case.faults {
                let reason = fault.reason;
                if is_src_score(reason) {
                    heard.src.push(ground(fault, seen));
                } else {
                    heard.flake.push(ground(fault, seen));
                }
            }
            heard
                .warnings
                .extend(case.warnings.into_iter().map(|fault| ground(fault, None)));
            heard
                .cases
                .insert(entry.case.node.clone(), (case.unsilenced, code));
        }
        heard.flake.extend(self.deaths(&heard));
        for lease in self.leases.leases() {
            let cases = used.remove(lease.qualname.as_str()).unwrap_or_default();
            let refused = refused.remove(lease.qualname.as_str()).unwrap_or_default();
            heard.warnings.extend(self.idle(lease, &cases));
            heard.leases.push(LeaseSummary {
                qualname: lease.qualname.clone(),
                owner: lease.owner.clone(),
                reason: lease.reason.clone(),
                expires_at: lease.expires_at,
                cases,
                refused: refused.into_iter().collect(),
            });
        }
        Ok(heard)
    }

    /// One silenced case under its lease.
    fn leased(&self, entry: &Entry<'a>, lease: &Lease) -> Result<Leased, Incomplete> {
        let mut case = Leased::default();
        let Some(file) = &entry.case.file else {
            return Ok(case);
        };
        let (faults, warnings) = standing(
            lease,
            file,
            &entry.case.qualname,
            self.functions,
            self.short,
            self.gate,
        );
        case.faults = faults.into_iter().map(|fault| (fault, None)).collect();
        case.warnings = warnings;
        if !worth_trying(lease, self.gate) {
            return Ok(case);
        }
        case.unsilenced = self
            .side
            .iter()
            .map(|attempt| attempt.outcome(&entry.case).unwrap_or(Outcome::Missing))
            .collect();
        if case.unsilenced.is_empty() {
            return Err(Incomplete::NoSideRun(entry.case.node.clone()));
        }
        let mut passes = 0;
        for (number, outcome) in (1..).zip(&case.unsilenced) {
            match against(lease, outcome) {
                Against::Passes => passes += 1,
                Against::Covered => {}
                Against::Fault(reason, what) => {
                    if case.faults.iter().all(|(fault, _)| fault.reason != reason) {
                        let place = prose::attempts(&[number], case.unsilenced.len());
                        let detail = format!("unsilenced, in {place}, {what}");
                        case.faults.push((
                            Fault { reason, detail },
                            prose::seen(std::slice::from_ref(outcome)),
                        ));
                    }
                }
            }
        }
        if passes == case.unsilenced.len() && case.faults.is_empty() {
            case.warnings.push(Fault {
                reason: Reason::LeaseNotNeeded,
                detail: format!("unsilenced, it passed in all of {passes} attempts"),
            });
        }
        Ok(case)
    }

    /// Attempts of the side run that died outside of every leased case; inside, the case's own outcome tells it.
    fn deaths(&self, heard: &Heard) -> Vec<Ground> {
        let mut deaths = Vec::new();
        for (place, attempt) in self.side.iter().enumerate() {
            let Some(code) = death(attempt.facts.end.end) else {
                continue;
            };
            let told = heard
                .cases
                .values()
                .filter_map(|(outcomes, _)| outcomes.get(place))
                .any(|outcome| outcome.red() == Some(code));
            if !told && code != Reason::TamperResultChannel {
                let mut ground =
                    death_ground(code, attempt.facts, &[place + 1], self.side.len(), 0);
                ground.detail = format!("lease side run: {}", ground.detail);
                deaths.push(ground);
            }
        }
        deaths
    }

    fn expires_soon(&self, lease: &Lease) -> Option<Fault> {
        (lease.expires_at.0.saturating_sub(self.gate.0) <= SOON).then(|| Fault {
            reason: Reason::LeaseExpiresSoon,
            detail: format!(
                "it ends at {}; its owner is {}",
                lease.expires_at.rfc3339(),
                shown(&lease.owner, 100)
            ),
        })
    }

    /// A lease that nothing is silent under.
    fn idle(&self, lease: &Lease, cases: &[NodeId]) -> Option<Ground> {
        if !cases.is_empty() {
            return None;
        }
        let named: Vec<&Entry<'a>> = self
            .entries
            .iter()
            .filter(|entry| {
                entry
                    .lease
                    .is_some_and(|(l, _)| l.qualname == lease.qualname)
            })
            .collect();
        let ambiguous = named.iter().any(|entry| {
            entry
                .lease
                .is_some_and(|(_, found)| found == Match::Ambiguous)
        });
        let (reason, detail) = if ambiguous {
            (
                Reason::LeaseUnused,
                "several sealed files have this stem: give the full node id",
            )
        } else if named.is_empty() {
            (Reason::LeaseUnused, "no sealed case has this name")
        } else {
            (
                Reason::LeaseNotNeeded,
                "nothing silences the case that it names",
            )
        };
        Some(Ground {
            reason,
            about: About::Patch,
            subject: Some(lease.qualname.clone()),
            detail: detail.to_owned(),
            seen: None,
        })
    }
}

#[derive(Default)]
struct Leased {
    unsilenced: Vec<Outcome>,
    faults: Vec<(Fault, Option<String>)>,
    warnings: Vec<Fault>,
}

fn unleased(entry: &Entry<'_>) -> Ground {
    let total = entry.outcomes.len();
    let all: Vec<usize> = (1..=total).collect();
    let word = entry.outcomes.first().map_or("skipped", Outcome::word);
    let ambiguous = entry.lease.map(|(lease, _)| {
        format!(
            "; lease `{}` does not say which of the files of this stem it means: give the full node id",
            shown(&lease.qualname, 200)
        )
    });
    let whole = entry
        .case
        .qualname
        .is_empty()
        .then_some("; a file that skips itself as a whole cannot be leased");
    Ground {
        reason: Reason::UnleasedSkip,
        about: About::Case,
        subject: Some(entry.case.node.to_string()),
        detail: format!(
            "{word} in {}, and no lease names it{}{}",
            prose::attempts(&all, total),
            ambiguous.unwrap_or_default(),
            whole.unwrap_or_default()
        ),
        seen: prose::seen(&entry.outcomes),
    }
}

/// What the product did wrong is src_score's, wherever it was seen.
fn is_src_score(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::SkipFromProduct
            | Reason::MissingCase
            | Reason::CollectionError
            | Reason::TamperResultChannel
    )
}

/// What one unsilenced outcome says against a lease.
enum Against {
    Passes,
    Covered,
    Fault(Reason, String),
}

fn against(lease: &Lease, outcome: &Outcome) -> Against {
    let mismatch = || {
        let what = "it fails in another way than the lease says".to_owned();
        Against::Fault(Reason::LeaseSignatureMismatch, what)
    };
    match outcome {
        Outcome::Passed | Outcome::Xpassed => Against::Passes,
        Outcome::Missing => Against::Fault(Reason::MissingCase, "it was not reported".to_owned()),
        Outcome::Skipped(seen) | Outcome::Xfailed(seen) => {
            covered(lease, std::slice::from_ref(seen), mismatch)
        }
        Outcome::Red(Reason::CaseFailed | Reason::CaseError, seen) => {
            covered(lease, seen, mismatch)
        }
        Outcome::Red(Reason::SkipFromProduct, _) => Against::Fault(
            Reason::SkipFromProduct,
            "product code skips it, which no lease covers".to_owned(),
        ),
        Outcome::Red(code, _) => Against::Fault(*code, format!("it ended in {code}")),
    }
}

fn covered(lease: &Lease, seen: &[Signature], mismatch: impl Fn() -> Against) -> Against {
    if !seen.is_empty() && seen.iter().all(|signature| *signature == lease.signature) {
        Against::Covered
    } else {
        mismatch()
    }
}

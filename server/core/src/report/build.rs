//! A judgement and what surrounds it to a report, nothing cut yet.

use super::{
    AttemptPart, CasePart, ChangeKind, ChangePart, EvidencePart, FailurePart, Feedback,
    HeldOutPart, IsolationPart, LeasePart, MergeFilePart, MergePart, OraclePart, PinsPart,
    PlantedPart, ReasonPart, Report, SCHEMA, Timings, VerdictPart,
};
use crate::classify::PathClass;
use crate::git::Change;
use crate::judge::{CaseSummary, FailureText, Ground, Judged, Liveness, MergeSummary};
use crate::outcome::{AttemptFacts, Class, Outcome};
use crate::policy::PinPolicy;
use crate::statement::{Isolation, Scored};

/// Where an attempt comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptSource {
    /// Run for this score.
    Fresh,
    /// Taken from the store.
    Stored,
}

/// What a report is made of.
#[derive(Debug, Clone, Copy)]
pub struct Material<'a> {
    /// The judgement.
    pub judged: &'a Judged,
    /// What was scored.
    pub scored: &'a Scored,
    /// The policy's pins.
    pub pins: &'a PinPolicy,
    /// The changed paths.
    pub changes: &'a [(Change, PathClass)],
    /// Attempts of the property lane, as the judge saw them.
    pub property: &'a [(AttemptSource, &'a AttemptFacts)],
    /// Attempts under held-out pins, on head and then on base.
    pub held_out: &'a [(AttemptSource, &'a AttemptFacts)],
    /// Attempts of the lease side run.
    pub lease_side: &'a [(AttemptSource, &'a AttemptFacts)],
    /// Attempts of the merge lane.
    pub merge_lane: &'a [(AttemptSource, &'a AttemptFacts)],
    /// What proposed tests came to, where advice was asked for.
    pub proposed: Option<&'a MergeSummary>,
    /// What is known of the oracle; `None` where nothing ran.
    pub oracle: Option<Liveness<'a>>,
    /// Where the time went.
    pub timings: Timings,
}

impl Report {
    /// The report of a judgement, complete and for the operator.
    #[must_use]
    pub fn of(material: Material<'_>) -> Self {
        let Material {
            judged,
            scored,
            pins,
            changes,
            property,
            held_out,
            lease_side,
            merge_lane,
            proposed,
            oracle,
            timings,
        } = material;
        let confidence = judged.confidence();
        let stored = property
            .iter()
            .filter(|(source, _)| *source == AttemptSource::Stored)
            .count();
        let isolated = |mode| scored.isolation.values().filter(|m| **m == mode).count();
        Self {
            schema: SCHEMA.to_owned(),
            feedback: Feedback::Operator,
            score: scored.name(),
            scorer: scored.scorer.clone(),
            repository: scored.repository.clone(),
            protected_ref: scored.protected_ref.clone(),
            change_set: scored.change_set,
            head: scored.head.clone(),
            base: scored.base.clone(),
            base_tip_at_scoring: scored.base_tip.clone(),
            merge_bases: scored.merge_bases.clone(),
            gate_time: judged.gate_time().rfc3339(),
            valid_until: judged.valid_until().rfc3339(),
            verdicts: judged
                .verdicts()
                .iter()
                .map(|verdict| VerdictPart {
                    name: verdict.kind(),
                    word: verdict.word(),
                    reasons: verdict.grounds().iter().map(reason).collect(),
                })
                .collect(),
            warnings: judged.warnings().iter().map(reason).collect(),
            evidence: EvidencePart {
                attempts: confidence.attempts,
                stored,
                upper_bound: f64::from(confidence.upper_bound_ppm) / 1e6,
            },
            held_out: HeldOutPart {
                planned: scored.held_out.planned,
                seen: scored.held_out.seen,
                failures: scored.held_out.failures.clone(),
            },
            cases: judged.cases().iter().map(case).collect(),
            merge_lane: judged.merge().map(merge),
            proposed: proposed.map(merge),
            leases: judged
                .leases()
                .iter()
                .map(|lease| LeasePart {
                    qualname: lease.qualname.clone(),
                    owner: lease.owner.clone(),
                    reason: lease.reason.clone(),
                    expires_at: lease.expires_at.rfc3339(),
                    cases: lease.cases.clone(),
                    refused: lease.refused.clone(),
                })
                .collect(),
            ledger: scored.ledger.clone(),
            attempts: attempts(property)
                .chain(attempts(lease_side))
                .chain(attempts(merge_lane))
                .chain(
                    held_out
                        .iter()
                        .map(|(source, facts)| attempt(facts.index as usize + 1, *source, facts)),
                )
                .collect(),
            pins: PinsPart {
                seed: pins.seed.0,
                clock: pins.clock.clone(),
                timezone: pins.timezone.clone(),
                hash_seed: pins.hash_seed,
                source_date_epoch: pins.source_date_epoch,
            },
            changes: changes.iter().map(change).collect(),
            src_trees: scored.src_trees.clone(),
            inputs: scored.inputs.clone(),
            isolation: IsolationPart {
                shared: isolated(Isolation::Shared),
                split: isolated(Isolation::Split),
            },
            oracle: oracle.map(worth),
            timings,
            cut: Vec::new(),
        }
    }
}

pub(super) fn reason(ground: &Ground) -> ReasonPart {
    ReasonPart {
        code: ground.reason,
        advice: ground.reason.advice().to_owned(),
        subject: ground.subject.clone(),
        detail: ground.detail.clone(),
        seen: ground.seen.clone(),
    }
}

fn case(summary: &CaseSummary) -> CasePart {
    let words = |outcomes: &[Outcome]| outcomes.iter().map(|o| o.word().to_owned()).collect();
    CasePart {
        node: summary.node.clone(),
        file: summary.file.clone(),
        class: summary.class,
        code: summary.code,
        origin: summary.origin,
        outcomes: match summary.class {
            Class::StablePass => Vec::new(),
            Class::Silenced | Class::StableRed | Class::Mixed => words(&summary.outcomes),
        },
        unsilenced: words(&summary.unsilenced),
        on_base: summary.on_base,
        diagnosis: summary.diagnosis.clone(),
        failure: summary.failure.as_ref().map(failure),
        duration_ms: (summary.duration_ms * 1000.0).round() / 1000.0,
        held_out: if summary
            .held_out
            .iter()
            .all(|(_, outcome)| *outcome == Outcome::Passed)
        {
            Vec::new()
        } else {
            let numbered = summary.held_out.iter();
            numbered
                .map(|(draw, outcome)| format!("{} in draw {}", outcome.word(), draw + 1))
                .collect()
        },
        held_out_failure: summary.held_out_failure.as_ref().map(failure),
    }
}

fn merge(lane: &MergeSummary) -> MergePart {
    MergePart {
        files: lane
            .files
            .iter()
            .map(|(file, seen)| MergeFilePart {
                file: file.clone(),
                attempts: seen.attempts,
                upper_bound: f64::from(seen.upper_bound_ppm) / 1e6,
            })
            .collect(),
        cases: lane.cases.iter().map(case).collect(),
    }
}

fn failure(text: &FailureText) -> FailurePart {
    let exception = text.exception.as_ref();
    FailurePart {
        attempt: text.attempt,
        when: text.when,
        kind: exception.map(|e| e.kind.clone()).unwrap_or_default(),
        message: exception.map(|e| e.message.clone()).unwrap_or_default(),
        traceback: exception.map(|e| e.traceback.clone()).unwrap_or_default(),
        output: text.output.clone(),
    }
}

fn attempts<'a>(
    attempts: &'a [(AttemptSource, &'a AttemptFacts)],
) -> impl Iterator<Item = AttemptPart> + 'a {
    (1..)
        .zip(attempts)
        .map(|(number, (source, facts))| attempt(number, *source, facts))
}

fn attempt(number: usize, source: AttemptSource, facts: &AttemptFacts) -> AttemptPart {
    AttemptPart {
        lane: facts.lane,
        number,
        stored: source == AttemptSource::Stored,
        start: facts.start,
        pins: facts.pins.clone(),
        end: facts.end.end,
        exit_code: facts.end.exit_code,
        signal: facts.end.signal,
        running: facts.end.running.clone(),
        cases: facts.cases.len(),
        wall_ms: facts.end.wall_ms,
        cpu_ms: facts.end.cpu_ms,
        run_delay_ms: facts.end.run_delay_ms,
        oom_kills: facts.end.oom_kills,
        output_bytes: facts.end.output_bytes,
        output: facts.end.output.clone(),
    }
}

fn worth(oracle: Liveness<'_>) -> OraclePart {
    OraclePart {
        null_product: oracle.null,
        planted: oracle.mutants.map(|mutants| PlantedPart {
            drawn: mutants.drawn,
            run: mutants.run,
            unnoticed: mutants.unnoticed.len(),
            places: mutants.unnoticed.clone(),
        }),
    }
}

fn change((change, class): &(Change, PathClass)) -> ChangePart {
    ChangePart {
        path: change.path.to_string(),
        class: *class,
        change: match (&change.base, &change.head) {
            (None, _) => ChangeKind::Added,
            (Some(_), None) => ChangeKind::Deleted,
            (Some(_), Some(_)) => ChangeKind::Modified,
        },
    }
}

//! The judge's tables: what was seen, and what is to be said of it.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use crate::lease::ShortDigest;
use crate::outcome::{
    AttemptEnd, CaseRecord, Class, CollectedCase, CollectionError, End, ExceptionText,
    FunctionDigest, Lane, MarksFound, Phase, PhaseOutcome, Pins, Raiser, Reads, Silence, When,
};
use crate::reason::Reason;

mod alive;
mod cases;
mod diagnosis;
mod feedback;
mod field;
mod held_out;
mod laws;
mod leases;
mod merge_lane;
mod sighting;
mod tampers;

/// 2026-12-01T00:00:00Z.
const GATE: UnixTime = UnixTime(1_796_083_200);
const CORE: &str = "tests/sealed/test_core.py";
const EMPTY: &str = "tests/sealed/test_core.py::test_empty";
const THREE: &str = "tests/sealed/test_core.py::test_three";

/// Reads nodes of this shape apart, which only a test may: it made them.
fn parts(node: &str) -> (RepoPath, String) {
    let (file, rest) = node.split_once("::").unwrap();
    let function = rest.split('[').next().unwrap();
    (file.parse().unwrap(), function.replace("::", "."))
}

#[derive(Debug, Clone)]
struct Attempt(AttemptFacts);

fn attempt() -> Attempt {
    Attempt(AttemptFacts {
        index: 0,
        lane: Lane::Property,
        pins: Pins {
            seed: crate::id::Seed(1),
            hash_seed: 0,
            clock: "2026-09-12T00:00:00Z".into(),
            source_date_epoch: 0,
        },
        start: 0,
        collected: vec![],
        collection_errors: vec![],
        silences: vec![],
        cases: vec![],
        tamper: Vec::new(),
        canaries: crate::outcome::Canaries::default(),
        end: AttemptEnd {
            end: End::Finished,
            exit_code: Some(0),
            signal: None,
            running: None,
            phase: None,
            wall_ms: 1,
            cpu_ms: 1,
            run_delay_ms: 0,
            oom_kills: 0,
            output_bytes: 0,
            note: None,
            output: String::new(),
        },
    })
}

fn phase(when: When) -> Phase {
    Phase {
        when,
        outcome: PhaseOutcome::Passed,
        xfail: None,
        xpassed: false,
        skip_reason: None,
        by: Raiser::Runner,
        exception: None,
        output: String::new(),
        duration_ms: 1.0,
        reported: true,
        tamper: Vec::new(),
    }
}

fn exception(text: &str) -> ExceptionText {
    let (kind, message) = text.split_once(": ").unwrap();
    ExceptionText {
        kind: kind.into(),
        message: message.into(),
        traceback: String::new(),
    }
}

impl Attempt {
    fn collect(mut self, node: &str) -> Self {
        let (file, qualname) = parts(node);
        self.0.collected.push(CollectedCase {
            node: node.parse().unwrap(),
            file,
            qualname,
            marks: vec![],
        });
        self
    }
    fn record(mut self, node: &str, phases: Vec<Phase>) -> Self {
        self.0.cases.push(CaseRecord {
            node: node.parse().unwrap(),
            phases,
            reads: Reads::default(),
            cassette: None,
        });
        self
    }
    fn case(self, node: &str, call: Phase) -> Self {
        self.collect(node)
            .record(node, vec![phase(When::Setup), call, phase(When::Teardown)])
    }
    fn pass(self, node: &str) -> Self {
        self.case(node, phase(When::Call))
    }
    fn fail(self, node: &str, text: &str) -> Self {
        let call = Phase {
            outcome: PhaseOutcome::Failed,
            exception: Some(exception(text)),
            ..phase(When::Call)
        };
        self.case(node, call)
    }
    fn skip(self, node: &str, reason: &str, by: Raiser) -> Self {
        let setup = Phase {
            outcome: PhaseOutcome::Skipped,
            skip_reason: Some(reason.into()),
            by,
            ..phase(When::Setup)
        };
        self.collect(node)
            .record(node, vec![setup, phase(When::Teardown)])
    }
    fn xfail(self, node: &str, text: &str, by: Raiser) -> Self {
        let call = Phase {
            outcome: PhaseOutcome::Skipped,
            xfail: Some("known".into()),
            by,
            exception: Some(exception(text)),
            ..phase(When::Call)
        };
        self.case(node, call)
    }
    fn xpass(self, node: &str) -> Self {
        self.case(
            node,
            Phase {
                xfail: Some("known".into()),
                xpassed: true,
                by: Raiser::Sealed,
                ..phase(When::Call)
            },
        )
    }
    fn error(mut self, file: &str, text: &str) -> Self {
        self.0.collection_errors.push(CollectionError {
            file: file.parse().unwrap(),
            exception: exception(text),
        });
        self
    }
    fn silence(mut self, node: &str, reason: &str, by: Raiser) -> Self {
        let file = node.split("::").next().unwrap();
        self.0.silences.push(Silence {
            node: node.parse().unwrap(),
            file: file.parse().unwrap(),
            reason: reason.into(),
            by,
        });
        self
    }
    /// The attempt ends here, in the call of this case.
    fn die(mut self, end: End, running: &str) -> Self {
        self = self.collect(running).record(
            running,
            vec![
                phase(When::Setup),
                Phase {
                    outcome: PhaseOutcome::Failed,
                    reported: false,
                    ..phase(When::Call)
                },
            ],
        );
        self.0.end.running = Some(running.parse().unwrap());
        self.0.end.phase = Some(When::Call);
        self.ends(end)
    }
    fn ends(mut self, end: End) -> Self {
        self.0.end.end = end;
        self
    }
    /// Collect only, as base is.
    fn only_collected(mut self) -> Self {
        self.0.cases.clear();
        self
    }
}

/// A judgement to be made.
struct Trial {
    base: Attempt,
    base_run: Vec<Attempt>,
    property: Vec<Attempt>,
    pinned_under: Vec<Attempt>,
    side: Vec<Attempt>,
    leases: Option<String>,
    digests: Vec<FunctionDigest>,
    short: ShortDigest,
    oracle: Vec<Ground>,
    reruns: usize,
    need_shared: NeedShared,
    null: NullProduct,
    mutants: Option<Mutants>,
    draws: u32,
    held_out: Vec<Attempt>,
    base_under: Vec<Attempt>,
    runs: Runs,
    shared: Vec<RepoPath>,
    must_fail: Vec<Attempt>,
    must_fail_base: Vec<Attempt>,
    touched: TouchedFacts,
    merge_base: Option<Attempt>,
    merge_runs: Vec<MergeRun>,
    merge_marks: Vec<MarksFound>,
}

const ALIVE: Liveness<'static> = Liveness {
    null: NullProduct::Noticed,
    mutants: None,
};

/// Base collects what this attempt collects; head does the same seven times.
fn trial(base: Attempt, property: Vec<Attempt>) -> Trial {
    Trial {
        base: base.only_collected(),
        base_run: vec![],
        reruns: property.len(),
        draws: 0,
        held_out: vec![],
        base_under: vec![],
        runs: Runs {
            held_out: 0,
            ..crate::policy::Policy::default().runs
        },
        property,
        pinned_under: vec![],
        side: vec![],
        leases: None,
        digests: vec![],
        short: ShortDigest::Warned,
        oracle: vec![],
        shared: vec![],
        must_fail: vec![],
        must_fail_base: vec![],
        touched: TouchedFacts::default(),
        merge_base: None,
        merge_runs: vec![],
        merge_marks: vec![],
        need_shared: NeedShared::new(),
        null: ALIVE.null,
        mutants: None,
    }
}

fn seven(attempt: &Attempt) -> Vec<Attempt> {
    vec![attempt.clone(); 7]
}

impl Trial {
    fn files(&self) -> Vec<RepoPath> {
        let facts = [&self.base].into_iter().chain(&self.base_run);
        let mut files: Vec<RepoPath> = facts
            .flat_map(|a| {
                let collected = a.0.collected.iter().map(|c| c.file.clone());
                let silent = a.0.silences.iter().map(|s| s.file.clone());
                collected
                    .chain(silent)
                    .chain(a.0.collection_errors.iter().map(|e| e.file.clone()))
            })
            .collect();
        files.sort();
        files.dedup();
        files
    }
    fn judge_at(&self, gate: UnixTime) -> Result<Judged, Incomplete> {
        let facts = |attempts: &[Attempt]| attempts.iter().map(|a| a.0.clone()).collect::<Vec<_>>();
        let (held_out, under) = (facts(&self.held_out), facts(&self.base_under));
        let (base_run, property, side) = (
            facts(&self.base_run),
            facts(&self.property),
            facts(&self.side),
        );
        let pinned_under = facts(&self.pinned_under);
        let must_fail = facts(&self.must_fail);
        let must_fail_base = facts(&self.must_fail_base);
        let files = self.files();
        let terms = Terms {
            cassettes: &[],
            files: &files,
            leases: self.leases.as_deref().map(str::as_bytes),
            lease_path: "ci/flake_leases.json",
            reruns: self.reruns,
            runs: &self.runs,
            shared: &self.shared,
            short: self.short,
            touched: &self.touched,
            oracle: self.oracle.clone(),
            warnings: vec![],
        };
        let evidence = Evidence {
            moved: &std::collections::BTreeMap::new(),
            base: &self.base.0,
            base_run: &base_run,
            property: &property,
            base_under: &pinned_under,
            held_out: HeldOutEvidence {
                planned: self.draws,
                head: &held_out,
                base: &under,
            },
            must_fail: MustFailEvidence {
                head: &must_fail,
                base: &must_fail_base,
            },
            lease_side: &side,
            merge: MergeEvidence {
                base: self.merge_base.as_ref().map(|a| &a.0),
                runs: &self.merge_runs,
                marks: &self.merge_marks,
            },
            functions: Functions {
                digests: &self.digests,
                tag: "cp313",
            },
            need_shared: &self.need_shared,
            liveness: Liveness {
                null: self.null,
                mutants: self.mutants.as_ref(),
            },
        };
        bench::judge(terms, &evidence, gate)
    }
    fn judge(&self) -> Judged {
        self.judge_at(GATE).unwrap()
    }
}

/// `src_score oracle_integrity flake_lease`.
fn words(judged: &Judged) -> String {
    judged
        .verdicts()
        .iter()
        .map(|v| v.word().to_string())
        .collect::<Vec<_>>()
        .join(" ")
}

fn codes(judged: &Judged, kind: VerdictKind) -> Vec<Reason> {
    judged
        .verdict(kind)
        .grounds()
        .iter()
        .map(|g| g.reason)
        .collect()
}

fn src(judged: &Judged) -> Vec<Reason> {
    codes(judged, VerdictKind::SrcScore)
}

fn flake(judged: &Judged) -> Vec<Reason> {
    codes(judged, VerdictKind::FlakeLease)
}

/// Warnings but the one that every small score has.
fn warned(judged: &Judged) -> Vec<Reason> {
    judged
        .warnings()
        .iter()
        .map(|g| g.reason)
        .filter(|r| *r != Reason::ThinEvidence)
        .collect()
}

fn summary<'a>(judged: &'a Judged, node: &str) -> &'a CaseSummary {
    judged
        .cases()
        .iter()
        .find(|case| case.node.as_str() == node)
        .unwrap()
}

fn class(judged: &Judged, node: &str) -> Class {
    summary(judged, node).class
}

/// Everything a ground says, as a person would search in it.
fn text(judged: &Judged, kind: VerdictKind) -> String {
    let say = |g: &Ground| {
        format!(
            "{} {} {} {}\n",
            g.reason,
            g.subject.as_deref().unwrap_or(""),
            g.detail,
            g.seen.as_deref().unwrap_or("")
        )
    };
    judged.verdict(kind).grounds().iter().map(say).collect()
}

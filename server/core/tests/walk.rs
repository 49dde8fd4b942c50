//! One score from the patch to the join, through public types only: what compiles here is all that can be done.
//!
//! The rooms that read and run are played by the test; every pure step between them is the real one.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use ed25519_dalek::{Signer as _, SigningKey};
use tribunal_core::cassette::CassetteFacts;
use tribunal_core::classify::{Patch, classify};
use tribunal_core::envelope::{Envelopes, seal};
use tribunal_core::git::{Change, Commit, Entry, GitPath, Mode, Relation, ResolvedCommits};
use tribunal_core::id::{Digest, RepoPath, Seed, UnixTime};
use tribunal_core::join::{Decision, Expected, Join, join};
use tribunal_core::judge::{
    Evidence, HeldOutEvidence, Judged, Liveness, MergeEvidence, MustFailEvidence, NeedShared,
    NullProduct, SideRun, VerdictKind, judge, judge_decided, side_run,
};
use tribunal_core::keys::{KeyRecord, KeyRing, PublicKey};
use tribunal_core::lease::Functions;
use tribunal_core::outcome::{
    AttemptEnd, AttemptFacts, CaseRecord, CollectedCase, End, ExceptionText, FunctionDigest, Lane,
    Phase, PhaseOutcome, Pins, Raiser, When,
};
use tribunal_core::plan::{
    ChangeSet, Course, Decided, OracleFacts, Plan, RunPlan, ScoredPatch, SrcEntry, SrcFacts,
    TouchedFacts,
};
use tribunal_core::policy::{FeedbackLevel, Policy};
use tribunal_core::reason::Reason;
use tribunal_core::report::{AttemptSource, Audience, Material, Report, Timings};
use tribunal_core::request::Role;
use tribunal_core::statement::{Isolation, Ran, Reports, Scored, Scorer, Statements};
use tribunal_core::verify::{VerdictDir, verify};

const GATE: UnixTime = UnixTime(1_796_083_200);
const FILE: &str = "tests/sealed/test_core.py";
const NET: &str = "tests/sealed/test_core.py::test_net";

fn hex(digit: char) -> String {
    digit.to_string().repeat(40)
}

fn commit(digit: char) -> Commit {
    Commit {
        id: hex(digit).parse().unwrap(),
        tree: hex('7').parse().unwrap(),
        sha256: Digest::of(&[digit as u8]),
    }
}

fn entry(digit: char) -> Entry {
    Entry {
        mode: Mode::File,
        id: hex(digit).parse().unwrap(),
    }
}

fn changed(path: &str) -> Change {
    Change {
        path: GitPath::from(path),
        base: Some(entry('1')),
        head: Some(entry('2')),
        contents: None,
    }
}

fn course(paths: &[&str]) -> Course {
    let base = commit('b');
    let patch = Patch {
        commits: ResolvedCommits {
            repository: "demo".parse().unwrap(),
            protected_ref: "refs/heads/main".into(),
            head: commit('a'),
            base_tip: base.id.clone(),
            merge_bases: vec![base.id.clone()],
            base,
            relation: Relation::Contains,
        },
        changes: paths.iter().map(|path| changed(path)).collect(),
        base_paths: paths.iter().map(|path| GitPath::from(*path)).collect(),
    };
    Course::of(classify(patch, Policy::default(), Role::Agent).unwrap())
}

fn oracle(leases: &str) -> OracleFacts {
    OracleFacts {
        tree: hex('7').parse().unwrap(),
        manifest: Some(format!("{FILE}\n").into_bytes()),
        leases: Some(leases.as_bytes().to_vec()),
        ledger: None,
        sealed_paths: ["tests/sealed/MANIFEST.txt", FILE]
            .map(GitPath::from)
            .to_vec(),
        lfs_pointers: vec![],
        oracle_digest: Digest::of(b"oracle"),
        cassettes: CassetteFacts::default(),
    }
}

fn src() -> SrcFacts {
    let leaf = |digit| SrcEntry {
        path: GitPath::from("src/calc.py"),
        entry: entry(digit),
        size: 10,
        link_target: None,
        lfs_pointer: false,
    };
    SrcFacts {
        trees: vec![("src/".into(), hex('c').parse().unwrap())],
        entries: vec![leaf('2')],
        base: vec![(GitPath::from("src/calc.py"), entry('1'))],
        touched: TouchedFacts::default(),
    }
}

fn planned(leases: &str) -> Box<RunPlan> {
    let Course::Open(open) = course(&["src/calc.py"]) else {
        unreachable!("src alone is open");
    };
    match open.admit(oracle(leases), src()).unwrap() {
        Plan::Run(plan) => plan,
        Plan::Decided(decided) => unreachable!("{:?}", decided.findings()),
    }
}

fn decided() -> Decided {
    let Course::Barred(barred) = course(&["src/calc.py", "ci/flake_leases.json"]) else {
        unreachable!("a lease beside src is barred");
    };
    barred.decide(oracle("{\"leases\": []}"))
}

fn phase(when: When, outcome: PhaseOutcome) -> Phase {
    Phase {
        when,
        outcome,
        xfail: None,
        xpassed: false,
        skip_reason: (outcome == PhaseOutcome::Skipped).then(|| "no network".into()),
        by: Raiser::Sealed,
        exception: None,
        output: String::new(),
        duration_ms: 1.0,
        reported: true,
        tamper: Vec::new(),
    }
}

/// Cases by name, with what their call came to.
fn attempt(lane: Lane, cases: &[(&str, PhaseOutcome)]) -> AttemptFacts {
    let node = |name: &str| format!("{FILE}::{name}").parse().unwrap();
    AttemptFacts {
        index: 0,
        lane,
        pins: Pins {
            seed: Seed(20_260_912),
            hash_seed: 0,
            clock: "2026-09-12T00:00:00Z".into(),
            source_date_epoch: 0,
        },
        start: 0,
        collected: cases
            .iter()
            .map(|(name, _)| CollectedCase {
                node: node(name),
                file: FILE.parse().unwrap(),
                qualname: (*name).into(),
                marks: vec![],
            })
            .collect(),
        collection_errors: vec![],
        silences: vec![],
        cases: cases
            .iter()
            .map(|(name, outcome)| {
                let mut call = phase(When::Call, *outcome);
                call.exception = (*outcome == PhaseOutcome::Failed).then(|| ExceptionText {
                    kind: "TimeoutError".into(),
                    message: "upstream gone".into(),
                    traceback: String::new(),
                });
                let ends = PhaseOutcome::Passed;
                CaseRecord {
                    node: node(name),
                    phases: vec![phase(When::Setup, ends), call, phase(When::Teardown, ends)],
                    reads: tribunal_core::outcome::Reads::default(),
                    cassette: None,
                }
            })
            .collect(),
        tamper: Vec::new(),
        canaries: tribunal_core::outcome::Canaries::default(),
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
    }
}

/// Everything after the judgement: report, statements, signatures, and what a gate makes of the files.
fn published(
    patch: &ScoredPatch,
    judged: &Judged,
    attempts: &[AttemptFacts],
    ran: Option<Ran>,
) -> (Envelopes, Join) {
    let scorer = Scorer {
        id: "tribunal@example.org".into(),
        version: "0.1.0".into(),
    };
    let scored = Scored::of("0".repeat(32).parse().unwrap(), scorer, patch, ran);
    let property: Vec<_> = attempts
        .iter()
        .map(|facts| (AttemptSource::Fresh, facts))
        .collect();
    let report = Report::of(Material {
        judged,
        scored: &scored,
        pins: &patch.policy().pins,
        changes: patch.changes(),
        property: &property,
        held_out: &[],
        lease_side: &[],
        merge_lane: &[],
        proposed: None,
        oracle: None,
        timings: Timings::default(),
    });
    let agent = report
        .render(judged, Audience::Caller(FeedbackLevel::Names))
        .unwrap();
    let digest = |audience| Digest::of(&report.render(judged, audience).unwrap());
    let reports = Reports {
        operator: digest(Audience::Operator),
        full: digest(Audience::Caller(FeedbackLevel::Full)),
        agent: Digest::of(&agent),
    };
    let statements = Statements::of(judged, &scored, &reports, UnixTime(GATE.0 + 5)).unwrap();
    let key = SigningKey::from_bytes(&[7; 32]);
    let public = PublicKey::from_bytes(key.verifying_key().as_bytes()).unwrap();
    let envelopes = seal::<()>(statements, &public, |message| {
        Ok(key.sign(message).to_bytes())
    })
    .unwrap();
    let files = envelopes
        .files()
        .iter()
        .map(|file| (file.name.clone(), file.bytes.clone()));
    let dir = VerdictDir::new(files.chain([("report.json".to_owned(), agent)]));
    let ring = KeyRing::new(vec![KeyRecord::undated(public)]);
    let expected = Expected {
        repository: Some("demo".parse().unwrap()),
        head: hex('a').parse().unwrap(),
        base: Some(hex('b').parse().unwrap()),
        change_set: ChangeSet::Agent,
        now: UnixTime(GATE.0 + 60),
    };
    (envelopes, join(verify(&dir, &ring), &expected))
}

fn ran() -> Ran {
    Ran {
        overlay: Digest::of(b"overlay"),
        image: "sha256:1".into(),
        runner: "sha256:2".into(),
        held_out: Default::default(),
        merge_overlay: None,
        isolation: [(FILE.parse::<RepoPath>().unwrap(), Isolation::Shared)].into(),
    }
}

fn run(
    plan: &RunPlan,
    head: &[(&str, PhaseOutcome)],
    side: &[AttemptFacts],
) -> (Judged, SideRun, Vec<AttemptFacts>) {
    let base = attempt(Lane::BaseCollection, head);
    let property = vec![attempt(Lane::Property, head); plan.attempts().len()];
    let digests = [FunctionDigest {
        file: FILE.parse().unwrap(),
        qualname: "test_net".into(),
        v2: format!("v2:cp313:{}", "a".repeat(64)),
        short: "a".repeat(16),
    }];
    let asked = side_run(plan, &base, &property, GATE);
    let held_out: Vec<AttemptFacts> = (0..2)
        .map(|index| AttemptFacts {
            index,
            ..attempt(Lane::HeldOut, head)
        })
        .collect();
    let evidence = Evidence {
        moved: &std::collections::BTreeMap::new(),
        base: &base,
        base_run: &[],
        property: &property,
        base_under: &[],
        held_out: HeldOutEvidence {
            planned: 2,
            head: &held_out,
            base: &[],
        },
        must_fail: MustFailEvidence::default(),
        merge: MergeEvidence::default(),
        lease_side: side,
        functions: Functions {
            digests: &digests,
            tag: "cp313",
        },
        need_shared: &NeedShared::new(),
        liveness: Liveness {
            null: NullProduct::Noticed,
            mutants: None,
        },
    };
    (judge(plan, &evidence, GATE).unwrap(), asked, property)
}

#[test]
fn an_honest_patch_merges() {
    let plan = planned("{\"leases\": []}");
    let (judged, asked, attempts) = run(&plan, &[("test_a", PhaseOutcome::Passed)], &[]);
    assert!(asked.is_empty());
    let (envelopes, join) = published(plan.patch(), &judged, &attempts, Some(ran()));
    assert_eq!(
        join.decision(),
        Decision::MergeOk,
        "{:?}",
        join.failures().collect::<Vec<_>>()
    );
    assert_eq!(envelopes.files().len(), 13);
}

#[test]
fn a_wrong_one_is_blocked_with_its_reason() {
    let plan = planned("{\"leases\": []}");
    let (judged, _, attempts) = run(
        &plan,
        &[
            ("test_a", PhaseOutcome::Failed),
            ("test_b", PhaseOutcome::Passed),
        ],
        &[],
    );
    let (_, join) = published(plan.patch(), &judged, &attempts, Some(ran()));
    assert_eq!(
        join.to_string(),
        "MERGE_BLOCKED: src_score=FAIL oracle_integrity=PASS flake_lease=PASS"
    );
    assert_eq!(join.reasons(), [Reason::CaseFailed]);
}

#[test]
fn a_leased_silence_merges_until_its_lease_ends() {
    let leases = format!(
        r#"{{"leases": [{{"qualname": "test_core.test_net", "bytecode_hash": "v2:cp313:{}", "failure_signature": "TimeoutError: upstream gone", "expires_at": {}, "owner": "m@example.org", "reason": "flaky network"}}]}}"#,
        "a".repeat(64),
        GATE.0 + 50
    );
    let plan = planned(&leases);
    let cases = [
        ("test_a", PhaseOutcome::Passed),
        ("test_net", PhaseOutcome::Skipped),
    ];
    let side = [attempt(
        Lane::LeaseSide,
        &[("test_net", PhaseOutcome::Failed)],
    )];
    let (judged, asked, attempts) = run(&plan, &cases, &side);
    assert_eq!(asked.cases, [NET.parse().unwrap()]);
    assert_eq!(asked.files, plan.files());
    assert_eq!(judged.valid_until(), UnixTime(GATE.0 + 50));
    // The gate looks a minute later: the lease, and with it the verdict, is over.
    let (envelopes, join) = published(plan.patch(), &judged, &attempts, Some(ran()));
    let words = VerdictKind::ALL.map(|kind| envelopes.word(kind).to_string());
    assert_eq!(words, ["PASS", "PASS", "PASS"]);
    assert!(
        join.failures()
            .any(|check| check.step == tribunal_core::verify::Step::Age)
    );
}

#[test]
fn a_barred_patch_is_not_run_and_blocked() {
    let decided = decided();
    let judged = judge_decided(&decided, GATE);
    let (envelopes, join) = published(decided.patch(), &judged, &[], None);
    assert_eq!(
        join.to_string(),
        "MERGE_BLOCKED: src_score=NOT_RUN oracle_integrity=FAIL flake_lease=NOT_RUN"
    );
    assert_eq!(join.reasons(), [Reason::LeaseEdit]);
    assert_eq!(envelopes.files().len(), 12, "NOT_RUN has no test result");
}

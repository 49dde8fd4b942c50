//! Silences and leases: what pays for a silence, and what does not.

use super::*;

const NET: &str = "tests/sealed/test_net.py::test_net";
const SEEN: &str = "TimeoutError: upstream gone";

fn v2(digit: &str) -> String {
    format!("v2:cp313:{}", digit.repeat(64))
}

struct L {
    name: &'static str,
    hash: String,
    signature: &'static str,
    expires: String,
}

impl Default for L {
    fn default() -> Self {
        Self {
            name: "test_net.test_net",
            hash: v2("a"),
            signature: SEEN,
            expires: (GATE.0 + 100 * 86_400).to_string(),
        }
    }
}

fn file(leases: &[L]) -> String {
    let one = |l: &L| {
        format!(
            r#"{{"qualname": "{}", "bytecode_hash": "{}", "failure_signature": "{}", "expires_at": {}, "owner": "m@example.org", "reason": "upstream"}}"#,
            l.name, l.hash, l.signature, l.expires
        )
    };
    format!(
        r#"{{"leases": [{}]}}"#,
        leases.iter().map(one).collect::<Vec<_>>().join(", ")
    )
}

fn silenced() -> Attempt {
    attempt()
        .pass(EMPTY)
        .skip(NET, "upstream flake", Raiser::Sealed)
}

/// One silenced case, its lease, and what it does unsilenced.
fn leased(lease: L, side: Vec<Attempt>) -> Trial {
    let mut trial = trial(silenced(), seven(&silenced()));
    trial.leases = Some(file(&[lease]));
    trial.side = side;
    trial.digests = vec![FunctionDigest {
        file: "tests/sealed/test_net.py".parse().unwrap(),
        qualname: "test_net".into(),
        v2: v2("a"),
        short: "a".repeat(16),
    }];
    trial
}

fn fails() -> Attempt {
    attempt().fail(NET, SEEN)
}

#[test]
fn a_skip_or_xfail_without_a_lease_fails_flake_lease_alone() {
    for head in [
        silenced(),
        attempt().pass(EMPTY).xfail(NET, SEEN, Raiser::Sealed),
        attempt().pass(EMPTY).xpass(NET),
    ] {
        let judged = trial(head.clone(), seven(&head)).judge();
        assert_eq!(words(&judged), "PASS PASS FAIL");
        assert_eq!(
            (flake(&judged), class(&judged, NET)),
            (vec![Reason::UnleasedSkip], Class::Silenced)
        );
        assert_eq!(summary(&judged, NET).code, Some(Reason::UnleasedSkip));
    }
    // A strict xfail that passes is reported as a failure; the mark is a silence all the same.
    let strict = Phase {
        outcome: PhaseOutcome::Failed,
        xpassed: true,
        by: Raiser::Sealed,
        ..phase(When::Call)
    };
    let head = attempt().pass(EMPTY).case(NET, strict);
    assert_eq!(
        words(&trial(head.clone(), seven(&head)).judge()),
        "PASS PASS FAIL"
    );
}

#[test]
fn a_lease_that_holds_pays_and_bounds_the_validity() {
    let judged = leased(L::default(), vec![fails(), attempt().pass(NET), fails()]).judge();
    assert_eq!(
        (words(&judged).as_str(), warned(&judged)),
        ("PASS PASS PASS", vec![])
    );
    assert_eq!(
        judged.valid_until(),
        UnixTime(GATE.0 + 30 * 86_400),
        "never more than thirty days"
    );
    let near = L {
        expires: (GATE.0 + 3 * 86_400).to_string(),
        ..L::default()
    };
    let judged = leased(near, vec![fails()]).judge();
    assert_eq!(judged.valid_until(), UnixTime(GATE.0 + 3 * 86_400));
    assert_eq!(warned(&judged), [Reason::LeaseExpiresSoon]);
    let lease = judged.leases().first().unwrap();
    assert_eq!(
        (lease.cases.len(), lease.refused.len(), lease.owner.as_str()),
        (1, 0, "m@example.org")
    );
    assert_eq!(summary(&judged, NET).unsilenced.len(), 1);
}

#[test]
fn an_xfail_that_passes_now_and_then_counts_as_silenced_under_a_lease_only() {
    let mut attempts = seven(&attempt().pass(EMPTY).xfail(NET, SEEN, Raiser::Sealed));
    *attempts.get_mut(2).unwrap() = attempt().pass(EMPTY).xpass(NET);
    let mut with = leased(L::default(), vec![fails()]);
    with.property = attempts.clone();
    let judged = with.judge();
    assert_eq!(
        (words(&judged).as_str(), class(&judged, NET)),
        ("PASS PASS PASS", Class::Silenced)
    );
    with.leases = None;
    let judged = with.judge();
    assert_eq!(
        (words(&judged).as_str(), class(&judged, NET)),
        ("FAIL PASS PASS", Class::Mixed)
    );
    // Skipped in some and red in others is mixed, lease or not.
    let mut broken = leased(L::default(), vec![fails()]);
    *broken.property.get_mut(2).unwrap() = attempt().pass(EMPTY).fail(NET, SEEN);
    assert_eq!(words(&broken.judge()), "FAIL PASS PASS");
}

#[test]
fn a_lease_that_does_not_hold_is_named_by_its_fault() {
    let faults = |lease: L, side: Vec<Attempt>| {
        let judged = leased(lease, side).judge();
        assert_eq!(words(&judged), "PASS PASS FAIL");
        assert_eq!(
            judged.leases().first().unwrap().refused.len(),
            flake(&judged).len()
        );
        flake(&judged)
    };
    let expired = || L {
        expires: GATE.0.to_string(),
        ..L::default()
    };
    assert_eq!(faults(expired(), vec![]), [Reason::LeaseExpired]);
    let moved = || L {
        hash: v2("b"),
        ..L::default()
    };
    assert_eq!(
        faults(moved(), vec![fails()]),
        [Reason::LeaseDigestMismatch]
    );
    let interpreter = || L {
        hash: v2("a").replace("cp313", "cp312"),
        ..L::default()
    };
    let judged = leased(interpreter(), vec![fails()]).judge();
    assert!(text(&judged, VerdictKind::FlakeLease).contains("the interpreter moved"));
    assert_eq!(
        faults(
            L {
                signature: " ",
                ..L::default()
            },
            vec![]
        ),
        [Reason::LeaseSignatureMissing]
    );
    let other = vec![
        fails(),
        attempt().fail(NET, "AssertionError: assert 1 == 2"),
    ];
    assert_eq!(
        faults(L::default(), other),
        [Reason::LeaseSignatureMismatch]
    );
    for (end, code) in [
        (End::Exited, Reason::ProcessExit),
        (End::CaseTimeout, Reason::Timeout),
        (End::OutOfMemory, Reason::OutOfMemory),
        (End::OutputLimit, Reason::OutputLimit),
    ] {
        assert_eq!(faults(L::default(), vec![attempt().die(end, NET)]), [code]);
    }
}

#[test]
fn what_the_product_does_in_the_side_run_is_held_against_it() {
    for (side, code) in [
        (
            attempt().skip(NET, "no gpu", Raiser::Product),
            Reason::SkipFromProduct,
        ),
        (attempt(), Reason::MissingCase),
        (
            attempt().error("tests/sealed/test_net.py", "ImportError: x"),
            Reason::CollectionError,
        ),
    ] {
        let judged = leased(L::default(), vec![side]).judge();
        assert_eq!(
            (words(&judged).as_str(), src(&judged)),
            ("FAIL PASS PASS", vec![code])
        );
    }
    let judged = leased(L::default(), vec![attempt().die(End::Protocol, NET)]).judge();
    assert_eq!(words(&judged), "FAIL FAIL PASS");
}

#[test]
fn a_side_run_that_dies_after_its_cases_is_no_clean_one() {
    let judged = leased(L::default(), vec![fails(), fails().ends(End::Exited)]).judge();
    assert_eq!(
        (words(&judged).as_str(), flake(&judged)),
        ("PASS PASS FAIL", vec![Reason::ProcessExit])
    );
}

#[test]
fn a_run_time_skip_is_covered_by_its_reason() {
    let lease = || L {
        signature: "Skipped: upstream flake",
        ..L::default()
    };
    assert_eq!(
        words(
            &leased(
                lease(),
                vec![attempt().fail(NET, "Skipped: upstream flake")]
            )
            .judge()
        ),
        "PASS PASS PASS"
    );
    assert_eq!(
        flake(&leased(lease(), vec![attempt().fail(NET, "Skipped: another")]).judge()),
        [Reason::LeaseSignatureMismatch]
    );
}

#[test]
fn an_empty_set_is_leased_by_its_reason() {
    let node = "tests/sealed/test_net.py::test_net[NOTSET]";
    let head =
        attempt()
            .pass(EMPTY)
            .silence(node, "got empty parameter set for (n)", Raiser::Sealed);
    let lease = L {
        signature: "Skipped: got empty parameter set for (n)",
        ..L::default()
    };
    let mut empty = leased(
        lease,
        vec![attempt().fail(node, "Skipped: got empty parameter set for (n)")],
    );
    empty.base = head.clone().only_collected();
    empty.property = seven(&head);
    let judged = empty.judge();
    assert_eq!(
        (words(&judged).as_str(), class(&judged, node)),
        ("PASS PASS PASS", Class::Silenced)
    );
}

#[test]
fn every_failing_phase_must_be_the_leased_one() {
    let call = Phase {
        outcome: PhaseOutcome::Failed,
        exception: Some(exception(SEEN)),
        ..phase(When::Call)
    };
    let down = Phase {
        outcome: PhaseOutcome::Failed,
        exception: Some(exception("E: other")),
        ..phase(When::Teardown)
    };
    let side = attempt()
        .collect(NET)
        .record(NET, vec![phase(When::Setup), call, down]);
    assert_eq!(
        flake(&leased(L::default(), vec![side]).judge()),
        [Reason::LeaseSignatureMismatch]
    );
}

#[test]
fn leases_that_are_not_needed_or_not_used_are_warned_of() {
    let judged = leased(L::default(), vec![attempt().pass(NET); 3]).judge();
    assert_eq!(
        (words(&judged).as_str(), warned(&judged)),
        ("PASS PASS PASS", vec![Reason::LeaseNotNeeded])
    );
    let mut unused = trial(attempt().pass(EMPTY), seven(&attempt().pass(EMPTY)));
    unused.leases = Some(file(&[
        L {
            name: "test_gone.test_x",
            ..L::default()
        },
        L {
            name: "test_core.test_empty",
            ..L::default()
        },
    ]));
    let judged = unused.judge();
    assert_eq!(
        (words(&judged).as_str(), warned(&judged)),
        (
            "PASS PASS PASS",
            vec![Reason::LeaseUnused, Reason::LeaseNotNeeded]
        )
    );
}

#[test]
fn an_ambiguous_name_pays_for_nothing() {
    let twin = "tests/sealed/a/test_net.py::test_net";
    let head = silenced().pass(twin);
    let mut two = leased(L::default(), vec![]);
    two.base = head.clone().only_collected();
    two.property = seven(&head);
    let judged = two.judge();
    assert_eq!(
        (flake(&judged), warned(&judged)),
        (vec![Reason::UnleasedSkip], vec![Reason::LeaseUnused])
    );
    assert!(text(&judged, VerdictKind::FlakeLease).contains("give the full node id"));
    two.leases = Some(file(&[L {
        name: NET,
        ..L::default()
    }]));
    two.side = vec![fails()];
    assert_eq!(words(&two.judge()), "PASS PASS PASS");
}

#[test]
fn a_weak_digest_warns_or_fails_as_the_policy_says() {
    let weak = || L {
        hash: "a".repeat(16),
        ..L::default()
    };
    let judged = leased(weak(), vec![fails()]).judge();
    assert_eq!(
        (words(&judged).as_str(), warned(&judged)),
        ("PASS PASS PASS", vec![Reason::WeakLeaseDigest])
    );
    let mut strict = leased(weak(), vec![fails()]);
    strict.short = ShortDigest::Refused;
    assert_eq!(flake(&strict.judge()), [Reason::LeaseDigestMismatch]);
}

#[test]
fn a_file_that_does_not_parse_is_not_no_leases() {
    let mut broken = trial(silenced(), seven(&silenced()));
    broken.leases = Some("{\"leases\": [}".into());
    let judged = broken.judge();
    assert_eq!(
        (words(&judged).as_str(), flake(&judged)),
        ("PASS PASS FAIL", vec![Reason::LeaseFileInvalid])
    );
    assert!(
        text(&judged, VerdictKind::FlakeLease).contains("ci/flake_leases.json line 1, column 13")
    );
    // Even where nothing is silenced.
    let mut clean = trial(attempt().pass(EMPTY), seven(&attempt().pass(EMPTY)));
    clean.leases = Some("[]".into());
    assert_eq!(words(&clean.judge()), "PASS PASS FAIL");
}

#[test]
fn a_leased_case_without_its_side_run_is_no_verdict() {
    let error = leased(L::default(), vec![]).judge_at(GATE).unwrap_err();
    assert_eq!(error, Incomplete::NoSideRun(NET.parse().unwrap()));
}

#[test]
fn field_34_spellings_of_expires_at() {
    // As forms.json of the case says, at the gate's time of 2026-12-01T00:00:00Z.
    for (value, right) in [
        ("\"2026-12-01T00:00:01Z\"", vec![]),
        ("\"2026-12-01T00:00:00Z\"", vec![Reason::LeaseExpired]),
        ("\"2026-12-01T02:00:00+02:00\"", vec![Reason::LeaseExpired]),
        ("\"2026-11-30T23:30:00-01:00\"", vec![]),
        ("\"2026-12-01T00:00:01+00:00\"", vec![]),
        ("\"2026-12-02\"", vec![Reason::LeaseFileInvalid]),
        ("\"2026-12-02T00:00:00\"", vec![Reason::LeaseFileInvalid]),
        ("1796083200", vec![Reason::LeaseExpired]),
        ("1796083201", vec![]),
        ("null", vec![Reason::LeaseFileInvalid]),
        ("\"\"", vec![Reason::LeaseFileInvalid]),
        ("\"99999-01-01T00:00:00Z\"", vec![Reason::LeaseFileInvalid]),
    ] {
        let judged = leased(
            L {
                expires: value.into(),
                ..L::default()
            },
            vec![fails()],
        )
        .judge();
        assert_eq!(flake(&judged), right, "{value}");
        if right == [Reason::LeaseFileInvalid] {
            let said = text(&judged, VerdictKind::FlakeLease);
            assert!(
                said.contains("expires_at") && said.contains("test_net.test_net"),
                "{said}"
            );
        }
    }
}

#[test]
fn field_35_a_change_of_a_constant_voids_the_strong_digest() {
    // The harness gives another v2 for v2.py, v3.py and v4.py, and the same short one.
    let mut changed = leased(L::default(), vec![fails()]);
    changed.digests.first_mut().unwrap().v2 = v2("c");
    let judged = changed.judge();
    assert_eq!(flake(&judged), [Reason::LeaseDigestMismatch]);
    assert!(text(&judged, VerdictKind::FlakeLease).contains("the test changed since"));
}

#[test]
fn field_39_a_signature_with_addresses_paths_and_durations_matches_every_time() {
    let message = |n: u32| {
        format!(
            "TimeoutError: <test_net.Conn object at 0x7f{n:010x}> gave up on /tmp/pytest-of-attempt/pytest-{n}/test_net0 after 0.{n:06}s"
        )
    };
    let lease = || {
        let signature: &'static str = Box::leak(message(1).into_boxed_str());
        L {
            name: NET,
            signature,
            ..L::default()
        }
    };
    let side: Vec<Attempt> = (2..9).map(|n| attempt().fail(NET, &message(n))).collect();
    assert_eq!(words(&leased(lease(), side).judge()), "PASS PASS PASS");
    let judged = leased(
        lease(),
        vec![attempt().fail(NET, "AssertionError: assert 1 == 2")],
    )
    .judge();
    assert_eq!(flake(&judged), [Reason::LeaseSignatureMismatch]);
}

#[test]
fn the_side_run_asks_for_what_is_worth_trying() {
    let ask = |lease: L| {
        let leases = LeaseFile::parse(Some(file(&[lease]).as_bytes())).unwrap();
        let base = silenced().only_collected();
        let property: Vec<AttemptFacts> = seven(&silenced()).into_iter().map(|a| a.0).collect();
        let observed: Vec<Observed<'_>> = property.iter().map(Observed::of).collect();
        let need_shared = NeedShared::new();
        let evidence = Evidence::before(&base.0, &[], &property, &need_shared);
        let files = [
            CORE.parse().unwrap(),
            "tests/sealed/test_net.py".parse().unwrap(),
        ];
        let entries = docket::entries(&files, &leases, &evidence, &observed, &[]);
        silences::side_run(&entries, GATE)
    };
    let asked = ask(L::default());
    assert_eq!(asked.cases, [NET.parse().unwrap()]);
    assert_eq!(asked.files, ["tests/sealed/test_net.py".parse().unwrap()]);
    for lease in [
        L {
            expires: "1".into(),
            ..L::default()
        },
        L {
            signature: "",
            ..L::default()
        },
        L {
            name: "test_core.test_empty",
            ..L::default()
        },
    ] {
        assert!(ask(lease).is_empty());
    }
}

//! What a mixed case read decides what it owes; a missed read is red; a pin that nobody asks for is a warning.

use super::cases::but_fourth;
use super::*;
use crate::cassette::{Cassette, InEffect};
use crate::judge::diagnosis::{Diagnosis, Owed, Source, diagnose};
use crate::judge::over_pinned;
use crate::outcome::{CassetteUse, Counts, Reads};

fn record(oracle: Counts, product: Counts) -> CaseRecord {
    CaseRecord {
        node: THREE.parse().unwrap(),
        phases: vec![],
        reads: Reads { oracle, product },
        cassette: None,
    }
}

fn of(counts: Counts) -> Diagnosis {
    diagnose(&[
        &record(Counts::default(), counts),
        &record(Counts::default(), Counts::default()),
    ])
}

#[test]
fn what_is_read_decides_what_is_owed() {
    let none = Counts::default();
    let table: [(Counts, Owed, Option<Source>); 14] = [
        (none, Owed::Property, None),
        (
            Counts {
                wall_clock: 1,
                ..none
            },
            Owed::CassettePin,
            Some(Source::WallClock),
        ),
        (
            Counts { entropy: 1, ..none },
            Owed::CassettePin,
            Some(Source::Entropy),
        ),
        (
            Counts {
                listings: 1,
                ..none
            },
            Owed::CassettePin,
            Some(Source::Listings),
        ),
        (
            Counts { sockets: 1, ..none },
            Owed::CassettePin,
            Some(Source::Network),
        ),
        (
            Counts { threads: 1, ..none },
            Owed::Neither,
            Some(Source::Threads),
        ),
        (
            Counts { sleeps: 1, ..none },
            Owed::Neither,
            Some(Source::Sleep),
        ),
        (
            Counts { urandom: 1, ..none },
            Owed::Neither,
            Some(Source::RandomDevice),
        ),
        (
            Counts {
                monotonic: 1,
                ..none
            },
            Owed::Neither,
            Some(Source::Monotonic),
        ),
        // A pinned clock moves nothing by itself; threads do.
        (
            Counts {
                threads: 1,
                wall_clock: 9,
                ..none
            },
            Owed::Neither,
            Some(Source::Threads),
        ),
        // Clients wait and start threads for their own ends.
        (
            Counts {
                sockets: 1,
                threads: 1,
                sleeps: 3,
                ..none
            },
            Owed::CassettePin,
            Some(Source::Network),
        ),
        // But not where the other end is the case's own.
        (
            Counts {
                sockets: 1,
                servers: 1,
                threads: 1,
                ..none
            },
            Owed::Neither,
            Some(Source::OwnServer),
        ),
        (
            Counts {
                wall_clock: 1,
                monotonic: 2,
                ..none
            },
            Owed::CassettePin,
            Some(Source::WallClock),
        ),
        (
            Counts {
                entropy: 1,
                urandom: 1,
                ..none
            },
            Owed::Neither,
            Some(Source::RandomDevice),
        ),
    ];
    for (counts, owed, source) in table {
        let found = of(counts);
        assert_eq!((found.owed, found.source), (owed, source), "{counts:?}");
    }
}

#[test]
fn what_a_cassette_answers_is_blamed_last() {
    let none = Counts::default();
    let mut with = record(
        none,
        Counts {
            sockets: 2,
            monotonic: 1,
            ..none
        },
    );
    with.cassette = Some(CassetteUse {
        used: vec!["http:GET /rates".into()],
        misses: vec![],
    });
    let found = diagnose(&[&with]);
    assert_eq!(
        (found.owed, found.source),
        (Owed::Neither, Some(Source::Monotonic))
    );
    assert!(
        found
            .told()
            .contains("other hosts (2 times in the product; answered by its cassette)")
    );
}

#[test]
fn a_changed_pin_that_settles_it_outweighs_what_is_pinned_only() {
    let none = Counts::default();
    let table = [
        (none, Moved::HashSeed, Owed::Property, None),
        (
            Counts {
                wall_clock: 1,
                entropy: 1,
                ..none
            },
            Moved::Seed,
            Owed::CassettePin,
            Some(Source::Entropy),
        ),
        (
            Counts {
                wall_clock: 1,
                ..none
            },
            Moved::Order,
            Owed::Property,
            None,
        ),
        (
            Counts {
                monotonic: 1,
                ..none
            },
            Moved::Clock,
            Owed::CassettePin,
            Some(Source::WallClock),
        ),
        // It has threads: another clock that settles it proves nothing.
        (
            Counts { threads: 1, ..none },
            Moved::Clock,
            Owed::Neither,
            Some(Source::Threads),
        ),
    ];
    for (counts, moved, owed, source) in table {
        let found = of(counts).with(Some(moved));
        assert_eq!(
            (found.owed, found.source, found.moved),
            (owed, source, Some(moved)),
            "{counts:?}"
        );
    }
}

#[test]
fn the_words_are_for_a_person() {
    let none = Counts::default();
    let clock = of(Counts {
        wall_clock: 2,
        ..none
    });
    assert_eq!(
        clock.told(),
        "reads the wall clock (2 times in the product; pinned by the policy); owed: an accepted cassette with the pin `clock`"
    );
    assert!(
        of(none)
            .told()
            .starts_with("reads no clock, random numbers")
    );
    let threads = of(Counts { threads: 1, ..none }).told();
    assert!(
        threads.ends_with(
            "threads cannot be pinned, and a case that depends on it does not belong here"
        ),
        "{threads}"
    );
}

/// Both pass; the second has a cassette, of which these were used and missed.
fn with_cassette(used: &[&str], misses: &[&str]) -> Attempt {
    let mut attempt = attempt().pass(EMPTY).pass(THREE);
    let texts = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect();
    let cases = attempt.0.cases.iter_mut();
    for record in cases.filter(|case| case.node.as_str() == THREE) {
        record.cassette = Some(CassetteUse {
            used: texts(used),
            misses: texts(misses),
        });
    }
    attempt
}

#[test]
fn a_read_that_the_cassette_does_not_answer_is_red_whatever_the_case_said() {
    let base = attempt().pass(EMPTY).pass(THREE);
    let missed = with_cassette(&[], &["http:GET api.example.org/rates/usd?x=1"]);
    let judged = trial(base.clone(), seven(&missed)).judge();
    assert_eq!(
        (words(&judged).as_str(), src(&judged)),
        ("FAIL PASS PASS", vec![Reason::CassetteMiss])
    );
    let said = judged.verdict(VerdictKind::SrcScore).grounds()[0]
        .seen
        .clone();
    assert!(
        said.unwrap()
            .contains("http:GET api.example.org/rates/usd?x=1")
    );
    // Now and then is a miss as well, and so is another one every time.
    let fine = with_cassette(&["clock"], &[]);
    let other = with_cassette(&["clock"], &["fs:/tmp/out"]);
    for fourth in [missed.clone(), other] {
        let judged = trial(base.clone(), but_fourth(&fine, fourth)).judge();
        assert_eq!(src(&judged), [Reason::CassetteMiss]);
    }
    assert_eq!(words(&trial(base, seven(&fine)).judge()), "PASS PASS PASS");
}

#[test]
fn a_pin_that_no_attempt_asks_for_is_told_by_its_file() {
    let record = InEffect {
        path: "cassettes/three.json".parse().unwrap(),
        sha256: crate::id::Digest::of(b"x"),
        cassette: Cassette {
            test: THREE.parse().unwrap(),
            clock: Some("2026-09-12T00:00:00+00:00".into()),
            rng_seed: Some(20_260_912),
            fs: [("/tmp/out".to_owned(), vec!["a".to_owned()])].into(),
            http: vec![],
        },
        bodies: std::collections::BTreeMap::new(),
    };
    let attempts = [
        with_cassette(&["clock"], &[]),
        with_cassette(&["fs:/tmp/out"], &[]),
    ];
    let found = over_pinned::unused(
        std::slice::from_ref(&record),
        attempts.iter().map(|one| &one.0),
    );
    let [ground] = found.as_slice() else {
        unreachable!("{found:?}")
    };
    assert_eq!(ground.reason, Reason::OverPinned);
    assert_eq!(ground.subject.as_deref(), Some("cassettes/three.json"));
    assert_eq!(ground.detail, "no attempt asked for its pin `rng_seed`");
    // Of a case that did not run nothing is known.
    let none = [attempt().pass(EMPTY)];
    assert!(over_pinned::unused(&[record], none.iter().map(|one| &one.0)).is_empty());
}

fn runs(changed: Option<Moved>, outcomes: &[bool]) -> Perturbed {
    let attempts = outcomes.iter().map(|&passed| {
        let attempt = attempt();
        if passed {
            attempt.pass(THREE).0
        } else {
            attempt.fail(THREE, "AssertionError: no").0
        }
    });
    Perturbed {
        changed,
        attempts: attempts.collect(),
    }
}

#[test]
fn only_the_one_change_that_chance_does_not_explain_is_named() {
    let coin = [
        true, false, false, true, true, false, true, false, false, true, false, true,
    ];
    let (same, other) = ([true; 12], [false; 12]);
    let node: NodeId = THREE.parse().unwrap();
    let seen = runs(None, &coin).attempts;
    let told = |perturbed: &[Perturbed]| settled(&node, &seen, perturbed);
    let mixed = |changed| runs(Some(changed), &coin);
    assert_eq!(
        told(&[
            runs(None, &coin),
            runs(Some(Moved::Clock), &same),
            mixed(Moved::Seed)
        ]),
        Some(Moved::Clock)
    );
    assert_eq!(
        told(&[runs(Some(Moved::Order), &other)]),
        Some(Moved::Order)
    );
    assert_eq!(told(&[mixed(Moved::Clock), mixed(Moved::Listings)]), None);
    // Settled by each of two: by neither.
    assert_eq!(
        told(&[
            runs(Some(Moved::Clock), &same),
            runs(Some(Moved::Seed), &same)
        ]),
        None
    );
    // Too few attempts, or a failure that is rare anyhow.
    assert_eq!(told(&[runs(Some(Moved::Clock), &[true; 5])]), None);
    // Of a coin that is thrown eight times under each of five changes, all throws of one are equal once in 26 cases.
    assert_eq!(told(&[runs(Some(Moved::Clock), &[true; 8])]), None);
    assert_eq!(
        told(&[runs(Some(Moved::Clock), &[true; 9])]),
        Some(Moved::Clock)
    );
    let mut rare = [true; 12];
    rare[3] = false;
    let seen = runs(None, &rare).attempts;
    assert_eq!(
        settled(&node, &seen, &[runs(Some(Moved::Clock), &same)]),
        None
    );
    // Nothing that settles by itself, unchanged, once its files run alone.
    let seen = runs(None, &coin).attempts;
    let alone = [
        runs(None, &same),
        runs(None, &same),
        runs(None, &same),
        runs(None, &same),
        runs(Some(Moved::Clock), &same),
    ];
    assert_eq!(settled(&node, &seen, &alone), None);
}

#[test]
fn only_cases_whose_sources_leave_it_open_run_again() {
    let none = Counts::default();
    let with = |counts: Counts, passed: bool| {
        let mut facts = runs(None, &[passed]).attempts.remove(0);
        facts.cases[0].reads.product = counts;
        facts
    };
    let open = |counts: Counts| !open_cases(&[with(counts, true), with(counts, false)]).is_empty();
    assert!(
        open(none)
            && open(Counts {
                wall_clock: 1,
                monotonic: 3,
                ..none
            })
    );
    assert!(!open(Counts { threads: 1, ..none }) && !open(Counts { sockets: 1, ..none }));
    assert!(open_cases(&[with(none, true), with(none, true)]).is_empty());
}

#[test]
fn one_pin_is_another_and_the_others_stay() {
    let pins = attempt().0.pins;
    for changed in Moved::ALL {
        let other = changed_pins(&pins, Some(changed));
        let differs = [
            other.clock != pins.clock,
            other.seed != pins.seed,
            other.hash_seed != pins.hash_seed,
        ];
        let wanted = [
            changed == Moved::Clock,
            changed == Moved::Seed,
            changed == Moved::HashSeed,
        ];
        assert_eq!(differs, wanted, "{changed:?}");
    }
    assert_eq!(
        changed_pins(&pins, Some(Moved::Clock)).clock,
        "2026-09-15T05:17:11Z"
    );
}

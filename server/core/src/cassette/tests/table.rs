//! Rows: what head does to base's tree, and what is told of it.

use super::tree::*;
use crate::cassette::{Change, NAMESPACE, NoteChange, PinChange, in_effect};
use crate::policy::Policy;
use NoteChange::{Added, Moved};

const LATER: &str = "2026-10-01T00:00:00Z";

/// Every pin of a new cassette, noted.
fn fresh(path: &str, content: &str) -> crate::cassette::Entry {
    entry(path, content, &PINS.map(|pin| (pin, Added, "new")))
}

fn add(tree: &mut Tree, entry: crate::cassette::Entry) {
    let bytes = tree.get(LEDGER).unwrap().as_bytes();
    let mut entries = crate::cassette::Ledger::parse(bytes).unwrap().entries;
    entries.push(entry);
    tree.insert(LEDGER.to_owned(), ledger(entries));
}

fn entry_alone(tree: &mut Tree, change: impl FnOnce(&mut crate::cassette::Entry)) {
    let mut entry = entry_of(tree, RECORD);
    change(&mut entry);
    tree.insert(LEDGER.to_owned(), ledger(vec![entry]));
}

fn later() -> String {
    record(LATER, SEED, RATE, TEST)
}

type Row = (&'static str, fn(&mut Tree), &'static [&'static str]);

const DRIFT: &str = "cassette-drift cassettes/invoice.json";
const UNACCEPTED: &str = "cassette-unaccepted cassettes/invoice.json";
const LOST: &str = "cassette-pin-lost cassettes/invoice.json";
const INVALID: &str = "cassette-invalid cassettes/invoice.json";

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("nothing", |_| {}, &[]),
    ("a_pin_moved_noted_and_accepted", |t| {
        let entry = rewrite(t, &later(), &[("clock", Moved, "the quarter ended")]);
        t.insert(LEDGER.into(), ledger(vec![accepted(entry)]));
    }, &[]),
    ("a_cassette_added_noted_and_accepted", |t| {
        let content = record(CLOCK, SEED, RATE, "tests/test_touched.py::test_touched");
        t.insert("cassettes/deep/touched.json".into(), content.clone());
        add(t, accepted(fresh("cassettes/deep/touched.json", &content)));
    }, &[]),
    ("the_clock_spelled_otherwise_needs_a_note_too", |t| {
        let content = record("2026-09-12T00:00:00Z", SEED, RATE, TEST);
        let entry = rewrite(t, &content, &[]);
        t.insert(LEDGER.into(), ledger(vec![accepted(entry)]));
    }, &[DRIFT]),
    ("spelled_otherwise_with_a_note", |t| {
        let content = record("2026-09-12T00:00:00Z", SEED, RATE, TEST);
        let entry = rewrite(t, &content, &[("clock", Moved, "spelled as the policy does")]);
        t.insert(LEDGER.into(), ledger(vec![accepted(entry)]));
    }, &[]),
    ("a_bare_list_is_a_ledger_too", |t| {
        let entry = entry_of(t, RECORD);
        t.insert(LEDGER.into(), serde_json::to_string(&[entry]).unwrap());
    }, &[]),
    // Drift.
    ("hash_changed_alone", |t| { t.insert(RECORD.into(), later()); }, &[DRIFT, DRIFT]),
    ("hash_changed_in_ledger_too_without_a_note", |t| {
        let entry = rewrite(t, &later(), &[]);
        t.insert(LEDGER.into(), ledger(vec![accepted(entry)]));
    }, &[DRIFT]),
    ("a_note_for_another_pin", |t| {
        let entry = rewrite(t, &later(), &[("rng_seed", Moved, "because")]);
        t.insert(LEDGER.into(), ledger(vec![accepted(entry)]));
    }, &[DRIFT]),
    ("a_note_of_another_kind_of_change", |t| {
        let entry = rewrite(t, &later(), &[("clock", Added, "because")]);
        t.insert(LEDGER.into(), ledger(vec![accepted(entry)]));
    }, &[DRIFT]),
    ("a_note_of_an_earlier_change_says_nothing_new", |t| {
        let mut entry = rewrite(t, &later(), &[]);
        entry.notes.push(entry.notes.first().unwrap().clone());
        t.insert(LEDGER.into(), ledger(vec![accepted(entry)]));
    }, &[DRIFT]),
    ("a_note_for_a_pin_that_is_not_there", |t| {
        let notes = [("clock", Moved, "x"), ("http:GET /other", Moved, "y")];
        let entry = rewrite(t, &later(), &notes);
        t.insert(LEDGER.into(), ledger(vec![accepted(entry)]));
    }, &[DRIFT]),
    ("the_entry_names_other_pins", |t| entry_alone(t, |e| {
        e.pins.pop();
        *e = accepted(e.clone());
    }), &[DRIFT]),
    ("not_in_the_ledger", |t| {
        t.insert("cassettes/more.json".into(), record(CLOCK, SEED, RATE, "tests/test_touched.py::test_touched"));
    }, &["cassette-drift cassettes/more.json"]),
    ("the_entry_is_gone", |t| { t.insert(LEDGER.into(), ledger(vec![])); }, &[DRIFT]),
    ("the_ledger_is_gone", |t| { t.remove(LEDGER); }, &[DRIFT, "cassette-pin-lost ci/cassette_ledger.json"]),
    ("an_entry_for_nothing", |t| add(t, accepted(fresh("cassettes/ghost.json", "x"))), &["cassette-drift cassettes/ghost.json"]),
    ("body_swapped", |t| {
        t.insert(format!("cassettes/bodies/{}", hex(RATE)), "{\"rate\": 9}\n".into());
    }, &["cassette-drift cassettes/bodies/1c4cff46c1a0b4a4f7d5e9a3b4c5d6e7"]),
    ("body_is_a_link", |t| {
        t.insert(format!("cassettes/bodies/{}", hex(RATE)), "->".into());
    }, &["cassette-drift cassettes/bodies/…"]),
    ("body_gone", |t| { t.remove(&format!("cassettes/bodies/{}", hex(RATE))); }, &["cassette-pin-lost cassettes/bodies/…"]),
    ("body_never_there", |t| {
        let entry = rewrite(t, &record(CLOCK, SEED, "another", TEST), &[("http:GET /rates/usd", Moved, "x")]);
        t.insert(LEDGER.into(), ledger(vec![accepted(entry)]));
    }, &["cassette-drift cassettes/bodies/…"]),
    ("a_body_under_no_hash", |t| { t.insert("cassettes/bodies/readme".into(), "x".into()); }, &["cassette-invalid cassettes/bodies/readme"]),
    // Lost.
    ("the_cassette_is_gone", |t| { t.remove(RECORD); }, &[LOST]),
    ("the_cassette_and_its_entry_are_gone", |t| { t.remove(RECORD); t.insert(LEDGER.into(), ledger(vec![])); }, &[LOST]),
    ("moved_to_another_path", |t| {
        let content = t.remove(RECORD).unwrap();
        t.insert("cassettes/renamed.json".into(), content.clone());
        t.insert(LEDGER.into(), ledger(vec![accepted(fresh("cassettes/renamed.json", &content))]));
    }, &[LOST]),
    ("renamed_out_of_sight", |t| {
        let content = t.remove(RECORD).unwrap();
        t.insert(format!("{RECORD}.old"), content);
    }, &[LOST]),
    ("a_pin_dropped_note_or_no_note", |t| {
        let content = t.get(RECORD).unwrap().replace("  \"clock\": \"2026-09-12T00:00:00+00:00\",\n", "");
        let mut entry = rewrite(t, &content, &[("rng_seed", Moved, "the clock is not read any more")]);
        entry.pins.retain(|pin| pin != "clock");
        t.insert(LEDGER.into(), ledger(vec![accepted(entry)]));
    }, &[LOST]),
    ("a_pin_dropped_and_the_note_says_so", |t| {
        let content = t.get(RECORD).unwrap().replace("  \"clock\": \"2026-09-12T00:00:00+00:00\",\n", "");
        rewrite(t, &content, &[]);
        let text = t.get(LEDGER).unwrap().replacen("\"added\"", "\"removed\"", 1);
        t.insert(LEDGER.into(), text);
    }, &["cassette-invalid ci/cassette_ledger.json", LOST]),
    ("it_speaks_for_another_test_now", |t| {
        let content = record(CLOCK, SEED, RATE, "tests/test_touched.py::test_touched");
        let entry = rewrite(t, &content, &PINS.map(|pin| (pin, Added, "moved over")));
        t.insert(LEDGER.into(), ledger(vec![accepted(entry)]));
    }, &[LOST, LOST, LOST, LOST]),
    // Acceptance.
    ("a_draft", |t| { rewrite(t, &later(), &[("clock", Moved, "x")]); entry_alone(t, |e| { e.accepted_by.clear(); e.signature.clear(); }); }, &[UNACCEPTED]),
    ("the_old_signature", |t| { rewrite(t, &later(), &[("clock", Moved, "x")]); }, &[UNACCEPTED]),
    ("claimed_without_a_signature", |t| {
        rewrite(t, &later(), &[("clock", Moved, "x")]);
        entry_alone(t, |e| e.signature.clear());
    }, &[UNACCEPTED]),
    ("a_signature_that_is_none", |t| {
        rewrite(t, &later(), &[("clock", Moved, "x")]);
        entry_alone(t, |e| e.signature = "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n".into());
    }, &[UNACCEPTED]),
    ("with_the_agents_own_key", |t| {
        rewrite(t, &later(), &[("clock", Moved, "x")]);
        entry_alone(t, |e| e.signature = signature(AGENT, NAMESPACE, &e.to_be_signed()));
    }, &[UNACCEPTED]),
    ("with_a_signer_that_head_adds", |t| {
        rewrite(t, &later(), &[("clock", Moved, "x")]);
        let signers = t.get(SIGNERS).unwrap().clone() + &signer("agent@example.org", "", AGENT);
        t.insert(SIGNERS.into(), signers);
        entry_alone(t, |e| {
            e.accepted_by = "agent@example.org".into();
            e.signature = signature(AGENT, NAMESPACE, &e.to_be_signed());
        });
    }, &[UNACCEPTED]),
    ("made_for_other_pins", |t| {
        let mut other = rewrite(t, &later(), &[("clock", Moved, "x")]);
        other.pins.pop();
        let made = accepted(other).signature;
        entry_alone(t, |e| e.signature = made);
    }, &[UNACCEPTED]),
    ("made_for_another_path", |t| {
        let mut other = rewrite(t, &later(), &[("clock", Moved, "x")]);
        other.path = "cassettes/other.json".parse().unwrap();
        let made = accepted(other).signature;
        entry_alone(t, |e| e.signature = made);
    }, &[UNACCEPTED]),
    ("made_for_other_notes", |t| {
        let mut other = rewrite(t, &later(), &[("clock", Moved, "x")]);
        other.notes.last_mut().unwrap().why = "y".into();
        let made = accepted(other).signature;
        entry_alone(t, |e| e.signature = made);
    }, &[UNACCEPTED]),
    ("made_for_another_purpose", |t| {
        rewrite(t, &later(), &[("clock", Moved, "x")]);
        entry_alone(t, |e| e.signature = signature(MAINTAINER, "git", &e.to_be_signed()));
    }, &[UNACCEPTED]),
    ("notes_changed_without_a_new_signature", |t| entry_alone(t, |e| { e.notes.pop(); }), &[UNACCEPTED]),
    // Seeds, secrets, schema.
    ("another_seed", |t| {
        let entry = rewrite(t, &record(CLOCK, "7", RATE, TEST), &[("rng_seed", Moved, "x")]);
        t.insert(LEDGER.into(), ledger(vec![accepted(entry)]));
    }, &["seed-drift cassettes/invoice.json"]),
    ("a_token_in_a_body", |t| {
        let body = "{\"user\": 1, \"access_token\": \"abc\"}";
        t.insert(format!("cassettes/bodies/{}", hex(body)), body.into());
        let entry = rewrite(t, &record(CLOCK, SEED, body, TEST), &[("http:GET /rates/usd", Moved, "x")]);
        t.insert(LEDGER.into(), ledger(vec![accepted(entry)]));
    }, &["cassette-secret cassettes/bodies/…", "cassette-secret cassettes/invoice.json"]),
    ("does_not_parse", |t| { t.insert(RECORD.into(), "{".into()); }, &[INVALID]),
    ("a_link", |t| { t.insert(RECORD.into(), "->".into()); }, &[INVALID]),
    ("a_pointer", |t| { t.insert(RECORD.into(), "lfs".into()); }, &["lfs-pointer cassettes/invoice.json"]),
    ("the_ledger_is_a_link", |t| { t.insert(LEDGER.into(), "->".into()); }, &["cassette-invalid ci/cassette_ledger.json"]),
    ("the_ledger_has_a_key_twice", |t| {
        let text = t.get(LEDGER).unwrap().replacen("\"sha256\"", "\"path\": \"x\", \"sha256\"", 1);
        t.insert(LEDGER.into(), text);
    }, &["cassette-invalid ci/cassette_ledger.json"]),
    ("a_file_that_is_not_there", |t| {
        let content = record(CLOCK, SEED, RATE, "tests/sealed/test_gone.py::test_x");
        t.insert("cassettes/gone.json".into(), content.clone());
        add(t, accepted(fresh("cassettes/gone.json", &content)));
    }, &["cassette-invalid cassettes/gone.json"]),
    ("a_touched_case_that_is_not_there", |t| {
        let content = record(CLOCK, SEED, RATE, "tests/test_touched.py::test_gone");
        t.insert("cassettes/gone.json".into(), content.clone());
        add(t, accepted(fresh("cassettes/gone.json", &content)));
    }, &["cassette-invalid cassettes/gone.json"]),
    ("a_proposed_case", |t| {
        t.insert("tests/proposed/test_p.py".into(), "def test_p(): pass".into());
        let content = record(CLOCK, SEED, RATE, "tests/proposed/test_p.py::test_p");
        t.insert("cassettes/p.json".into(), content.clone());
        add(t, accepted(fresh("cassettes/p.json", &content)));
    }, &["cassette-invalid cassettes/p.json"]),
    ("a_second_cassette_for_one_test", |t| {
        let content = record(LATER, SEED, RATE, TEST);
        t.insert("cassettes/a.json".into(), content.clone());
        add(t, accepted(fresh("cassettes/a.json", &content)));
    }, &["cassette-invalid cassettes/a.json"]),
    ("files_that_nobody_reads", |t| { t.insert("cassettes/README.md".into(), "notes".into()); }, &[]),
];

#[test]
fn rows() {
    let base = base();
    for (row, change, expected) in ROWS {
        let mut head = base.clone();
        change(&mut head);
        let mut expected: Vec<String> = expected.iter().map(|told| bare(told)).collect();
        expected.sort();
        let told: Vec<String> = told(&base, &head).iter().map(|told| bare(told)).collect();
        assert_eq!(
            told,
            expected,
            "{row}: {:?}",
            heard(&base, &head).findings(GATE)
        );
    }
}

/// The hash of a body does not matter here.
fn bare(told: &str) -> String {
    match told.split_once("/bodies/") {
        Some((before, name)) if name != "readme" => format!("{before}/bodies/…"),
        Some(_) | None => told.to_owned(),
    }
}

/// What is on base already is told as base's, whatever head does elsewhere.
#[test]
fn what_base_lacks_is_told_as_base_s() {
    for (row, change, _) in ROWS {
        let mut tree = base();
        change(&mut tree);
        // The rows are about differences too; what a tree lacks by itself is told.
        tree.insert(
            "cassettes/alone.json".into(),
            record(CLOCK, SEED, RATE, "tests/test_touched.py::test_touched"),
        );
        let heard = heard(&tree, &tree);
        let findings = heard.findings(GATE);
        assert!(!findings.is_empty(), "{row}");
        for finding in findings {
            assert!(
                finding.detail.starts_with("on base already: "),
                "{row}: {finding:?}"
            );
        }
        assert!(heard.changes.is_empty(), "{row}");
    }
}

#[test]
fn the_difference_by_pin_name() {
    let base = base();
    let mut head = base.clone();
    let entry = rewrite(
        &mut head,
        &later(),
        &[("clock", Moved, "the quarter ended")],
    );
    head.insert(LEDGER.into(), ledger(vec![accepted(entry)]));
    let change = Change {
        path: RECORD.to_owned(),
        pin: Some("clock".to_owned()),
        change: PinChange::Moved,
        why: Some("the quarter ended".to_owned()),
        accepted_by: Some(WHO.to_owned()),
    };
    assert_eq!(heard(&base, &head).changes, std::slice::from_ref(&change));
    entry_alone(&mut head, |e| e.signature.clear());
    let unaccepted = Change {
        accepted_by: None,
        ..change
    };
    assert_eq!(heard(&base, &head).changes, [unaccepted]);
}

#[test]
fn heads_record_goes_where_it_can_and_bases_where_it_cannot() {
    let base = base();
    let policy = Policy::default();
    let effect = |head: &Tree| {
        let records = in_effect(&policy.paths, &facts(&base, head));
        records
            .iter()
            .map(|r| {
                (
                    r.path.to_string(),
                    r.cassette.clock.clone().unwrap(),
                    r.bodies.len(),
                )
            })
            .collect::<Vec<_>>()
    };
    let old = (RECORD.to_owned(), "2026-09-12T00:00:00Z".to_owned(), 1);
    let new = (RECORD.to_owned(), LATER.to_owned(), 1);
    let mut head = base.clone();
    assert_eq!(effect(&head), std::slice::from_ref(&old));
    head.insert(RECORD.into(), later());
    assert_eq!(effect(&head), [new]);
    for spoilt in ["{", "->", "lfs"] {
        head.insert(RECORD.into(), spoilt.into());
        assert_eq!(effect(&head), std::slice::from_ref(&old));
    }
    head.remove(RECORD);
    assert_eq!(effect(&head), std::slice::from_ref(&old));
    head.insert("cassettes/a.json".into(), later());
    assert_eq!(
        effect(&head),
        std::slice::from_ref(&old),
        "a moved one does not take over"
    );
    head = base.clone();
    head.insert(RECORD.into(), record(LATER, SEED, "nowhere", TEST));
    assert_eq!(effect(&head), [old], "its body is not there");
}

//! Verification: what holds, and that nothing else does, down to the byte.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use crate::keys::KeyRecord;
use crate::reason::Reason;
use crate::signed_sample::{ISSUED, PASSES, dir, public, scored};
use std::sync::OnceLock;

fn ring(seed: u8) -> KeyRing {
    KeyRing::new(vec![KeyRecord::undated(public(seed))])
}

/// Sealed once: signing is slow in a debug build.
fn good() -> VerdictDir {
    static GOOD: OnceLock<VerdictDir> = OnceLock::new();
    GOOD.get_or_init(|| dir(7, PASSES, Reason::CaseFailed, &scored()))
        .clone()
}

/// The first check that fails.
fn failing(verification: &Verification) -> Option<Step> {
    verification
        .checks()
        .iter()
        .find(|check| check.is_failure())
        .map(|check| check.step)
}

fn edited(name: &str, edit: impl FnOnce(&mut Vec<u8>)) -> Verification {
    let mut dir = good();
    edit(dir.files_mut().get_mut(name).unwrap());
    verify(&dir, &ring(7))
}

fn replaced(name: &str, from: &str, to: &str) -> Verification {
    edited(name, |bytes| {
        let text = String::from_utf8(bytes.clone()).unwrap();
        let other = text.replacen(from, to, 1);
        assert_ne!(text, other, "{from} is not in {name}");
        *bytes = other.into_bytes();
    })
}

#[test]
fn a_good_folder_holds_and_says_every_check() {
    let verification = verify(&good(), &ring(7));
    assert_eq!(failing(&verification), None);
    let [src_score, ..] = verification.verified().unwrap();
    assert_eq!(
        (src_score.kind(), src_score.word()),
        (VerdictKind::SrcScore, Word::Pass)
    );
    assert_eq!(src_score.issued_at(), ISSUED);
    let steps: Vec<String> = verification
        .checks()
        .iter()
        .map(|c| format!("{} {}", c.step, c.subject))
        .collect();
    let per_verdict = [
        "present",
        "bundle",
        "key",
        "signature",
        "payload",
        "statement",
        "key-dates",
        "ssh-signature",
        "word",
    ];
    let mut right: Vec<String> = VerdictKind::ALL
        .iter()
        .flat_map(|kind| per_verdict.map(|step| format!("{step} {}", kind.file_stem())))
        .collect();
    right.extend(
        [
            "one-set repositories/demo/scores/0123456789abcdef0123456789abcdef",
            "report report.json",
        ]
        .map(Into::into),
    );
    right
        .extend(["bundle", "key", "signature"].map(|step| format!("{step} src_score.test-result")));
    right.push("test-result src_score.test-result.sigstore.json".into());
    assert_eq!(steps, right);
}

#[test]
fn field_60_signed_bytes_are_file_bytes() {
    let crlf = |bytes: &mut Vec<u8>| {
        *bytes = String::from_utf8(bytes.clone())
            .unwrap()
            .replace('\n', "\r\n")
            .into_bytes()
    };
    for kind in VerdictKind::ALL {
        for (ending, step) in [
            (".txt", Step::Word),
            (".json", Step::Payload),
            (".json.sig", Step::SshSignature),
            (".sigstore.json", Step::Bundle),
        ] {
            let name = format!("{}{ending}", kind.file_stem());
            assert_eq!(
                failing(&edited(&name, |b| b.push(b'\n'))),
                Some(step),
                "{name}: a newline more"
            );
            assert_eq!(
                failing(&edited(&name, |b| b.truncate(b.len() - 1))),
                Some(step),
                "{name}: a newline less"
            );
            assert_eq!(failing(&edited(&name, crlf)), Some(step), "{name}: CRLF");
            assert_eq!(
                failing(&edited(&name, Vec::clear)),
                Some(step),
                "{name}: empty"
            );
        }
        let json = format!("{}.json", kind.file_stem());
        assert_eq!(
            failing(&replaced(&json, "\u{e9}", "\\u00e9")),
            Some(Step::Payload),
            "an escape"
        );
        assert_eq!(
            failing(&replaced(&json, "\u{e9}", "e\u{301}")),
            Some(Step::Payload),
            "another normal form"
        );
        let two = [
            "\"planned\": 7,\n      \"seen\": 7",
            "\"seen\": 7,\n      \"planned\": 7",
        ];
        assert_eq!(
            failing(&replaced(&json, two[0], two[1])),
            Some(Step::Payload),
            "two keys the other way round"
        );
    }
    let bundle = "src_score.sigstore.json";
    assert_eq!(
        failing(&replaced(bundle, "\"keyid\":", "\"keyid\": ")),
        Some(Step::Bundle),
        "a space"
    );
    assert_eq!(
        failing(&replaced(
            bundle,
            "\"signatures\":[",
            "\"signatures\":[{\"sig\":\"\",\"keyid\":\"\"},"
        )),
        Some(Step::Bundle)
    );
    assert_eq!(
        failing(&replaced(
            bundle,
            "\"hint\":\"SHA256:",
            "\"hint\":\"SHA256:A"
        )),
        Some(Step::Bundle)
    );
    assert_eq!(
        failing(&replaced(
            bundle,
            "{\"mediaType\"",
            "{\"tlog\":1,\"mediaType\""
        )),
        Some(Step::Bundle)
    );
}

#[test]
fn signatures_of_one_kind_do_not_serve_another() {
    for ending in [".json.sig", ".sigstore.json", ".json", ".txt"] {
        let mut dir = dir(
            7,
            [Word::Pass, Word::Fail, Word::Pass],
            Reason::TamperRuntime,
            &scored(),
        );
        let (a, b) = (
            format!("src_score{ending}"),
            format!("oracle_integrity{ending}"),
        );
        let files = dir.files_mut();
        let (first, second) = (files.remove(&a).unwrap(), files.remove(&b).unwrap());
        files.extend([(a, second), (b, first)]);
        let verification = verify(&dir, &ring(7));
        assert!(verification.verified().is_none(), "{ending}");
        assert!(failing(&verification).is_some(), "{ending}");
    }
}

#[test]
fn kinds_that_are_swapped_whole_are_found_by_their_predicate() {
    let mut dir = dir(
        7,
        [Word::Pass, Word::Fail, Word::Pass],
        Reason::TamperRuntime,
        &scored(),
    );
    for ending in [".json.sig", ".sigstore.json", ".json", ".txt"] {
        let good = dir
            .files_mut()
            .get(&format!("src_score{ending}"))
            .unwrap()
            .clone();
        dir.files_mut()
            .insert(format!("oracle_integrity{ending}"), good);
    }
    let verification = verify(&dir, &ring(7));
    assert_eq!(failing(&verification), Some(Step::Statement));
    assert_eq!(verification.verdicts()[1], Err(Unverified::Failed));
}

#[test]
fn keys_are_known_by_name_and_date() {
    assert_eq!(failing(&verify(&good(), &ring(8))), Some(Step::Key));
    assert_eq!(
        failing(&verify(&good(), &KeyRing::default())),
        Some(Step::Key)
    );
    // After a rotation: the old key's statements stay good, the old key makes no new ones.
    let before = ring(7).rotated(public(8), crate::id::UnixTime(ISSUED.0 + 1));
    assert_eq!(failing(&verify(&good(), &before)), None);
    let after = ring(7).rotated(public(8), ISSUED);
    assert_eq!(failing(&verify(&good(), &after)), Some(Step::KeyDates));
    assert_eq!(
        failing(&verify(&good(), &ring(8).rotated(public(7), ISSUED))),
        None
    );
    let revoked = |since: i64| {
        ring(7)
            .revoked(public(7).id(), crate::id::UnixTime(since))
            .unwrap()
    };
    assert_eq!(
        failing(&verify(&good(), &revoked(ISSUED.0))),
        Some(Step::KeyDates)
    );
    assert_eq!(failing(&verify(&good(), &revoked(ISSUED.0 + 1))), None);
}

#[test]
fn files_that_are_missing_are_named() {
    for kind in VerdictKind::ALL {
        for ending in [".txt", ".json", ".json.sig", ".sigstore.json"] {
            let mut dir = good();
            let name = format!("{}{ending}", kind.file_stem());
            dir.files_mut().remove(&name).unwrap();
            let verification = verify(&dir, &ring(7));
            assert_eq!(failing(&verification), Some(Step::Present), "{name}");
            assert!(
                verification
                    .checks()
                    .iter()
                    .any(|c| c.result == CheckResult::Failed(format!("no {name}"))),
                "{name}"
            );
            assert!(verification.verified().is_none());
        }
    }
    for name in ["report.json", "src_score.test-result.sigstore.json"] {
        let mut dir = good();
        dir.files_mut().remove(name).unwrap();
        assert!(
            verify(&dir, &ring(7)).verified().is_some(),
            "{name} may stay behind"
        );
    }
}

#[test]
fn a_set_is_of_one_score_and_one_key() {
    let other_score = crate::statement::Scored {
        score: "f".repeat(32).parse().unwrap(),
        ..scored()
    };
    let other_words = crate::statement::Scored {
        planned_attempts: 3,
        held_out: crate::statement::HeldOut::default(),
        ..scored()
    };
    for other in [
        dir(7, PASSES, Reason::CaseFailed, &other_score),
        dir(7, PASSES, Reason::CaseFailed, &other_words),
        dir(8, PASSES, Reason::CaseFailed, &scored()),
    ] {
        for kind in VerdictKind::ALL {
            let mut mixed = good();
            let mut other = other.clone();
            for ending in [".txt", ".json", ".json.sig", ".sigstore.json"] {
                let name = format!("{}{ending}", kind.file_stem());
                let bytes = other.files_mut().remove(&name).unwrap();
                mixed.files_mut().insert(name, bytes);
            }
            let keys = KeyRing::new(vec![
                KeyRecord::undated(public(7)),
                KeyRecord::undated(public(8)),
            ]);
            assert_eq!(
                failing(&verify(&mixed, &keys)),
                Some(Step::OneSet),
                "{kind:?}"
            );
        }
    }
}

#[test]
fn the_files_beside_are_held_to_the_statements() {
    assert_eq!(
        failing(&edited("report.json", |b| b.push(b' '))),
        Some(Step::Report)
    );
    assert_eq!(
        failing(&edited("report.json", |b| *b = b"the operator's report".to_vec())),
        None
    );
    assert_eq!(
        failing(&edited("report.json", |b| *b = b"the full report".to_vec())),
        None
    );
    // The copy of another result, and of another subject.
    let name = "src_score.test-result.sigstore.json";
    let other_head = crate::statement::Scored {
        head: crate::signed_sample::commit('d'),
        ..scored()
    };
    for mut other in [
        dir(
            7,
            [Word::Fail, Word::Pass, Word::Pass],
            Reason::CaseFailed,
            &scored(),
        ),
        dir(7, PASSES, Reason::CaseFailed, &other_head),
    ] {
        let copy = other.files_mut().remove(name).unwrap();
        assert_eq!(
            failing(&edited(name, |b| *b = copy)),
            Some(Step::TestResult)
        );
    }
    assert_eq!(
        failing(&edited(name, |b| b.push(b'\n'))),
        Some(Step::Bundle)
    );
}

/// No single changed byte of any file leaves the folder verified.
#[test]
fn no_changed_byte_goes_unnoticed() {
    let whole = good();
    let names: Vec<(String, usize)> = whole
        .0
        .iter()
        .map(|(name, bytes)| (name.clone(), bytes.len()))
        .collect();
    for (name, length) in names {
        for place in (0..length).step_by(1 + length / 5) {
            let verification = edited(&name, |bytes| *bytes.get_mut(place).unwrap() ^= 1);
            assert!(verification.verified().is_none(), "byte {place} of {name}");
        }
    }
}

#[test]
fn hostile_text_in_a_file_is_escaped_where_it_is_told() {
    let verification = edited("src_score.txt", |b| *b = b"PASS\x1b[2J\n".to_vec());
    let said = format!("{:?}", verification.checks());
    assert!(!said.contains('\u{1b}'));
    let verification = edited("src_score.sigstore.json", |b| {
        *b = b"{\"\x1b\": 1}".to_vec()
    });
    assert_eq!(failing(&verification), Some(Step::Bundle));
}

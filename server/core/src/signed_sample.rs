//! One score for the tests of everything that is signed: fixed ids, fixed times, fixed keys, so fixed bytes.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::envelope::{Envelopes, seal};
use crate::git::Commit;
use crate::id::{Digest, UnixTime};
use crate::judge::{Judged, Word};
use crate::keys::PublicKey;
use crate::plan::ChangeSet;
use crate::reason::Reason;
use crate::statement::{Inputs, Isolation, Reports, Scored, Scorer, SrcTree, Statements};
use crate::verify::VerdictDir;
use ed25519_dalek::{Signer as _, SigningKey};
use std::collections::BTreeMap;

/// When the gate's clock was read: 2026-12-01T00:00:00Z.
pub(crate) const GATE: UnixTime = UnixTime(1_796_083_200);
/// A minute later.
pub(crate) const ISSUED: UnixTime = UnixTime(1_796_083_260);
/// Thirty days after the gate's time.
pub(crate) const UNTIL: UnixTime = UnixTime(1_798_675_200);

pub(crate) const PASSES: [Word; 3] = [Word::Pass; 3];

pub(crate) fn signing(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

pub(crate) fn public(seed: u8) -> PublicKey {
    PublicKey::from_bytes(signing(seed).verifying_key().as_bytes()).unwrap()
}

pub(crate) fn hex40(digit: char) -> String {
    digit.to_string().repeat(40)
}

pub(crate) fn commit(digit: char) -> Commit {
    Commit {
        id: hex40(digit).parse().unwrap(),
        tree: hex40('7').parse().unwrap(),
        sha256: Digest::of(digit.to_string().as_bytes()),
    }
}

pub(crate) fn scored() -> Scored {
    Scored {
        score: "0123456789abcdef0123456789abcdef".parse().unwrap(),
        scorer: Scorer {
            id: "tribunal@example.org".into(),
            version: "0.1.0".into(),
        },
        repository: "demo".parse().unwrap(),
        protected_ref: "refs/heads/main".into(),
        head: commit('a'),
        base: commit('b'),
        base_tip: hex40('b').parse().unwrap(),
        merge_bases: vec![hex40('b').parse().unwrap()],
        change_set: ChangeSet::Agent,
        src_trees: vec![SrcTree {
            root: "src/".into(),
            tree: hex40('c').parse().unwrap(),
        }],
        inputs: Inputs {
            oracle: Digest::of(b"oracle"),
            policy: Digest::of(b"policy"),
            pins: Digest::of(b"pins"),
            overlay: Some(Digest::of(b"overlay")),
            image: Some(Digest::of(b"image").to_string()),
            runner: Some(Digest::of(b"runner").to_string()),
            ledger: None,
            cassettes: None,
        },
        ledger: Vec::new(),
        planned_attempts: 7,
        held_out: crate::statement::HeldOut::default(),
        merge_overlay: None,
        isolation: BTreeMap::from([(
            "tests/sealed/test_\u{e9}.py".parse().unwrap(),
            Isolation::Shared,
        )]),
    }
}

pub(crate) fn reports() -> Reports {
    Reports {
        operator: Digest::of(b"the operator's report"),
        full: Digest::of(b"the full report"),
        agent: Digest::of(b"the report"),
    }
}

pub(crate) fn statements(judged: &Judged, scored: &Scored) -> Statements {
    Statements::of(judged, scored, &reports(), ISSUED).unwrap()
}

pub(crate) fn sealed(seed: u8, words: [Word; 3], reason: Reason, scored: &Scored) -> Envelopes {
    let judged = Judged::sample(words, reason, GATE, UNTIL);
    let key = signing(seed);
    seal::<()>(statements(&judged, scored), &public(seed), |message| {
        Ok(key.sign(message).to_bytes())
    })
    .unwrap()
}

/// The folder of a score whose three words are these.
pub(crate) fn dir(seed: u8, words: [Word; 3], reason: Reason, scored: &Scored) -> VerdictDir {
    let files = sealed(seed, words, reason, scored).into_files();
    let report = ("report.json".to_owned(), b"the report".to_vec());
    VerdictDir::new(
        files
            .into_iter()
            .map(|file| (file.name, file.bytes))
            .chain([report]),
    )
}

//! A tree of cassettes that a maintainer has accepted, and hands that change it.

use crate::cassette::{
    CassetteFacts, Entry, Hearing, Kind, Leaf, Ledger, NAMESPACE, Note, NoteChange, Shelf, hear,
};
use crate::git::GitPath;
use crate::id::{Digest, UnixTime};
use crate::policy::Policy;
use ed25519_dalek::{Signer as _, SigningKey};
use ssh_key::public::{Ed25519PublicKey, KeyData};
use ssh_key::{Algorithm, HashAlg, LineEnding, PublicKey, Signature, SshSig};
use std::collections::BTreeMap;

pub(super) const MAINTAINER: u8 = 1;
pub(super) const AGENT: u8 = 2;
pub(super) const WHO: &str = "maintainer@example.org";
pub(super) const RECORD: &str = "cassettes/invoice.json";
pub(super) const LEDGER: &str = "ci/cassette_ledger.json";
pub(super) const SIGNERS: &str = "ci/allowed_signers";
pub(super) const TEST: &str = "tests/sealed/test_invoice.py::test_overdue";
pub(super) const RATE: &str = "{\"rate\": 1.25}\n";

/// Path to content; a content `->` is a link, `lfs` a pointer.
pub(super) type Tree = BTreeMap<String, String>;

pub(super) fn hex(text: &str) -> String {
    Digest::of(text.as_bytes()).hex().to_owned()
}

/// The record of the tree.
pub(super) fn record(clock: &str, seed: &str, body: &str, test: &str) -> String {
    format!(
        r#"{{
  "schema": "cassette.v1",
  "test": "{test}",
  "clock": "{clock}",
  "rng_seed": {seed},
  "fs": {{ "/tmp/outbox": ["n-100.json", "n-101.json"] }},
  "http": [ {{ "method": "GET", "path": "/rates/usd", "status": 200, "body_sha256": "{}" }} ]
}}
"#,
        hex(body)
    )
}

pub(super) const CLOCK: &str = "2026-09-12T00:00:00+00:00";
pub(super) const SEED: &str = "20260912";
pub(super) const PINS: [&str; 4] = ["clock", "fs:/tmp/outbox", "http:GET /rates/usd", "rng_seed"];

/// An entry for this content.
pub(super) fn entry(path: &str, content: &str, notes: &[(&str, NoteChange, &str)]) -> Entry {
    let note = |(pin, change, why): &(&str, NoteChange, &str)| Note {
        pin: (*pin).to_owned(),
        change: *change,
        why: (*why).to_owned(),
    };
    Entry {
        path: path.parse().unwrap(),
        sha256: hex(content),
        pins: PINS.map(str::to_owned).to_vec(),
        notes: notes.iter().map(note).collect(),
        accepted_by: String::new(),
        signature: String::new(),
    }
}

fn secret(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

pub(super) fn public(seed: u8) -> PublicKey {
    let bytes = secret(seed).verifying_key().to_bytes();
    PublicKey::new(KeyData::Ed25519(Ed25519PublicKey(bytes)), "")
}

pub(super) fn signature(seed: u8, namespace: &str, message: &[u8]) -> String {
    let data = SshSig::signed_data(namespace, HashAlg::Sha512, message).unwrap();
    let signature = secret(seed).sign(&data).to_bytes();
    let signature = Signature::new(Algorithm::Ed25519, signature).unwrap();
    let key = public(seed).key_data().clone();
    let file = SshSig::new(key, namespace, HashAlg::Sha512, signature).unwrap();
    file.to_pem(LineEnding::LF).unwrap()
}

/// Accepted by the maintainer.
pub(super) fn accepted(mut entry: Entry) -> Entry {
    WHO.clone_into(&mut entry.accepted_by);
    entry.signature = signature(MAINTAINER, NAMESPACE, &entry.to_be_signed());
    entry
}

pub(super) fn signer(who: &str, options: &str, seed: u8) -> String {
    format!("{who} {options}{}\n", public(seed).to_openssh().unwrap())
}

pub(super) fn ledger(entries: Vec<Entry>) -> String {
    Ledger { entries }.to_json()
}

/// Base: one cassette, accepted.
pub(super) fn base() -> Tree {
    let content = record(CLOCK, SEED, RATE, TEST);
    let notes = PINS.map(|pin| (pin, NoteChange::Added, "first recorded"));
    let entry = accepted(entry(RECORD, &content, &notes));
    Tree::from([
        (RECORD.to_owned(), content),
        (format!("cassettes/bodies/{}", hex(RATE)), RATE.to_owned()),
        (LEDGER.to_owned(), ledger(vec![entry])),
        (
            SIGNERS.to_owned(),
            signer(WHO, "namespaces=\"tribunal-cassette\" ", MAINTAINER),
        ),
        (
            "tests/sealed/test_invoice.py".to_owned(),
            "def test_overdue():\n    pass\n".to_owned(),
        ),
        (
            "tests/test_touched.py".to_owned(),
            "def test_touched():\n    pass\n".to_owned(),
        ),
    ])
}

/// The entry of a tree's ledger.
pub(super) fn entry_of(tree: &Tree, path: &str) -> Entry {
    let bytes = tree.get(LEDGER).unwrap().as_bytes();
    Ledger::parse(bytes).unwrap().of(path).unwrap().clone()
}

/// The record holds this now, and the entry says so; not accepted again.
pub(super) fn rewrite(tree: &mut Tree, content: &str, notes: &[(&str, NoteChange, &str)]) -> Entry {
    tree.insert(RECORD.to_owned(), content.to_owned());
    let mut entry = entry_of(tree, RECORD);
    entry.sha256 = hex(content);
    entry
        .notes
        .extend(self::entry(RECORD, content, notes).notes);
    tree.insert(LEDGER.to_owned(), ledger(vec![entry.clone()]));
    entry
}

pub(super) fn facts(base: &Tree, head: &Tree) -> CassetteFacts {
    let paths = Policy::default().paths;
    let shelf = |tree: &Tree| {
        let mut shelf = Shelf::default();
        for (path, content) in tree {
            let path = GitPath::from(path.as_str());
            let leaf = match content.as_str() {
                "->" => Leaf::NoFile,
                "lfs" => Leaf::Pointer,
                text => Leaf::File(text.as_bytes().into()),
            };
            match Kind::of(&paths, &path) {
                Some(Kind::Ledger) => shelf.ledger = Some(leaf),
                Some(Kind::Record | Kind::Body(_) | Kind::Stray | Kind::Other) => {
                    shelf.files.insert(path, leaf);
                }
                None => {}
            }
        }
        shelf
    };
    let is_test = |(path, _): &(&String, &String)| path.starts_with("tests/");
    CassetteFacts {
        base: shelf(base),
        head: shelf(head),
        signers: base.get(SIGNERS).map(|text| text.clone().into_bytes()),
        tests: head
            .iter()
            .filter(is_test)
            .map(|(path, text)| (path.clone(), text.clone().into_bytes()))
            .collect(),
    }
}

pub(super) const GATE: UnixTime = UnixTime(1_790_000_000);

pub(super) fn heard(base: &Tree, head: &Tree) -> Hearing {
    hear(&Policy::default(), &facts(base, head))
}

/// Each finding as `code path`, sorted.
pub(super) fn told(base: &Tree, head: &Tree) -> Vec<String> {
    let heard = heard(base, head);
    let pointers = heard
        .pointers
        .iter()
        .map(|path| format!("lfs-pointer {path}"));
    let findings = heard.findings(GATE);
    let mut told: Vec<String> = findings
        .iter()
        .map(|finding| {
            format!(
                "{} {}",
                finding.reason,
                finding.subject.as_deref().unwrap_or("-")
            )
        })
        .chain(pointers)
        .collect();
    told.sort();
    told
}

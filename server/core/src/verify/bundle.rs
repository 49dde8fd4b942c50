//! One verdict's four files: from bytes to a signed predicate. Stops at the first check that fails; what comes after
//! would speak of bytes that nobody signed.

use super::{Check, SignedVerdict, Step, Unverified, VerdictDir};
use crate::envelope::{BUNDLE_TYPE, Bundle, pae};
use crate::id::{KeyId, UnixTime};
use crate::judge::{VerdictKind, Word};
use crate::keys::{KeyRecord, KeyRing, Valid};
use crate::sshsig;
use crate::statement::{
    PAYLOAD_TYPE, Predicate, STATEMENT_TYPE, Statement, predicate_type, subjects,
};
use crate::text::shown;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// An envelope whose signature holds: its payload, and the key's records with the same name.
pub(super) struct Opened<'a> {
    pub(super) payload: Vec<u8>,
    pub(super) key: KeyId,
    records: Vec<&'a KeyRecord>,
}

pub(super) fn verdict(
    kind: VerdictKind,
    dir: &VerdictDir,
    keys: &KeyRing,
    checks: &mut Vec<Check>,
) -> Result<SignedVerdict, Unverified> {
    let stem = kind.file_stem();
    let names =
        [".txt", ".sigstore.json", ".json", ".json.sig"].map(|ending| format!("{stem}{ending}"));
    let missing: Vec<&str> = names
        .iter()
        .filter(|n| dir.get(n).is_none())
        .map(String::as_str)
        .collect();
    if !missing.is_empty() {
        checks.push(Check::failed(
            Step::Present,
            stem,
            format!("no {}", missing.join(", ")),
        ));
        return Err(Unverified::Missing);
    }
    checks.push(Check::held(Step::Present, stem, "all four files"));
    let [txt, bundle, json, sig] = names
        .each_ref()
        .map(|name| dir.get(name).unwrap_or_default());
    let mut steps = Steps { stem, checks };
    let opened = open(bundle, keys, &mut steps)?;
    steps.check(Step::Payload, payload_matches(&opened.payload, json))?;
    let (predicate, issued_at, valid_until) =
        steps.value(Step::Statement, statement(kind, &opened.payload))?;
    steps.check(Step::KeyDates, may_issue(&opened.records, issued_at))?;
    steps.check(Step::SshSignature, ssh_signature(&opened, json, sig))?;
    steps.check(Step::Word, word_matches(Word::from(predicate.result), txt))?;
    Ok(SignedVerdict {
        kind,
        key: opened.key,
        issued_at,
        valid_until,
        predicate,
    })
}

/// Collects checks of one verdict and stops at the first failure.
pub(super) struct Steps<'a> {
    pub(super) stem: &'a str,
    pub(super) checks: &'a mut Vec<Check>,
}

impl Steps<'_> {
    fn check(&mut self, step: Step, result: Result<String, String>) -> Result<(), Unverified> {
        match result {
            Ok(seen) => {
                self.checks.push(Check::held(step, self.stem, seen));
                Ok(())
            }
            Err(seen) => {
                self.checks.push(Check::failed(step, self.stem, seen));
                Err(Unverified::Failed)
            }
        }
    }

    fn value<T>(&mut self, step: Step, result: Result<T, String>) -> Result<T, Unverified> {
        match result {
            Ok(value) => {
                self.checks
                    .push(Check::held(step, self.stem, "as this server writes it"));
                Ok(value)
            }
            Err(seen) => self.check(step, Err(seen)).and(Err(Unverified::Failed)),
        }
    }
}

/// Bundle, key, signature.
pub(super) fn open<'a>(
    bytes: &[u8],
    keys: &'a KeyRing,
    steps: &mut Steps<'_>,
) -> Result<Opened<'a>, Unverified> {
    let (payload, signature, keyid) = steps.value(Step::Bundle, parse(bytes))?;
    let records: Vec<&KeyRecord> = keyid
        .parse::<KeyId>()
        .map(|id| {
            keys.records()
                .iter()
                .filter(|r| *r.key.id() == id)
                .collect()
        })
        .unwrap_or_default();
    let Some(first) = records.first() else {
        let seen = format!(
            "{} is not among the {} given",
            shown(&keyid, 60),
            keys.records().len()
        );
        return steps
            .check(Step::Key, Err(seen))
            .and(Err(Unverified::Failed));
    };
    steps.check(Step::Key, Ok(keyid))?;
    let held = match first.key.verifies(&pae(&payload), &signature) {
        Valid::Yes => Ok("ed25519 over the DSSE encoding".to_owned()),
        Valid::No => Err("the envelope's signature does not hold".to_owned()),
    };
    steps.check(Step::Signature, held)?;
    Ok(Opened {
        payload,
        key: first.key.id().clone(),
        records,
    })
}

fn parse(bytes: &[u8]) -> Result<(Vec<u8>, Vec<u8>, String), String> {
    let bundle: Bundle = serde_json::from_slice(bytes).map_err(|e| shown(&e.to_string(), 200))?;
    if bundle.media_type != BUNDLE_TYPE {
        return Err(format!("media type {}", shown(&bundle.media_type, 80)));
    }
    if bundle.to_bytes().ok().as_deref() != Some(bytes) {
        return Err("not byte for byte as this server writes it".to_owned());
    }
    let Bundle {
        verification_material,
        dsse_envelope,
        ..
    } = bundle;
    if dsse_envelope.payload_type != PAYLOAD_TYPE {
        return Err(format!(
            "payload type {}",
            shown(&dsse_envelope.payload_type, 80)
        ));
    }
    let [signature] = dsse_envelope.signatures.as_slice() else {
        return Err(format!(
            "{} signatures, not one",
            dsse_envelope.signatures.len()
        ));
    };
    if signature.keyid != verification_material.public_key.hint {
        return Err("keyid and hint name different keys".to_owned());
    }
    let decode = |text: &str| STANDARD.decode(text).map_err(|e| format!("base64: {e}"));
    Ok((
        decode(&dsse_envelope.payload)?,
        decode(&signature.sig)?,
        signature.keyid.clone(),
    ))
}

fn payload_matches(payload: &[u8], file: &[u8]) -> Result<String, String> {
    if payload == file {
        Ok(format!("{} bytes, the envelope's", payload.len()))
    } else {
        Err("the file holds other bytes than the envelope".to_owned())
    }
}

fn statement(kind: VerdictKind, payload: &[u8]) -> Result<(Predicate, UnixTime, UnixTime), String> {
    let statement: Statement<Predicate> =
        serde_json::from_slice(payload).map_err(|e| shown(&e.to_string(), 200))?;
    if statement.kind != STATEMENT_TYPE {
        return Err(format!("type {}", shown(&statement.kind, 80)));
    }
    if statement.predicate_type != predicate_type(kind) {
        return Err(format!(
            "a statement of another kind: {}",
            shown(&statement.predicate_type, 80)
        ));
    }
    let predicate = statement.predicate;
    if statement.subject != subjects(&predicate.head, &predicate.base, &predicate.src_trees) {
        return Err("its subjects are not the commits and trees it speaks of".to_owned());
    }
    let issued_at = instant(&predicate.issued_at)?;
    let valid_until = instant(&predicate.valid_until)?;
    Ok((predicate, issued_at, valid_until))
}

fn instant(text: &str) -> Result<UnixTime, String> {
    text.parse::<jiff::Timestamp>()
        .map(|time| UnixTime(time.as_second()))
        .map_err(|_| format!("`{}` is no time", shown(text, 40)))
}

fn may_issue(records: &[&KeyRecord], at: UnixTime) -> Result<String, String> {
    let mut refused = "no record of the key".to_owned();
    for record in records {
        match record.may_issue(at) {
            Ok(()) => return Ok(format!("good at {}", at.rfc3339())),
            Err(why) => refused = why,
        }
    }
    Err(refused)
}

fn ssh_signature(opened: &Opened<'_>, json: &[u8], sig: &[u8]) -> Result<String, String> {
    let record = opened.records.first().ok_or("no record of the key")?;
    sshsig::verify(&record.key, json, sig)
        .map(|()| format!("namespace {}", crate::keys::NAMESPACE))
        .map_err(|e| e.to_string())
}

fn word_matches(word: Word, txt: &[u8]) -> Result<String, String> {
    if txt == format!("{word}\n").as_bytes() {
        Ok(word.to_string())
    } else {
        Err(format!(
            "the file says {:?}, signed is {word}",
            shown(&String::from_utf8_lossy(txt), 40)
        ))
    }
}

//! `key show|rotate|revoke`: public halves and their dates. A private half is never read here but to find its public one.

use super::{AdminError, Answer, Data};
use crate::clock;
use crate::sign::Signer as _;
use crate::store::Store as _;
use serde_json::{Value, json};
use tribunal_core::id::{KeyId, UnixTime};
use tribunal_core::keys::{KeyRecord, KeyRing};

/// A score that read the old key just before a rotation may still sign with it: so long its signatures hold.
const OVERLAP: i64 = 120;

/// In which form keys are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyFormat {
    /// Both, with what they are for.
    Both,
    /// SPKI PEM of the key that signs now.
    Pem,
    /// An `allowed_signers` file of all keys that are worth anything.
    AllowedSigners,
}

/// The public halves.
///
/// # Errors
/// The store, the folder of keys.
pub fn show_keys(data: &Data, format: KeyFormat) -> Result<Answer, AdminError> {
    let keys = data.store()?.keys()?;
    let current = data.keys().signer()?.public().clone();
    let signers = KeyRing::new(keys.clone()).allowed_signers();
    let text = match format {
        KeyFormat::Pem => current.to_pem(),
        KeyFormat::AllowedSigners => signers,
        KeyFormat::Both => format!(
            "# the key that signs now: {}\n{}\n# all keys with their dates, as an allowed_signers file\n{signers}",
            current.id(),
            current.to_pem(),
        ),
    };
    let listed: Vec<Value> = keys
        .iter()
        .map(|record| {
            json!({
                "key_id": record.key.id(),
                "signs": record.key == current,
                "pem": record.key.to_pem(),
                "allowed_signers": record.allowed_signers_line(),
                "valid_after": record.valid_after.map(UnixTime::rfc3339),
                "valid_before": record.valid_before.map(UnixTime::rfc3339),
                "revoked_since": record.revoked_since.map(UnixTime::rfc3339),
            })
        })
        .collect();
    Ok(Answer::lines(text, json!({ "keys": listed })))
}

/// A new key signs from now on; the old ones stay known with their dates.
///
/// # Errors
/// The store, the folder of keys, no entropy.
pub fn rotate_key(data: &Data) -> Result<Answer, AdminError> {
    let (store, keys, now) = (data.store()?, data.keys(), clock::now());
    let drawn = keys.draw()?;
    // In this order a crash leaves a key that is known and does not sign yet, never one that signs and is not known.
    store.add_key(&KeyRecord {
        valid_after: Some(now),
        ..KeyRecord::undated(drawn.public.clone())
    })?;
    keys.appoint(&drawn)?;
    let until = UnixTime(now.0 + OVERLAP);
    for old in store.keys()? {
        if old.key != drawn.public && old.valid_before.is_none() {
            store.retire_key(old.key.id(), until)?;
        }
    }
    let id = drawn.public.id();
    let text = format!(
        "{id} signs from now on; hand out `tribunal-server key show --format allowed-signers` anew\n"
    );
    Ok(Answer::lines(text, json!({ "key_id": id })))
}

/// Nothing that a key signed from then on is worth anything.
///
/// # Errors
/// No such key, or the one that signs now.
pub fn revoke_key(data: &Data, id: &KeyId, since: UnixTime) -> Result<Answer, AdminError> {
    if data.keys().signer()?.public().id() == id {
        return Err(AdminError::KeySigns(id.to_string()));
    }
    data.store()?.revoke_key(id, since)?;
    let since = since.rfc3339();
    let text = format!(
        "{id} is revoked since {since}; hand out `tribunal-server key show --format allowed-signers` anew\n"
    );
    Ok(Answer::lines(
        text,
        json!({ "key_id": id, "revoked_since": since }),
    ))
}

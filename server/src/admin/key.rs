//! `key show|rotate|revoke`: public halves and their dates. A private half is never read here but to find its public one.

use super::{AdminError, Answer, Data};
use crate::clock;
use crate::sign::{KeyFolderError, Signer as _};
use crate::store::Store;
use serde_json::{Value, json};
use tribunal_core::id::{KeyId, UnixTime};
use tribunal_core::keys::{KeyRecord, KeyRing, PublicKey};

/// A score that read the old key just before a rotation may still sign with it: so long its signatures hold.
const OVERLAP: i64 = 120;

/// In which form keys are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyFormat {
    /// The `allowed_signers` file, with what it is in comments: what is printed can be kept as it is.
    Said,
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
    let current = current(data, &keys)?;
    let signers = KeyRing::new(keys.clone()).allowed_signers();
    let text = match format {
        KeyFormat::Pem => current.to_pem(),
        KeyFormat::AllowedSigners => signers,
        KeyFormat::Said => format!(
            "# {} signs now; as PEM, for openssl and cosign: key show --format pem\n{signers}",
            current.id(),
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

/// The key that signs now. Where it is a credential that only the server is given: the newest on record that is not retired.
fn current(data: &Data, known: &[KeyRecord]) -> Result<PublicKey, AdminError> {
    let keys = data.keys();
    match keys.signer() {
        Ok(signer) => Ok(signer.public().clone()),
        Err(KeyFolderError::Nowhere { place, source }) => {
            let mut lasting = known.iter().filter(|record| record.valid_before.is_none());
            let newest = lasting.next().map(|record| record.key.clone());
            newest.ok_or(AdminError::Keys(KeyFolderError::Nowhere { place, source }))
        }
        Err(error) => Err(error.into()),
    }
}

fn since(now: UnixTime, key: &PublicKey) -> KeyRecord {
    KeyRecord {
        valid_after: Some(now),
        ..KeyRecord::undated(key.clone())
    }
}

fn retire_others(store: &dyn Store, but: &PublicKey, now: UnixTime) -> Result<(), AdminError> {
    let until = UnixTime(now.0 + OVERLAP);
    for old in store.keys()? {
        if old.key != *but && old.valid_before.is_none() {
            store.retire_key(old.key.id(), until)?;
        }
    }
    Ok(())
}

/// The name of the key that a server signs with. One from outside that was never seen is on record from now on, and those
/// before it are retired, as by a rotation.
///
/// # Errors
/// The store, the key, or one from outside whose time is over.
pub(crate) fn known_signer(data: &Data, store: &dyn Store) -> Result<KeyId, AdminError> {
    let keys = data.keys();
    let public = keys.signer()?.public().clone();
    if keys.outside().is_some() {
        let now = clock::now();
        let known = store.keys()?.into_iter().find(|k| k.key == public);
        match known.map(|record| record.may_issue(now)) {
            Some(Ok(())) => {}
            Some(Err(why)) => return Err(AdminError::KeyOver(why)),
            None => {
                store.add_key(&since(now, &public))?;
                retire_others(store, &public, now)?;
            }
        }
    }
    Ok(public.id().clone())
}

/// A new key signs from now on; the old ones stay known with their dates.
///
/// # Errors
/// The store, the folder of keys, no entropy.
pub fn rotate_key(data: &Data) -> Result<Answer, AdminError> {
    let (store, keys, now) = (data.store()?, data.keys(), clock::now());
    let drawn = keys.draw()?;
    // In this order a crash leaves a key that is known and does not sign yet, never one that signs and is not known.
    store.add_key(&since(now, &drawn.public))?;
    keys.appoint(&drawn)?;
    retire_others(&store, &drawn.public, now)?;
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
    let store = data.store()?;
    if current(data, &store.keys()?)?.id() == id {
        return Err(AdminError::KeySigns(id.to_string()));
    }
    store.revoke_key(id, since)?;
    let since = since.rfc3339();
    let text = format!(
        "{id} is revoked since {since}; hand out `tribunal-server key show --format allowed-signers` anew\n"
    );
    Ok(Answer::lines(
        text,
        json!({ "key_id": id, "revoked_since": since }),
    ))
}

//! Forms, dates, rotation.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
use super::*;
use ed25519_dalek::SigningKey;

fn key(seed: u8) -> PublicKey {
    PublicKey::from_bytes(
        SigningKey::from_bytes(&[seed; 32])
            .verifying_key()
            .as_bytes(),
    )
    .unwrap()
}

fn dated(seed: u8) -> KeyRecord {
    KeyRecord {
        key: key(seed),
        valid_after: Some(UnixTime(1_000_000_000)),
        valid_before: Some(UnixTime(1_100_000_000)),
        revoked_since: None,
    }
}

#[test]
fn both_forms_round_trip() {
    let pem = key(1).to_pem();
    assert_eq!(
        KeyRing::parse(&pem).unwrap(),
        KeyRing::new(vec![KeyRecord::undated(key(1))])
    );
    let two = format!("{}\n{}", key(1).to_pem(), key(2).to_pem());
    assert_eq!(KeyRing::parse(&two).unwrap().records().len(), 2);
    let ring = KeyRing::new(vec![dated(1), KeyRecord::undated(key(2))]);
    assert_eq!(KeyRing::parse(&ring.allowed_signers()).unwrap(), ring);
    assert!(key(1).id().as_str().starts_with("SHA256:"));
}

#[test]
fn a_revocation_is_handed_on_as_the_earlier_end() {
    let revoked = KeyRecord {
        revoked_since: Some(UnixTime(1_050_000_000)),
        ..dated(1)
    };
    let read = KeyRing::parse(&(revoked.allowed_signers_line() + "\n")).unwrap();
    assert_eq!(
        read.records().first().unwrap().valid_before,
        Some(UnixTime(1_050_000_000))
    );
}

#[test]
fn dates_bound_what_a_key_may_issue() {
    let record = KeyRecord {
        revoked_since: Some(UnixTime(1_050_000_000)),
        ..dated(1)
    };
    assert!(
        record
            .may_issue(UnixTime(999_999_999))
            .unwrap_err()
            .contains("only from")
    );
    assert_eq!(record.may_issue(UnixTime(1_000_000_000)), Ok(()));
    assert!(
        record
            .may_issue(UnixTime(1_050_000_000))
            .unwrap_err()
            .contains("revoked")
    );
    assert!(
        dated(1)
            .may_issue(UnixTime(1_100_000_000))
            .unwrap_err()
            .contains("retired")
    );
}

#[test]
fn rotation_retires_and_revocation_reaches_back() {
    let t = UnixTime;
    let ring = KeyRing::new(vec![KeyRecord::undated(key(1))]).rotated(key(2), t(100));
    let may = |ring: &KeyRing, seed: u8, at: i64| {
        ring.of(key(seed).id())
            .any(|record| record.may_issue(t(at)).is_ok())
    };
    assert!(may(&ring, 1, 99) && !may(&ring, 1, 100));
    assert!(!may(&ring, 2, 99) && may(&ring, 2, 100));
    let ring = ring
        .rotated(key(3), t(200))
        .revoked(key(2).id(), t(150))
        .unwrap();
    assert!(may(&ring, 2, 149) && !may(&ring, 2, 150));
    let ring = ring.revoked(key(2).id(), t(180)).unwrap();
    assert!(
        !may(&ring, 2, 150),
        "a later revocation does not lift an earlier one"
    );
    assert!(may(&ring, 1, 99) && may(&ring, 3, 200));
    assert!(matches!(
        ring.revoked(key(9).id(), t(1)),
        Err(KeyError::Unknown(_))
    ));
}

#[test]
fn what_is_no_key_is_named() {
    for text in [
        "",
        "# nothing\n",
        "hello",
        "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
    ] {
        assert!(KeyRing::parse(text).is_err(), "{text}");
    }
}

//! Whose signature counts, when, and with what kind of key.

use super::tree::*;
use crate::cassette::{Entry, NAMESPACE, NoteChange, Signers};
use crate::id::UnixTime;
use ed25519_dalek::{Signer as _, SigningKey};
use sha2::Digest as _;
use ssh_key::public::{Ed25519PublicKey, KeyData, SkEd25519};
use ssh_key::{Algorithm, HashAlg, LineEnding, PublicKey, Signature, SshSig};

fn draft() -> Entry {
    entry(RECORD, "content", &[("clock", NoteChange::Added, "new")])
}

fn verdict(signers: &str, entry: &Entry) -> Result<usize, String> {
    Signers::parse(Some(signers.as_bytes()))
        .accepted(entry)
        .map(|windows| windows.len())
}

#[rustfmt::skip]
const LINES: &[(&str, &str, bool)] = &[
    // Principals, options, whether the maintainer's acceptance counts.
    (WHO, "", true),
    ("other@example.org,maintainer@example.org", "", true),
    ("*@example.org", "", true),
    ("*@example.org,!maintainer@example.org", "", false),
    ("other@example.org", "", false),
    (WHO, "namespaces=\"tribunal-cassette\" ", true),
    (WHO, "namespaces=\"git,tribunal-cassette\" ", true),
    (WHO, "namespaces=\"git\" ", false),
    (WHO, "cert-authority ", false),
    (WHO, "cert-authority,namespaces=\"tribunal-cassette\" ", false),
    (WHO, "valid-after=\"20200101\" ", false),
    (WHO, "unheard-of ", false),
];

#[test]
fn lines_of_allowed_signers() {
    let entry = accepted(draft());
    for (principals, options, counts) in LINES {
        let line = signer(principals, options, MAINTAINER);
        let got = verdict(&line, &entry);
        assert_eq!(got.is_ok(), *counts, "{principals} {options}: {got:?}");
        // A good line beside it counts, whatever stands in the other.
        let both = line + &signer(WHO, "", MAINTAINER);
        assert!(verdict(&both, &entry).is_ok(), "{principals} {options}");
    }
    assert!(verdict("", &entry).is_err());
    assert!(Signers::parse(None).accepted(&entry).is_err());
    assert!(Signers::parse(Some(b"\xff")).accepted(&entry).is_err());
    let why = verdict(&signer(WHO, "", AGENT), &entry).unwrap_err();
    assert!(why.contains("SHA256:"), "{why}");
}

/// A new acceptance needs a key that counts now; one that was merged stays good when the key retires.
#[test]
fn dates() {
    for (options, counts) in [
        ("valid-after=\"20260101Z\" ", true),
        ("valid-after=\"20270101Z\" ", false),
        ("valid-before=\"20270101Z\" ", true),
        ("valid-before=\"20260101Z\" ", false),
        (
            "valid-after=\"20200101Z\",valid-before=\"20260101Z\" ",
            false,
        ),
    ] {
        let mut base = base();
        base.insert(SIGNERS.into(), signer(WHO, options, MAINTAINER));
        assert!(told(&base, &base).is_empty(), "{options}");
        let mut head = base.clone();
        let content = record("2026-10-01T00:00:00Z", SEED, RATE, TEST);
        let entry = rewrite(&mut head, &content, &[("clock", NoteChange::Moved, "x")]);
        head.insert(LEDGER.into(), ledger(vec![accepted(entry)]));
        assert_eq!(told(&base, &head).is_empty(), counts, "{options}");
    }
    let two = signer(WHO, "valid-before=\"20260101Z\" ", MAINTAINER)
        + &signer(WHO, "valid-after=\"20260601Z\" ", MAINTAINER);
    let windows = Signers::parse(Some(two.as_bytes()))
        .accepted(&accepted(draft()))
        .unwrap();
    let holds = |at: i64| windows.iter().any(|window| window.holds(UnixTime(at)));
    assert!(holds(1_700_000_000) && !holds(1_770_000_000) && holds(GATE.0));
}

fn hardware(flags: u8) -> (String, String) {
    let secret = SigningKey::from_bytes(&[9; 32]);
    let key = Ed25519PublicKey(secret.verifying_key().to_bytes());
    let key = KeyData::SkEd25519(SkEd25519::from(key));
    let data = SshSig::signed_data(NAMESPACE, HashAlg::Sha512, &draft().to_be_signed()).unwrap();
    let trailer = [flags, 0, 0, 0, 7];
    let mut signed = sha2::Sha256::digest(b"ssh:").to_vec();
    signed.extend(trailer);
    signed.extend(sha2::Sha256::digest(&data));
    let mut blob = secret.sign(&signed).to_bytes().to_vec();
    blob.extend(trailer);
    let signature = Signature::new(Algorithm::SkEd25519, blob).unwrap();
    let file = SshSig::new(key.clone(), NAMESPACE, HashAlg::Sha512, signature).unwrap();
    let line = format!("{WHO} {}\n", PublicKey::new(key, "").to_openssh().unwrap());
    (line, file.to_pem(LineEnding::LF).unwrap())
}

#[test]
fn kinds_of_keys() {
    let with = |signature: &str| Entry {
        accepted_by: WHO.into(),
        signature: signature.into(),
        ..draft()
    };
    for (line, signature) in [(P256, P256_SIGNATURE), (RSA, RSA_SIGNATURE)] {
        let line = format!("{WHO} {line}\n");
        assert_eq!(verdict(&line, &with(signature)), Ok(1), "{line}");
        let mut other = with(signature);
        other.sha256 = hex("other");
        assert!(
            verdict(&line, &other)
                .unwrap_err()
                .contains("not over this path"),
            "{line}"
        );
    }
    let (line, signature) = hardware(1);
    assert_eq!(verdict(&line, &with(&signature)), Ok(1));
    let (line, signature) = hardware(0);
    assert!(
        verdict(&line, &with(&signature))
            .unwrap_err()
            .contains("touched")
    );
    for (line, signature, why) in [
        (P384, P384_SIGNATURE, "ecdsa-sha2-nistp384"),
        (RSA_1024, RSA_1024_SIGNATURE, "2048"),
    ] {
        let got = verdict(&format!("{WHO} {line}\n"), &with(signature)).unwrap_err();
        assert!(got.contains(why), "{got}");
    }
}

/// What is signed is part of the contract: it is written down in docs/FORMATS.md.
#[test]
fn the_signed_bytes_are_frozen() {
    let mut entry = draft();
    entry.notes.push(entry.notes.first().unwrap().clone());
    entry.notes.last_mut().unwrap().pin = "a \"pin\"".into();
    assert_eq!(
        String::from_utf8(entry.to_be_signed()).unwrap(),
        "{\"schema\":\"tribunal.cassette-acceptance.v1\",\"path\":\"cassettes/invoice.json\",\
         \"sha256\":\"ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73\",\
         \"pins\":[\"clock\",\"fs:/tmp/outbox\",\"http:GET /rates/usd\",\"rng_seed\"],\
         \"notes\":[{\"pin\":\"a \\\"pin\\\"\",\"change\":\"added\",\"why\":\"new\"},{\"pin\":\"clock\",\"change\":\"added\",\"why\":\"new\"}]}\n"
    );
}

/// Made once by `ssh-keygen -Y sign -n tribunal-cassette` over the draft's bytes.
const P256: &str = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBL8A9gesSgflINvofGPXu0SusA9O29bqKf9vMyv0B1pk4SVLL+swOwSdfjnCqDH/SqenstX7gQo8OjCLWH1Onqc=";
const P256_SIGNATURE: &str = "-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAAGgAAAATZWNkc2Etc2hhMi1uaXN0cDI1NgAAAAhuaXN0cDI1NgAAAE
EEvwD2B6xKB+Ug2+h8Y9e7RK6wD07b1uop/28zK/QHWmThJUsv6zA7BJ1+OcKoMf9Kp6ey
1fuBCjw6MItYfU6epwAAABF0cmlidW5hbC1jYXNzZXR0ZQAAAAAAAAAGc2hhNTEyAAAAYw
AAABNlY2RzYS1zaGEyLW5pc3RwMjU2AAAASAAAACAOcBv0ACwmvrcMNpDO2Ea8Zn5Hmo02
Ix958JP+uphRCwAAACAi9JJy2PKwgvlmKOl49tFmu1iZrFLKE2c4XjohAcBhjg==
-----END SSH SIGNATURE-----
";
const P384: &str = "ecdsa-sha2-nistp384 AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhBPYkjIOBSIYCBNXqDmLUP6rseLh8qJCD1qTbNqlggLIVNR4hOCYsm5JE92BJlF3ypSkv7QvlNaI5j9Xpt+HKYzbQL19RfH6Gdi6LKUPXd8oeZtA/5omJsagJOnUMqtaleg==";
const P384_SIGNATURE: &str = "-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAAIgAAAATZWNkc2Etc2hhMi1uaXN0cDM4NAAAAAhuaXN0cDM4NAAAAG
EE9iSMg4FIhgIE1eoOYtQ/qux4uHyokIPWpNs2qWCAshU1HiE4JiybkkT3YEmUXfKlKS/t
C+U1ojmP1em34cpjNtAvX1F8foZ2LospQ9d3yh5m0D/miYmxqAk6dQyq1qV6AAAAEXRyaW
J1bmFsLWNhc3NldHRlAAAAAAAAAAZzaGE1MTIAAACEAAAAE2VjZHNhLXNoYTItbmlzdHAz
ODQAAABpAAAAMAGO23StaldNOQV3xPOz166pqopgmxgnvrAbK6Nj3bOxIafdzbTAwRzrXL
5H/IMGiwAAADEA3XjjkynXf0m+tZIVL3gSe1jN0s66Od542Az1yp3fSPFOJupBw3G1bvYk
U5cj2tly
-----END SSH SIGNATURE-----
";
const RSA: &str = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7mtSeqvAKjlDPloF4ItJcSNW8gym90wCy0Z1btQgYI0dga3PjyKZg4JY7yYX3MvKYgF0920JnVBpzNmSu9S6W5lmVY1+zc8pK9OcGNKLsisKJt6SWWxKh4Cil24lmzzXUrhqNqEz2eHhSNUDekq6hi2fPLGokg4ze90X99WHYmYDnGknBg/k1lw5nVuU1hjBA/gdAvWcM3zGruWWuAZdVyI6oxS5IzxrDpppGRhhtns6mxFUvVMG8/GyqQt3wly8wgeItBFOc+9trG8/bJ0ey3G9DgXYsklkI/tAtOZXIqxKA2WjDbm3ssJ+y83KSalQDWvHxZ120n7lqbVCB/umSgHiNAqYheGg62/2m4A86y+zZlNEbq8TKZyTZOyk+Vyl2IxpYbs4XzyEvkcga5/tHHZG41FI9gZ43G3jdi0E2aPh8Sj3bybGAtrKmy/wA77hTXuV1s6rifzMHuPBA3r0bosw8mfsf+jHSNDpEZDpHfeDmsEtnNh5syaq6bCRkVzM=";
const RSA_SIGNATURE: &str = "-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAAZcAAAAHc3NoLXJzYQAAAAMBAAEAAAGBALua1J6q8AqOUM+WgXgi0l
xI1byDKb3TALLRnVu1CBgjR2Brc+PIpmDgljvJhfcy8piAXT3bQmdUGnM2ZK71LpbmWZVj
X7Nzykr05wY0ouyKwom3pJZbEqHgKKXbiWbPNdSuGo2oTPZ4eFI1QN6SrqGLZ88saiSDjN
73Rf31YdiZgOcaScGD+TWXDmdW5TWGMED+B0C9ZwzfMau5Za4Bl1XIjqjFLkjPGsOmmkZG
GG2ezqbEVS9Uwbz8bKpC3fCXLzCB4i0EU5z722sbz9snR7Lcb0OBdiySWQj+0C05lcirEo
DZaMNubeywn7LzcpJqVANa8fFnXbSfuWptUIH+6ZKAeI0CpiF4aDrb/abgDzrL7NmU0Rur
xMpnJNk7KT5XKXYjGlhuzhfPIS+RyBrn+0cdkbjUUj2BnjcbeN2LQTZo+HxKPdvJsYC2sq
bL/ADvuFNe5XWzquJ/Mwe48EDevRuizDyZ+x/6MdI0OkRkOkd94OawS2c2HmzJqrpsJGRX
MwAAABF0cmlidW5hbC1jYXNzZXR0ZQAAAAAAAAAGc2hhNTEyAAABlAAAAAxyc2Etc2hhMi
01MTIAAAGAXSQE5Ih7+9cFeo096W+AWszhnNG5zulUyWcqSuaJgigCjmHq6EObxCJv1vwj
AEtGREIDqNVEsjE41NlyzzS7DCnXenpWB70yM2tH8kGXAjgnuyEasxqqtCZkl1kveVJ39m
/6gMjv0zehrwbOazEvztVUxkjzehIXdw8ATEZyBvyullqjVx1gT7Ukd18yb5VyOyYmnEgs
CutXM+eLrafQjyJhn9Pb4iXVd0hck52fqSCINsviT7FU+xty632xNFPeElNx0gl1jg0Amy
td1Z8IiaomEeFlI2Bx+ORJytQ6qromKkKJLh6eCzkT2ML5VYZkEYDXVyPCbZ/LlLD5CRs8
03QpKWB9NPMrkISiSS4o6HYY0RAN0+fenJg/V2C+/jSSF16cl62VReqXKAtPv3bpe7aE+t
JIDkKXhiFaaMTHsBVhtmDD3mJAzfvNPYGrS5pL4wKLqOb7Y2yjN8zSrshIk2XSMm6zES1y
wcnI4cBEAq2CQiwIuYOYUBzEqDlmwCat
-----END SSH SIGNATURE-----
";
const RSA_1024: &str = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQDEypZ1mcyM6IZlcsRheDvqOVLxC6NOKy9t4sUijevkpTZCzLkTdqA0SwnfULbdXQ5cnSaDpieWxTJhVt7g6EZzGcuKGv0TIT4MLiqN/v8R9Hcr6Hct0FnO6HnbrjeNTAd+DwxxC68BwpJfIcro57dlvccuNEL8LIIULIpv6h1Rww==";
const RSA_1024_SIGNATURE: &str = "-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAAJcAAAAHc3NoLXJzYQAAAAMBAAEAAACBAMTKlnWZzIzohmVyxGF4O+
o5UvELo04rL23ixSKN6+SlNkLMuRN2oDRLCd9Qtt1dDlydJoOmJ5bFMmFW3uDoRnMZy4oa
/RMhPgwuKo3+/xH0dyvody3QWc7oeduuN41MB34PDHELrwHCkl8hyujnt2W9xy40Qvwsgh
Qsim/qHVHDAAAAEXRyaWJ1bmFsLWNhc3NldHRlAAAAAAAAAAZzaGE1MTIAAACUAAAADHJz
YS1zaGEyLTUxMgAAAIA4zEB7eYjGkP/Cd5RTrxlrVcy5/hHZL24BdDqPRRactkiUx+KvQp
0lC0TbZ4m6ongl0uIVVTyZSKcic9/tdf+3d3cVANdI1D2iFDD20f4XcarBA+lJX7iBg5/U
nzxpWrNFDARq2lXatjmI1y8K1YUwqSTEwu3EtJKYS4ME1mC3sQ==
-----END SSH SIGNATURE-----
";

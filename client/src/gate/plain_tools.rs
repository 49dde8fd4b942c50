//! The lines that repeat a verification with tools that are not ours: ssh-keygen, openssl, cosign. To be pasted.

use std::path::Path;
use tribunal_core::join::{Join, Known};
use tribunal_core::judge::{VerdictKind, Word};
use tribunal_core::keys::{KeyRecord, KeyRing, NAMESPACE, PRINCIPAL};
use tribunal_core::statement::{PAYLOAD_TYPE, predicate_type};
use tribunal_core::verify::Step;

/// cosign asks the public Sigstore for its roots even where a key is given, and ours is nobody's but its owner's.
const NO_ROOTS: &str =
    r#"{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}"#;

/// Every line, with a comment above each group. Keys are written out, so that no file of ours is needed.
#[must_use]
pub fn plain_tools(folder: &Path, ring: &KeyRing, join: &Join) -> Vec<String> {
    let mut lines = vec!["# the keys that were used".to_owned()];
    lines.push(format!(
        "cat > allowed_signers <<'END'\n{}END",
        ring.allowed_signers()
    ));
    let signed = used(ring, join);
    if let Some(record) = signed {
        lines.push(format!(
            "cat > tribunal.pem <<'END'\n{}END",
            record.key.to_pem()
        ));
    }
    let folder = quoted(&folder.to_string_lossy());
    lines.push(format!("cd {folder}"));
    lines.push("# the payload's SSH signature".to_owned());
    for kind in VerdictKind::ALL {
        let stem = kind.file_stem();
        lines.push(format!(
            "ssh-keygen -Y verify -f \"$OLDPWD/allowed_signers\" -I {PRINCIPAL} -n {NAMESPACE} -s {stem}.json.sig < {stem}.json"
        ));
    }
    lines.push("# what was signed is this verdict and this word: a name can be changed, and no tool below looks at it".to_owned());
    for (kind, word) in VerdictKind::ALL.into_iter().zip(join.words()) {
        let stem = kind.file_stem();
        let result = match word {
            Known::Signed(Word::Pass) => "PASSED",
            Known::Signed(Word::Fail) => "FAILED",
            Known::Signed(Word::NotRun) => "NOT_RUN",
            Known::Unverified | Known::Missing => continue,
        };
        lines.push(format!(
            "grep -xF '  \"predicateType\": \"{}\",' {stem}.json",
            predicate_type(kind),
        ));
        lines.push(format!(
            "grep -xF '    \"result\": \"{result}\",' {stem}.json"
        ));
        lines.push(format!("echo {word} | cmp - {stem}.txt"));
    }
    lines.push("# the envelope's signature, over the DSSE encoding of the payload".to_owned());
    for kind in VerdictKind::ALL {
        let stem = kind.file_stem();
        lines.push(format!(
            "{{ printf 'DSSEv1 {} {PAYLOAD_TYPE} %s ' \"$(wc -c < {stem}.json)\"; cat {stem}.json; }} > \"$OLDPWD/{stem}.pae\" && \
             sed 's/.*\"sig\":\"\\([^\"]*\\)\".*/\\1/' {stem}.sigstore.json | base64 -d > \"$OLDPWD/{stem}.sig\" && \
             openssl pkeyutl -verify -pubin -inkey \"$OLDPWD/tribunal.pem\" -rawin -in \"$OLDPWD/{stem}.pae\" -sigfile \"$OLDPWD/{stem}.sig\"",
            PAYLOAD_TYPE.len(),
        ));
    }
    lines.push("# the envelope as cosign reads it; its blob is the raw head commit, so run it in the repository".to_owned());
    let head = signed_head(join).unwrap_or("HEAD");
    lines.push("cd \"$OLDPWD\"".to_owned());
    lines.push(format!("git cat-file commit {head} > head.commit"));
    lines.push(format!("printf '%s' '{NO_ROOTS}' > no-roots.json"));
    for kind in VerdictKind::ALL {
        lines.push(format!(
            "cosign verify-blob-attestation --insecure-ignore-tlog --trusted-root no-roots.json --key tribunal.pem --type {} --bundle {folder}/{}.sigstore.json head.commit",
            predicate_type(kind),
            kind.file_stem(),
        ));
    }
    lines
}

/// The record of the key that signed, as the check of it names it.
fn used<'a>(ring: &'a KeyRing, join: &Join) -> Option<&'a KeyRecord> {
    let named = join
        .checks()
        .iter()
        .find(|check| check.step == Step::Key && !check.is_failure())
        .and_then(|check| match &check.result {
            tribunal_core::verify::CheckResult::Held(seen) => Some(seen.as_str()),
            tribunal_core::verify::CheckResult::Failed(_)
            | tribunal_core::verify::CheckResult::NotAsked(_) => None,
        });
    let by_name = ring
        .records()
        .iter()
        .find(|record| Some(record.key.id().as_str()) == named);
    by_name.or(ring.records().first())
}

fn signed_head(join: &Join) -> Option<&str> {
    let check = join
        .checks()
        .iter()
        .find(|check| check.step == Step::Head)?;
    match &check.result {
        tribunal_core::verify::CheckResult::Held(seen) => Some(seen),
        tribunal_core::verify::CheckResult::Failed(_)
        | tribunal_core::verify::CheckResult::NotAsked(_) => None,
    }
}

/// As one word of a shell.
fn quoted(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-/+=:@".contains(&b);
    if !text.is_empty() && text.bytes().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_folder_is_one_word_of_a_shell() {
        assert_eq!(quoted("ci_out"), "ci_out");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's; rm -rf ~"), r"'it'\''s; rm -rf ~'");
        assert_eq!(quoted(""), "''");
    }
}

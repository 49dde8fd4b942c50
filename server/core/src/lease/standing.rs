//! Whether a lease holds before its case is run unsilenced: date, signature, digest.

use super::{Lease, LeaseDigest};
use crate::id::{RepoPath, UnixTime};
use crate::outcome::FunctionDigest;
use crate::policy::Policy;
use crate::reason::Reason;

/// The functions of sealed files as the runner compiled them.
#[derive(Debug, Clone, Copy)]
pub struct Functions<'a> {
    /// Their digests.
    pub digests: &'a [FunctionDigest],
    /// The interpreter, as in `cp313`.
    pub tag: &'a str,
}

impl ShortDigest {
    /// What this policy says.
    #[must_use]
    pub const fn of(policy: &Policy) -> Self {
        if policy.runs.require_strong_digest {
            Self::Refused
        } else {
            Self::Warned
        }
    }
}

impl Functions<'_> {
    fn find(&self, file: &RepoPath, qualname: &str) -> Option<&FunctionDigest> {
        self.digests
            .iter()
            .find(|d| d.file == *file && d.qualname == qualname)
    }
}

/// What is wrong with a lease, or weak about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The code.
    pub reason: Reason,
    /// What was seen, in our own words.
    pub detail: String,
}

/// What a policy says of the short digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShortDigest {
    /// It passes with a warning.
    Warned,
    /// It fails.
    Refused,
}

/// Faults that make the lease worthless, and warnings where it holds.
#[must_use]
pub fn standing(
    lease: &Lease,
    file: &RepoPath,
    qualname: &str,
    functions: Functions<'_>,
    short: ShortDigest,
    gate: UnixTime,
) -> (Vec<Fault>, Vec<Fault>) {
    let mut faults = Vec::new();
    let mut warnings = Vec::new();
    faults.extend(expired(lease, gate));
    if lease.signature.is_empty() {
        faults.push(Fault {
            reason: Reason::LeaseSignatureMissing,
            detail: "its failure_signature is empty".to_owned(),
        });
    }
    let found = functions.find(file, qualname);
    if found.is_none() && !faults.is_empty() {
        // Worthless already, so its file was not compiled; that says nothing of the digest.
        return (faults, warnings);
    }
    match digest(lease, found, functions.tag, short) {
        Digest::Holds => {}
        Digest::Weak(warning) => warnings.push(warning),
        Digest::Fault(fault) => faults.push(fault),
    }
    (faults, warnings)
}

/// A lease holds only while the gate's time is before its end.
pub(crate) fn expired(lease: &Lease, gate: UnixTime) -> Option<Fault> {
    (gate >= lease.expires_at).then(|| Fault {
        reason: Reason::LeaseExpired,
        detail: format!(
            "its expires_at is {}, the gate's clock says {}",
            lease.expires_at.rfc3339(),
            gate.rfc3339()
        ),
    })
}

enum Digest {
    Holds,
    Weak(Fault),
    Fault(Fault),
}

fn digest(lease: &Lease, found: Option<&FunctionDigest>, tag: &str, short: ShortDigest) -> Digest {
    let mismatch = |detail: String| {
        Digest::Fault(Fault {
            reason: Reason::LeaseDigestMismatch,
            detail,
        })
    };
    let Some(found) = found else {
        return mismatch(
            "the sealed file holds no code of that name, so no lease is possible".to_owned(),
        );
    };
    match &lease.digest {
        LeaseDigest::V2 { tag: written, .. } if written != tag => mismatch(format!(
            "it was written for {written} and this runner is {tag}: the interpreter moved, whether the test did cannot be told; renew it"
        )),
        LeaseDigest::V2 { .. } if lease.digest.to_string() == found.v2 => Digest::Holds,
        LeaseDigest::V2 { .. } => {
            mismatch(format!("the test changed since: it is {} now", found.v2))
        }
        LeaseDigest::Short(hex) if *hex != found.short => mismatch(format!(
            "the test or the interpreter changed since, a short digest cannot tell which: it is {} now",
            found.short
        )),
        LeaseDigest::Short(_) => match short {
            ShortDigest::Warned => Digest::Weak(Fault {
                reason: Reason::WeakLeaseDigest,
                detail: "the short digest does not see constants".to_owned(),
            }),
            ShortDigest::Refused => {
                mismatch("it is a short digest, and the policy requires the strong one".to_owned())
            }
        },
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;
    use crate::outcome::Signature;

    fn v2(tag: &str, digit: &str) -> String {
        format!("v2:{tag}:{}", digit.repeat(64))
    }

    fn codes(
        digest: &str,
        signature: &str,
        short: ShortDigest,
        gate: i64,
    ) -> (Vec<Reason>, Vec<Reason>) {
        let file: RepoPath = "tests/sealed/test_a.py".parse().unwrap();
        let digests = [FunctionDigest {
            file: file.clone(),
            qualname: "test_a".into(),
            v2: v2("cp313", "a"),
            short: "a".repeat(16),
        }];
        let lease = Lease {
            qualname: "test_a.test_a".into(),
            digest: digest.parse().unwrap(),
            signature: Signature::written(signature),
            expires_at: UnixTime(100),
            owner: "o".into(),
            reason: "r".into(),
        };
        let functions = Functions {
            digests: &digests,
            tag: "cp313",
        };
        let (faults, warnings) =
            standing(&lease, &file, "test_a", functions, short, UnixTime(gate));
        let reasons = |faults: Vec<Fault>| faults.into_iter().map(|f| f.reason).collect();
        (reasons(faults), reasons(warnings))
    }

    #[test]
    fn date_signature_and_digest() {
        use Reason::{LeaseDigestMismatch, LeaseExpired, LeaseSignatureMissing, WeakLeaseDigest};
        use ShortDigest::{Refused, Warned};
        let good = v2("cp313", "a");
        assert_eq!(codes(&good, "E: x", Refused, 99), (vec![], vec![]));
        assert_eq!(
            codes(&good, "E: x", Refused, 100),
            (vec![LeaseExpired], vec![])
        );
        assert_eq!(
            codes(&good, "", Refused, 99),
            (vec![LeaseSignatureMissing], vec![])
        );
        assert_eq!(
            codes(&v2("cp313", "b"), "E", Warned, 99),
            (vec![LeaseDigestMismatch], vec![])
        );
        assert_eq!(
            codes(&v2("cp312", "a"), "E", Warned, 99),
            (vec![LeaseDigestMismatch], vec![])
        );
        assert_eq!(
            codes(&"a".repeat(16), "E", Warned, 99),
            (vec![], vec![WeakLeaseDigest])
        );
        assert_eq!(
            codes(&"a".repeat(16), "E", Refused, 99),
            (vec![LeaseDigestMismatch], vec![])
        );
        assert_eq!(
            codes(&"b".repeat(16), "", Warned, 200),
            (
                vec![LeaseExpired, LeaseSignatureMissing, LeaseDigestMismatch],
                vec![]
            )
        );
    }
}

//! Who accepted an entry: an SSH signature over it by a principal of base's `ci/allowed_signers`, and of no other list.
//!
//! Ed25519, ECDSA P-256, RSA from 2048 bits, and the hardware-backed forms of the first two. Certificates are refused:
//! a line that names an authority, or that cannot be read, accepts nothing.

use super::ledger::Entry;
use crate::id::UnixTime;
use crate::keys::signer_lines::{Line, admits, lines};
use crate::text::shown;
use ssh_key::{Algorithm, EcdsaCurve, PublicKey, SshSig};

/// The SSHSIG namespace of acceptances: a signature made for anything else is none.
pub const NAMESPACE: &str = "tribunal-cassette";

/// The people whose word counts.
#[derive(Debug, Clone, Default)]
pub struct Signers {
    lines: Vec<Line>,
    /// Lines that accept nothing, and why.
    unread: Vec<String>,
}

/// The time in which a key's word counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// From here on.
    pub after: Option<UnixTime>,
    /// Until here.
    pub before: Option<UnixTime>,
}

impl Window {
    /// Whether this time lies in it.
    #[must_use]
    pub fn holds(&self, at: UnixTime) -> bool {
        self.after.is_none_or(|after| at >= after) && self.before.is_none_or(|before| at < before)
    }
}

impl Signers {
    /// Of a tree's `ci/allowed_signers`; `None` where it has none.
    #[must_use]
    pub fn parse(bytes: Option<&[u8]>) -> Self {
        let mut signers = Self::default();
        let Ok(text) = std::str::from_utf8(bytes.unwrap_or_default()) else {
            signers.unread.push("the file is not UTF-8".to_owned());
            return signers;
        };
        for (number, line) in lines(text) {
            match line {
                Ok(line) => signers.lines.push(line),
                Err(why) => signers.unread.push(format!("line {number}: {why}")),
            }
        }
        signers
    }

    /// This person alone, with the key that made this signature: for whoever signs, to see that it holds.
    #[must_use]
    pub fn of_signature(principal: &str, signature: &str) -> Self {
        let key = SshSig::from_pem(signature).ok();
        let key = key.map(|signature| PublicKey::new(signature.public_key().clone(), ""));
        let line = key
            .and_then(|key| key.to_openssh().ok())
            .map(|key| format!("* {key}"));
        let mut signers = Self::parse(line.as_deref().map(str::as_bytes));
        for line in &mut signers.lines {
            principal.clone_into(&mut line.principals);
        }
        signers
    }

    /// When the acceptance of this entry counts.
    ///
    /// # Errors
    /// The sentence that says why it never does.
    pub fn accepted(&self, entry: &Entry) -> Result<Vec<Window>, String> {
        let who = shown(&entry.accepted_by, 100);
        if entry.is_draft() {
            return Err("nobody has accepted the entry: it is a draft".to_owned());
        }
        if entry.accepted_by.is_empty() {
            return Err("the entry has a signature, but `accepted_by` names nobody".to_owned());
        }
        if entry.signature.is_empty() {
            return Err(format!(
                "{who} is said to have accepted it, but there is no signature"
            ));
        }
        let signature = SshSig::from_pem(&entry.signature)
            .map_err(|error| format!("the signature is no SSH signature: {error}"))?;
        if signature.namespace() != NAMESPACE {
            let other = shown(signature.namespace(), 60);
            return Err(format!(
                "the signature is for `{other}`, not for `{NAMESPACE}`"
            ));
        }
        let named = |line: &&Line| admits(&line.principals, &entry.accepted_by);
        if !self.lines.iter().any(|line| named(&line)) {
            return Err(format!(
                "{who} is no principal of base's ci/allowed_signers{}",
                self.unread()
            ));
        }
        let speaks = |line: &&Line| {
            let namespaces = line.namespaces.as_deref();
            namespaces.is_none_or(|patterns| admits(patterns, NAMESPACE))
        };
        let of_key = |line: &&Line| {
            line.key()
                .is_some_and(|key| key.key_data() == signature.public_key())
        };
        let lines: Vec<&Line> = self
            .lines
            .iter()
            .filter(named)
            .filter(speaks)
            .filter(of_key)
            .collect();
        let Some(key) = lines.first().and_then(|line| line.key()) else {
            let fingerprint = signature.public_key().fingerprint(ssh_key::HashAlg::Sha256);
            return Err(format!(
                "the signature is by {fingerprint}, which is no key of {who}'s on base{}",
                self.unread()
            ));
        };
        fit(&key, &signature)?;
        key.verify(NAMESPACE, &entry.to_be_signed(), &signature)
            .map_err(|_| "the signature is not over this path, hash, pins and notes".to_owned())?;
        let window = |line: &&Line| Window {
            after: line.valid_after,
            before: line.valid_before,
        };
        Ok(lines.iter().map(window).collect())
    }

    fn unread(&self) -> String {
        match self.unread.first() {
            Some(first) => format!(" ({})", shown(first, 120)),
            None => String::new(),
        }
    }
}

/// Whether this kind of key may accept anything.
fn fit(key: &PublicKey, signature: &SshSig) -> Result<(), String> {
    const P256: EcdsaCurve = EcdsaCurve::NistP256;
    let kind = key.algorithm();
    let known = matches!(
        kind,
        Algorithm::Ed25519
            | Algorithm::SkEd25519
            | Algorithm::Ecdsa { curve: P256 }
            | Algorithm::SkEcdsaSha2NistP256
            | Algorithm::Rsa { .. }
    );
    if !known {
        return Err(format!(
            "keys of type {} accept nothing here",
            shown(kind.as_str(), 60)
        ));
    }
    if let Some(rsa) = key.key_data().rsa() {
        let bytes = rsa.n.as_positive_bytes().map_or(0, <[u8]>::len);
        if bytes < 256 {
            return Err("an RSA key under 2048 bits accepts nothing here".to_owned());
        }
    }
    let hardware = matches!(kind, Algorithm::SkEd25519 | Algorithm::SkEcdsaSha2NistP256);
    // Behind the signature proper: flags and a counter of four bytes. The lowest flag says that somebody was there.
    let flags = signature.signature_bytes().iter().rev().nth(4);
    if hardware && flags.is_none_or(|flags| flags & 1 == 0) {
        return Err("nobody touched the hardware key when it signed".to_owned());
    }
    Ok(())
}

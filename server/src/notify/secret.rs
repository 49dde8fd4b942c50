//! Secrets of receivers: files, read when they are needed, never shown, never kept.

use super::NotifyError;
use crate::config::SecretFile;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

/// What a webhook secret begins with.
const PREFIX: &str = "whsec_";

fn line(place: &SecretFile) -> Result<Zeroizing<String>, NotifyError> {
    let path = place.locate().map_err(|error| wrong(place, error))?;
    let text = std::fs::read_to_string(path).map(Zeroizing::new);
    let text = text.map_err(|error| wrong(place, error))?;
    let line = text.lines().next().unwrap_or_default().trim();
    if line.is_empty() {
        return Err(wrong(place, "it is empty"));
    }
    Ok(Zeroizing::new(line.to_owned()))
}

fn wrong(place: &SecretFile, what: impl ToString) -> NotifyError {
    NotifyError::Secret {
        place: place.clone(),
        what: what.to_string(),
    }
}

/// A token for a header: its first line.
pub(super) fn token(place: &SecretFile) -> Result<Zeroizing<String>, NotifyError> {
    let token = line(place)?;
    if token.bytes().all(|b| b.is_ascii_graphic()) {
        Ok(token)
    } else {
        Err(wrong(place, "its first line is no token"))
    }
}

/// The key of a webhook.
pub(super) struct Key(Zeroizing<Vec<u8>>);

impl Key {
    /// `whsec_` and 24 to 64 bytes in base64.
    pub(super) fn read(place: &SecretFile) -> Result<Self, NotifyError> {
        let text = line(place)?;
        let bytes = text
            .strip_prefix(PREFIX)
            .and_then(|b| STANDARD.decode(b).ok());
        match bytes.map(Zeroizing::new) {
            Some(bytes) if (24..=64).contains(&bytes.len()) => Ok(Self(bytes)),
            Some(_) | None => Err(wrong(
                place,
                "want whsec_ and 24 to 64 bytes in base64 on its first line",
            )),
        }
    }

    /// `v1,…` over id, time and body.
    pub(super) fn sign(&self, id: &str, timestamp: i64, body: &str) -> Result<String, NotifyError> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).map_err(|_| NotifyError::Key)?;
        mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
        let tag = STANDARD.encode(mac.finalize().into_bytes());
        Ok(format!("v1,{tag}"))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
    use super::*;

    #[test]
    fn the_signature_is_the_specifications_own_example() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
        let secret = SecretFile::Path(file.clone());
        let key = Key::read(&secret).unwrap();
        let body = "{\"test\": 2432232314}";
        let signed = key.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(
            signed.unwrap(),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
        for bad in [
            "",
            "\n",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_MfKQ",
            "whsec_!",
        ] {
            std::fs::write(&file, bad).unwrap();
            let told = Key::read(&secret).err().unwrap().to_string();
            assert!(
                bad.trim().is_empty() || !told.contains(bad.trim()),
                "{told}"
            );
        }
        std::fs::write(&file, "ghp_x\r\nnext").unwrap();
        assert_eq!(token(&secret).unwrap().as_str(), "ghp_x");
        std::fs::write(&file, "a b").unwrap();
        assert!(token(&secret).is_err());
    }
}

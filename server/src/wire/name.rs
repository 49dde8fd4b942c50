//! Resource names: `repositories/{repository}/scores/{score}`, `keys/{fingerprint}`.

use tribunal_core::id::{KeyId, RepoName, ScoreId};
use tribunal_core::reason::RefusedCode;
use tribunal_core::request::FieldViolation;

pub(super) fn repository(name: &RepoName) -> String {
    format!("repositories/{name}")
}

pub(super) fn score(repository: &RepoName, score: &ScoreId) -> String {
    format!("repositories/{repository}/scores/{score}")
}

/// `keys/` and the fingerprint's bytes in hex: base64 holds slashes.
pub(super) fn key(id: &KeyId) -> String {
    use base64::Engine as _;
    let hash = id.as_str().trim_start_matches("SHA256:");
    let bytes = base64::engine::general_purpose::STANDARD_NO_PAD.decode(hash);
    format!("keys/{}", hex::encode(bytes.unwrap_or_default()))
}

/// The id in `repositories/{repository}`; the rest of a request is still looked at where it does not hold.
pub(super) fn repository_part(name: &str) -> &str {
    // What is left is no repository id either way, so that its own rule is what is told.
    name.strip_prefix("repositories/").unwrap_or("")
}

pub(super) fn parse_repository(
    field: &'static str,
    name: &str,
) -> Result<RepoName, FieldViolation> {
    repository_part(name)
        .parse()
        .map_err(|_| violation(field, "must be `repositories/{repository}`"))
}

pub(super) fn parse_score(
    field: &'static str,
    name: &str,
) -> Result<(RepoName, ScoreId), FieldViolation> {
    let bad = || violation(field, "must be `repositories/{repository}/scores/{score}`");
    let (repository, score) = name
        .strip_prefix("repositories/")
        .and_then(|rest| rest.split_once("/scores/"))
        .ok_or_else(bad)?;
    Ok((
        repository.parse().map_err(|_| bad())?,
        score.parse().map_err(|_| bad())?,
    ))
}

pub(super) fn violation(field: &'static str, description: impl Into<String>) -> FieldViolation {
    FieldViolation {
        field,
        description: description.into(),
        code: RefusedCode::InvalidArgument,
    }
}

/// How many entries a page may have.
pub(super) fn page_size(asked: i32, default: u32, most: u32) -> Result<u32, FieldViolation> {
    match u32::try_from(asked) {
        Ok(0) => Ok(default),
        Ok(size) => Ok(size.min(most)),
        Err(_) => Err(violation("page_size", "must not be negative")),
    }
}

/// Where a page begins: the token is a number that an earlier answer gave.
pub(super) fn page_start(token: &str) -> Result<Option<u64>, FieldViolation> {
    if token.is_empty() {
        return Ok(None);
    }
    token
        .strip_prefix("p")
        .and_then(|number| number.parse().ok())
        .map(Some)
        .ok_or_else(|| violation("page_token", "must come from an earlier answer"))
}

pub(super) fn page_token(start: u64) -> String {
    format!("p{start}")
}

/// One page out of a list that is whole in memory, and the token of the next.
pub(super) fn page<T>(all: Vec<T>, start: Option<u64>, size: u32) -> (Vec<T>, String) {
    let start = start.map_or(0, |s| usize::try_from(s).unwrap_or(usize::MAX));
    let end = start.saturating_add(size as usize);
    let next = if end < all.len() {
        page_token(end as u64)
    } else {
        String::new()
    };
    let page = all
        .into_iter()
        .skip(start)
        .take(size as usize)
        .collect::<Vec<_>>();
    (page, next)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
    use super::*;

    #[test]
    fn names_round_trip_and_others_are_told_the_form() {
        let repo: RepoName = "demo".parse().unwrap();
        let id: ScoreId = "0".repeat(32).parse().unwrap();
        let name = score(&repo, &id);
        assert_eq!(parse_score("name", &name).unwrap(), (repo.clone(), id));
        assert_eq!(
            parse_repository("parent", &repository(&repo)).unwrap(),
            repo
        );
        for bad in [
            "",
            "demo",
            "repositories/",
            "repositories/demo/scores/",
            "repositories/demo/scores/1",
            "repositories/a/b/scores/00000000000000000000000000000000",
            "/repositories/demo/scores/00000000000000000000000000000000",
        ] {
            assert!(parse_score("name", bad).is_err(), "{bad}");
        }
        assert!(parse_repository("parent", "repositories/demo/").is_err());
        let key_id: KeyId = format!("SHA256:{}", "A".repeat(43)).parse().unwrap();
        assert_eq!(key(&key_id), format!("keys/{}", "0".repeat(64)));
    }

    #[test]
    fn pages_hold_everything_once() {
        let all: Vec<u32> = (0..7).collect();
        let mut seen = Vec::new();
        let mut token = String::new();
        loop {
            let start = page_start(&token).unwrap();
            let (part, next) = page(all.clone(), start, 3);
            seen.extend(part);
            token = next;
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(seen, all);
        assert!(page_start("7").is_err());
        assert!(page_start("p-1").is_err());
        assert_eq!(page(all, Some(u64::MAX), 3).0, Vec::<u32>::new());
        assert_eq!(page_size(0, 50, 500).unwrap(), 50);
        assert_eq!(page_size(9999, 50, 500).unwrap(), 500);
        assert!(page_size(-1, 50, 500).is_err());
    }
}

//! Which remotes and branches an operator may register, by their words alone.

use super::git::Protocol;
use super::{RepositoryError, disk, refused};
use tribunal_core::reason::RefusedCode::InvalidArgument;
use tribunal_core::text::shown;

pub(super) fn invalid(message: impl Into<String>) -> RepositoryError {
    refused(InvalidArgument, message)
}

/// A remote that is one of the allowed kinds. A local path becomes absolute.
pub(super) fn checked_remote(
    remote: &str,
    allowed: &[Protocol],
) -> Result<String, RepositoryError> {
    if remote.is_empty() || remote.starts_with('-') || remote.chars().any(char::is_control) {
        return Err(invalid(format!(
            "no remote can be called {}",
            shown(remote, 80)
        )));
    }
    let protocol = protocol_of(remote).ok_or_else(|| {
        invalid(format!(
            "{} is none of: a path, file://, https://, ssh://, git://, user@host:path",
            shown(remote, 80)
        ))
    })?;
    if !allowed.contains(&protocol) {
        let name = protocol.name();
        return Err(invalid(format!(
            "the configuration does not allow to fetch by {name}"
        )));
    }
    if protocol == Protocol::File && !remote.starts_with("file://") {
        let path = std::path::absolute(remote).map_err(|error| disk("find a path", &error))?;
        return path
            .into_os_string()
            .into_string()
            .map_err(|_not_utf8| invalid("the path is not UTF-8"));
    }
    Ok(remote.to_owned())
}

fn protocol_of(remote: &str) -> Option<Protocol> {
    if let Some((scheme, _)) = remote.split_once("://") {
        return match scheme {
            "file" => Some(Protocol::File),
            "https" => Some(Protocol::Https),
            "ssh" => Some(Protocol::Ssh),
            "git" => Some(Protocol::Git),
            _ => None,
        };
    }
    match remote.split_once(':') {
        // `ext::sh -c …` and its kin run programs.
        Some((_, rest)) if rest.starts_with(':') => None,
        Some((host, _)) if !host.contains('/') => Some(Protocol::Ssh),
        Some(_) | None => Some(Protocol::File),
    }
}

/// What stands before the host of an address: a name, and perhaps a password.
pub(super) fn login(remote: &str) -> Option<&str> {
    let (_, rest) = remote.split_once("://")?;
    let authority = rest.split('/').next()?;
    authority.rsplit_once('@').map(|(login, _)| login)
}

/// A branch by its short or full name, as a full ref name.
pub(super) fn checked_branch(branch: &str) -> Result<String, RepositoryError> {
    let short = branch.strip_prefix("refs/heads/").unwrap_or(branch);
    let full = format!("refs/heads/{short}");
    let valid = gix::validate::reference::name(full.as_str().into()).is_ok();
    if valid && !short.is_empty() && !short.starts_with('-') {
        Ok(full)
    } else {
        Err(invalid(format!(
            "no branch can be called {}",
            shown(branch, 80)
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Protocol; 4] = [
        Protocol::File,
        Protocol::Https,
        Protocol::Ssh,
        Protocol::Git,
    ];

    #[test]
    fn remotes_are_paths_or_known_schemes() {
        for (remote, protocol) in [
            ("/srv/git/x.git", Some(Protocol::File)),
            ("./x", Some(Protocol::File)),
            ("./odd:name", Some(Protocol::File)),
            ("file:///srv/x", Some(Protocol::File)),
            ("https://example.org/x.git", Some(Protocol::Https)),
            ("ssh://git@example.org/x", Some(Protocol::Ssh)),
            ("git@example.org:x.git", Some(Protocol::Ssh)),
            ("git://example.org/x", Some(Protocol::Git)),
            ("http://example.org/x", None),
            ("ext::sh -c whoami", None),
            ("fd::7", None),
        ] {
            assert_eq!(protocol_of(remote), protocol, "{remote}");
        }
        for remote in ["", "--upload-pack=sh", "a\nb", "http://x/y", "ext::sh"] {
            assert!(checked_remote(remote, &ALL).is_err(), "{remote}");
        }
        assert!(checked_remote("git://h/x", &[Protocol::File]).is_err());
    }

    #[test]
    fn logins_are_found_to_be_hidden() {
        assert_eq!(login("https://me:secret@host/x"), Some("me:secret"));
        assert_eq!(login("https://host/x@y"), None);
        assert_eq!(login("/srv/x"), None);
    }

    #[test]
    fn branches_are_full_ref_names_in_the_end() {
        for name in ["main", "refs/heads/main"] {
            assert!(checked_branch(name).is_ok_and(|b| b == "refs/heads/main"));
        }
        assert!(checked_branch("release/1.x").is_ok_and(|b| b == "refs/heads/release/1.x"));
        for name in ["", "-x", "a..b", "a b", "a.lock", "../../x", "a\nb", "x~1"] {
            assert!(checked_branch(name).is_err(), "{name}");
        }
    }
}

//! `repo add|list|sync|remove`: the trusted mirrors, and what of their base is not supported.

use super::survey::survey;
use super::{AdminError, Answer, Data};
use crate::pipeline::NoVerdict;
use crate::repository::{
    GitRepository, ProtectedTip, Repository as _, RepositoryError, RepositorySettings,
};
use serde_json::json;
use tribunal_core::id::RepoName;

/// Register a repository and fetch it. A path is made absolute: the server may run elsewhere.
///
/// # Errors
/// What cannot be a remote or branch, one that is registered, a remote that does not answer.
pub fn add_repo(
    data: &Data,
    settings: RepositorySettings,
    name: &RepoName,
    remote: &str,
    branch: &str,
) -> Result<Answer, AdminError> {
    let room = data.repository(settings)?;
    let remote = match std::fs::canonicalize(remote) {
        Ok(path) => path.to_string_lossy().into_owned(),
        Err(_) => remote.to_owned(),
    };
    let tip = room
        .add(name, &remote, branch)
        .map_err(AdminError::repository(format!("register {name}")))?;
    told(&room, name, &tip, "is registered")
}

/// Fetch now.
///
/// # Errors
/// No such repository, or its remote does not answer.
pub fn sync_repo(
    data: &Data,
    settings: RepositorySettings,
    name: &RepoName,
) -> Result<Answer, AdminError> {
    let room = data.repository(settings)?;
    let tip = room
        .sync(name)
        .map_err(AdminError::repository(format!("fetch {name}")))?;
    told(&room, name, &tip, "is up to date")
}

fn told(
    room: &GitRepository,
    name: &RepoName,
    tip: &ProtectedTip,
    done: &str,
) -> Result<Answer, AdminError> {
    let survey = survey(room, name, tip).map_err(|error| {
        let source = match error {
            NoVerdict::Refused(refused) => RepositoryError::Refused(refused),
            NoVerdict::Aborted(aborted) => RepositoryError::Aborted(aborted),
        };
        AdminError::Repository {
            what: format!("look at the base of {name}"),
            source,
        }
    })?;
    let mut text = format!(
        "{name} {done}: {} at {}, {} sealed test files\n",
        tip.name, tip.commit, survey.sealed_files
    );
    for note in &survey.notes {
        text.push_str(&format!("  base has {note}\n"));
    }
    let json = json!({
        "name": name,
        "protected_ref": tip.name,
        "tip": tip.commit,
        "sealed_files": survey.sealed_files,
        "notes": survey.notes,
    });
    Ok(Answer::lines(text, json))
}

/// All of them.
///
/// # Errors
/// The disk.
pub fn list_repos(data: &Data, settings: RepositorySettings) -> Result<Answer, AdminError> {
    let room = data.repository(settings)?;
    let names = room
        .list()
        .map_err(AdminError::repository("list the mirrors"))?;
    let mut rows = Vec::new();
    for name in names {
        let registration = room
            .registration(&name)
            .map_err(AdminError::repository(format!("look at {name}")))?;
        rows.push(vec![
            name.to_string(),
            registration.branch,
            masked(&registration.remote),
        ]);
    }
    let heading = ["name", "protected ref", "remote"];
    Ok(Answer::table("repositories", &heading, rows))
}

/// Forget a repository, its mirror and what was uploaded for it. Scores stay.
///
/// # Errors
/// No such repository.
pub fn remove_repo(
    data: &Data,
    settings: RepositorySettings,
    name: &RepoName,
) -> Result<Answer, AdminError> {
    data.repository(settings)?
        .remove(name)
        .map_err(AdminError::repository(format!("remove {name}")))?;
    let json = json!({ "removed": name });
    Ok(Answer::lines(format!("{name} is removed\n"), json))
}

/// A URL without the password that someone put into it.
fn masked(remote: &str) -> String {
    let Some((scheme, rest)) = remote.split_once("://") else {
        return remote.to_owned();
    };
    match rest.split_once('@') {
        Some((user, host)) if user.contains(':') && !user.contains('/') => {
            let name = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{name}:***@{host}")
        }
        Some(_) | None => remote.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::masked;

    #[test]
    fn a_password_in_a_remote_is_not_shown() {
        for (remote, shown) in [
            ("https://u:secret@host/x.git", "https://u:***@host/x.git"),
            ("https://host/x.git", "https://host/x.git"),
            ("ssh://git@host/x.git", "ssh://git@host/x.git"),
            ("git@host:x.git", "git@host:x.git"),
            ("/srv/x@y:z", "/srv/x@y:z"),
        ] {
            assert_eq!(masked(remote), shown);
        }
    }
}

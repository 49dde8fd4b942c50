//! `repo add|list|sync|remove`: the trusted mirrors, and what of their base is not supported.

use super::oracle::{self, Effort, Seen};
use super::survey::survey;
use super::{AdminError, Answer, Data};
use crate::config::Config;
use crate::pipeline::NoVerdict;
use crate::repository::{
    GitRepository, ProtectedTip, Repository as _, RepositoryError, RepositorySettings,
};
use serde_json::json;
use tribunal_core::id::RepoName;

/// Where a command works.
pub struct Place<'a> {
    /// The data directory.
    pub data: &'a Data,
    /// What the operator decided.
    pub config: &'a Config,
    /// Where the engine is.
    pub engine: Option<String>,
    /// How mirrors are fetched.
    pub settings: RepositorySettings,
}

/// Register a repository and fetch it. A path is made absolute: the server may run elsewhere.
///
/// # Errors
/// What cannot be a remote or branch, one that is registered, a remote that does not answer.
pub async fn add_repo(
    place: Place<'_>,
    name: &RepoName,
    remote: &str,
    branch: &str,
    effort: Effort,
) -> Result<Answer, AdminError> {
    let room = place.data.repository(place.settings.clone())?;
    let remote = match std::fs::canonicalize(remote) {
        Ok(path) => path.to_string_lossy().into_owned(),
        Err(_) => remote.to_owned(),
    };
    let tip = room
        .add(name, &remote, branch)
        .map_err(AdminError::repository(format!("register {name}")))?;
    told(place, &room, name, &tip, "is registered", effort).await
}

/// Fetch now.
///
/// # Errors
/// No such repository, or its remote does not answer.
pub async fn sync_repo(
    place: Place<'_>,
    name: &RepoName,
    effort: Effort,
) -> Result<Answer, AdminError> {
    let room = place.data.repository(place.settings.clone())?;
    let tip = room
        .sync(name)
        .map_err(AdminError::repository(format!("fetch {name}")))?;
    told(place, &room, name, &tip, "is up to date", effort).await
}

async fn told(
    place: Place<'_>,
    room: &GitRepository,
    name: &RepoName,
    tip: &ProtectedTip,
    done: &str,
    effort: Effort,
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
    // Without a file to run there is no oracle; that is told already.
    let seen = match survey.sealed_files {
        0 => None,
        _ => {
            let Place {
                data,
                config,
                engine,
                settings,
            } = place;
            Some(oracle::see(data, config, engine, settings, name, effort).await?)
        }
    };
    for line in seen.iter().flat_map(Seen::lines) {
        text.push_str(&format!("  {line}\n"));
    }
    let json = json!({
        "name": name,
        "protected_ref": tip.name,
        "tip": tip.commit,
        "sealed_files": survey.sealed_files,
        "notes": survey.notes,
        "oracle": seen.as_ref().map(Seen::json),
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

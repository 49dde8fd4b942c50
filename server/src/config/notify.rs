//! Who is told of ends: `[notify]`, `[[notify.webhook]]`, `[[notify.status]]`.

use super::table::Reader;
use super::unit::shown_duration;
use super::{Mistake, Mistakes, SecretFile};
use crate::notify::{Api, Endpoint, Notify, Project, StatusTarget, Webhook};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use toml::Table;
use tribunal_core::id::RepoName;

pub(super) const URL: &str =
    "an address like \"https://host/path\" (http:// on loopback only), without a password";
const PROJECT: &str = "a project like \"owner/name\"";
const SECRET: &str = "a file, or \"credential:NAME\"";
const REPOSITORY: &str = "the name of a repository here";

pub(super) fn read(
    table: Option<&Table>,
    folder: &Path,
    notify: &mut Notify,
    into: &mut Vec<Mistake>,
) {
    let mut reader = Reader::new("notify", table);
    reader.duration("retry", &mut notify.retry);
    reader.duration("give_up", &mut notify.give_up);
    notify.ca = reader.text("ca").map(|file| folder.join(file));
    for table in reader.tables("webhook") {
        notify.webhooks.extend(webhook(table, folder, into));
    }
    for table in reader.tables("status") {
        notify.statuses.extend(status(table, folder, into));
    }
    let mut names = BTreeSet::new();
    for hook in &notify.webhooks {
        if !names.insert(hook.name.clone()) {
            reader.wrong("webhook", format!("has two of the name {:?}", hook.name));
        }
    }
    let mut repositories = BTreeSet::new();
    for target in &notify.statuses {
        if !repositories.insert(target.repository.clone()) {
            let repository = &target.repository;
            reader.wrong("status", format!("has two for the repository {repository}"));
        }
    }
    reader.finish(into);
}

fn webhook(table: &Table, folder: &Path, into: &mut Vec<Mistake>) -> Option<Webhook> {
    let mut reader = Reader::new("notify.webhook", Some(table));
    let name = reader.needed("name", "a name of a-z 0-9 -", |text| {
        let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        ((1..=40).contains(&text.len()) && text.bytes().all(fits)).then(|| text.to_owned())
    });
    let url = reader.needed("url", URL, |text| text.parse::<Endpoint>().ok());
    let secret = reader.needed("secret", SECRET, |text| SecretFile::of(text, folder).ok());
    let mut repositories = Vec::new();
    for name in reader.texts("repositories").unwrap_or_default() {
        match name.parse::<RepoName>() {
            Ok(name) => repositories.push(name),
            Err(_) => reader.wrong("repositories", "may hold names of repositories here"),
        }
    }
    reader.finish(into);
    Some(Webhook {
        name: name?,
        repositories,
        url: url?,
        secret: secret?,
    })
}

fn status(table: &Table, folder: &Path, into: &mut Vec<Mistake>) -> Option<StatusTarget> {
    let mut reader = Reader::new("notify.status", Some(table));
    let repository = reader.needed("repository", REPOSITORY, |text| text.parse().ok());
    let api = reader.needed("api", "\"github\", \"gitlab\" or \"gitea\"", |text| {
        Api::ALL.into_iter().find(|api| api.name() == text)
    });
    let url = reader.needed("url", URL, |text| text.parse::<Endpoint>().ok());
    let project = reader.needed("project", PROJECT, |text| text.parse::<Project>().ok());
    let token = reader.needed("token", SECRET, |text| SecretFile::of(text, folder).ok());
    reader.finish(into);
    Some(StatusTarget {
        repository: repository?,
        api: api?,
        url: url?,
        project: project?,
        token: token?,
    })
}

/// What files say.
pub(super) fn check(notify: &Notify) -> Result<(), Mistakes> {
    crate::notify::check(notify).map_err(|error| {
        Mistakes(vec![Mistake {
            key: "notify".to_owned(),
            what: format!("failed to {error}"),
        }])
    })
}

/// As a file says it. Secrets are files; what is in them is not shown.
pub(super) fn shown(notify: &Notify) -> String {
    let quoted = |value: &str| toml::Value::from(value).to_string();
    let path = |value: &Path| quoted(&value.to_string_lossy());
    let mut text = String::new();
    // A String never fails to grow.
    let mut line = |key: &str, value: String| {
        let _ = writeln!(text, "{key} = {value}");
    };
    line("\n[notify]\nretry", quoted(&shown_duration(notify.retry)));
    line("give_up", quoted(&shown_duration(notify.give_up)));
    if let Some(ca) = &notify.ca {
        line("ca", path(ca));
    }
    for hook in &notify.webhooks {
        line("\n[[notify.webhook]]\nname", quoted(&hook.name));
        line("url", quoted(&hook.url.to_string()));
        line("secret", quoted(&hook.secret.to_string()));
        let names: Vec<&str> = hook.repositories.iter().map(RepoName::as_str).collect();
        line("repositories", toml::Value::from(names).to_string());
    }
    for target in &notify.statuses {
        let repository = quoted(target.repository.as_str());
        line("\n[[notify.status]]\nrepository", repository);
        line("api", quoted(target.api.name()));
        line("url", quoted(&target.url.to_string()));
        line("project", quoted(&target.project.to_string()));
        line("token", quoted(&target.token.to_string()));
    }
    text
}

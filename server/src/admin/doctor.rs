//! `doctor`: everything that scoring needs, each line ok or what to do.

use super::oracle::{self, Effort, Health};
use super::survey::survey;
use super::{AdminError, Answer, Data};
use crate::clock;
use crate::config::Config;
use crate::image::{self, Presence};
use crate::pipeline::NoVerdict;
use crate::repository::{Repository as _, RepositorySettings};
use crate::sandbox::MarksInMemory;
use crate::sandbox::docker::{DockerOptions, DockerSandbox, EngineDetails, EngineFacts};
use crate::sign::{KeyFolderError, Signer as _};
use crate::store::Store as _;
use serde_json::json;
use std::sync::Arc;

/// Less than this on the data directory's file system, and scores will soon be aborted.
const LOW_DISK: u64 = 2 << 30;

/// What was looked at, and what was found.
struct Check {
    name: &'static str,
    state: State,
    found: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Good,
    Note,
    Bad,
}

impl State {
    const fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Note => "note",
            Self::Bad => "NOT OK",
        }
    }
}

fn good(name: &'static str, found: impl Into<String>) -> Check {
    check(name, State::Good, found)
}

fn bad(name: &'static str, found: impl Into<String>) -> Check {
    check(name, State::Bad, found)
}

fn check(name: &'static str, state: State, found: impl Into<String>) -> Check {
    Check {
        name,
        state,
        found: found.into(),
    }
}

/// Look at everything.
///
/// # Errors
/// `NotInOrder` with the answer, where something is not.
pub async fn doctor(
    data: &Data,
    config: &Config,
    engine: Option<String>,
    settings: RepositorySettings,
) -> Result<Answer, AdminError> {
    let mut checks = Vec::new();
    checks.extend(engine_checks(engine.clone()).await);
    checks.push(image_check(data, engine.as_deref()).await);
    checks.push(disk_check(data));
    checks.push(clock_check());
    checks.push(key_check(data));
    checks.push(git_check());
    checks.push(match crate::config::check(config) {
        Ok(()) => good("configuration", "holds"),
        Err(mistakes) => bad("configuration", mistakes.to_string()),
    });
    checks.extend(repository_checks(data, settings.clone())?);
    checks.extend(oracle_checks(data, config, engine, settings).await?);
    let all_good = checks.iter().all(|c| c.state != State::Bad);
    let rows = checks
        .iter()
        .map(|c| {
            vec![
                c.state.word().to_owned(),
                c.name.to_owned(),
                c.found.clone(),
            ]
        })
        .collect();
    let mut answer = Answer::table("checks", &["state", "what", "found"], rows);
    answer.json = json!({
        "in_order": all_good,
        "checks": checks.iter().map(|c| json!({
            "what": c.name, "state": c.state.word(), "found": c.found,
        })).collect::<Vec<_>>(),
    });
    if all_good {
        Ok(answer)
    } else {
        Err(AdminError::NotInOrder(Box::new(answer)))
    }
}

async fn engine_checks(host: Option<String>) -> Vec<Check> {
    let sandbox = DockerSandbox::new(DockerOptions {
        host,
        instance: "doctor".to_owned(),
        marks: Arc::new(MarksInMemory::default()),
        ready_rooms: 0,
        observer: crate::metrics::nobody(),
    });
    let facts = match sandbox {
        Ok(sandbox) => sandbox.examine().await,
        Err(aborted) => EngineFacts::Unreachable(aborted),
    };
    match facts {
        EngineFacts::Unreachable(aborted) => {
            let found = format!(
                "{}; start it (deploy/bootstrap.sh), or name another with engine.host or DOCKER_HOST",
                aborted.message
            );
            vec![bad("engine", found)]
        }
        EngineFacts::Reached(details) => reached(&details),
    }
}

fn reached(details: &EngineDetails) -> Vec<Check> {
    let mut checks = vec![good(
        "engine",
        format!(
            "version {}, API {}, {} CPUs, {} MiB",
            details.version,
            details.api,
            details.cpus,
            details.memory >> 20
        ),
    )];
    checks.push(if details.missing_limits.is_empty() {
        good(
            "cgroups",
            format!("version {}, all limits", details.cgroups),
        )
    } else {
        let missing = details.missing_limits.join(", ");
        let found = format!(
            "version {}: the kernel gives no limit of {missing}; enable its controllers",
            details.cgroups
        );
        bad("cgroups", found)
    });
    checks.push(if details.has_seccomp() {
        good("seccomp", "filters system calls")
    } else {
        bad(
            "seccomp",
            "the engine filters no system calls; use one built with seccomp",
        )
    });
    checks.push(good("storage", details.storage.clone()));
    checks
}

async fn image_check(data: &Data, engine: Option<&str>) -> Check {
    let name = "image";
    let known = match image::find(data.path(), image::DEFAULT_TAG) {
        Ok(Some(known)) => known,
        Ok(None) => {
            let found = "not built yet; `serve` builds it, or run `tribunal-server image build`";
            return check(name, State::Note, found);
        }
        Err(error) => return bad(name, error.to_string()),
    };
    let present = async { image::presence(&image::connect(engine).await?, &known).await };
    match present.await {
        Ok(Presence::Present) => good(name, format!("{} is {}", known.tag, known.digest)),
        Ok(Presence::Absent) => {
            let found = format!(
                "{} is on record and not in the engine; run `tribunal-server image build`",
                known.tag
            );
            check(name, State::Note, found)
        }
        Err(error) => bad(name, error.to_string()),
    }
}

fn disk_check(data: &Data) -> Check {
    let name = "disk";
    match rustix::fs::statvfs(data.path()) {
        Ok(stat) => {
            let free = stat.f_bavail.saturating_mul(stat.f_frsize);
            let found = format!("{} MiB free below {}", free >> 20, data.path().display());
            if free < LOW_DISK {
                bad(
                    name,
                    format!("{found}; make room, or run `tribunal-server gc`"),
                )
            } else {
                good(name, found)
            }
        }
        Err(error) => bad(name, format!("cannot be asked: {error}")),
    }
}

fn clock_check() -> Check {
    let now = clock::now();
    // This program was not written before 2026; leases expire by this clock.
    if now.0 < 1_767_225_600 {
        bad("clock", format!("says {}; set it", now.rfc3339()))
    } else {
        good("clock", now.rfc3339())
    }
}

fn key_check(data: &Data) -> Check {
    let name = "key";
    let current = match data.keys().signer() {
        Ok(signer) => signer.public().clone(),
        Err(error @ (KeyFolderError::Nowhere { .. } | KeyFolderError::Key(_)))
            if data.keys().outside().is_some() =>
        {
            return bad(
                name,
                format!("{error}; it comes from outside: mend it there"),
            );
        }
        Err(error) => {
            let todo = "bring keys/ back from a backup, or run `tribunal-server key rotate`";
            return bad(name, format!("{error}; {todo}"));
        }
    };
    let known = match data.store().and_then(|store| Ok(store.keys()?)) {
        Ok(keys) => keys.into_iter().find(|record| record.key == current),
        Err(error) => return bad(name, error.to_string()),
    };
    match known.map(|record| record.may_issue(clock::now())) {
        Some(Ok(())) => good(name, format!("{} signs", current.id())),
        Some(Err(why)) => bad(name, format!("{why}; run `tribunal-server key rotate`")),
        None => {
            let found = format!(
                "{} signs and is not on record; run `tribunal-server key rotate`",
                current.id()
            );
            bad(name, found)
        }
    }
}

fn git_check() -> Check {
    let name = "git";
    match std::process::Command::new("git").arg("--version").output() {
        Ok(output) if output.status.success() => {
            let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            good(name, version)
        }
        Ok(output) => bad(name, format!("git --version ended with {}", output.status)),
        Err(error) => bad(name, format!("{error}; install git")),
    }
}

/// What is known of the oracles; nothing is run for it.
async fn oracle_checks(
    data: &Data,
    config: &Config,
    engine: Option<String>,
    settings: RepositorySettings,
) -> Result<Vec<Check>, AdminError> {
    let names = data
        .repository(settings.clone())?
        .list()
        .map_err(AdminError::repository("list the mirrors"))?;
    let mut checks = Vec::new();
    for repo in names {
        let (engine, settings) = (engine.clone(), settings.clone());
        let seen = oracle::see(data, config, engine, settings, &repo, Effort::Recall).await?;
        let (health, found) = seen.summary();
        let state = match health {
            Health::Good => State::Good,
            Health::Note => State::Note,
            Health::Bad => State::Bad,
        };
        checks.push(check("oracle", state, format!("{repo}: {found}")));
    }
    Ok(checks)
}

fn repository_checks(data: &Data, settings: RepositorySettings) -> Result<Vec<Check>, AdminError> {
    let name = "repository";
    let room = data.repository(settings)?;
    let names = room
        .list()
        .map_err(AdminError::repository("list the mirrors"))?;
    let mut checks = Vec::new();
    for repo in names {
        let looked = room
            .refresh(&repo)
            .map_err(NoVerdict::from)
            .and_then(|tip| survey(&room, &repo, &tip));
        match looked {
            Err(error) => checks.push(bad(name, format!("{repo}: {error}"))),
            Ok(survey) if survey.notes.is_empty() => {
                let found = format!("{repo}: {} sealed test files", survey.sealed_files);
                checks.push(good(name, found));
            }
            Ok(survey) => {
                for note in survey.notes {
                    checks.push(check(name, State::Note, format!("{repo}: base has {note}")));
                }
            }
        }
    }
    Ok(checks)
}

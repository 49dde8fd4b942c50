//! What the oracle of a repository's base is worth, for an operator: looked at now, by the server that serves this data
//! directory where one does, else by this process.

use super::{AdminError, Data};
use crate::config::Config;
use crate::pipeline::{self, Look, NoVerdict, Rooms, Wish};
use crate::repository::RepositorySettings;
use crate::store::Store;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tribunal_core::id::{NodeId, RepoName};
use tribunal_core::judge::{NullProduct, PlantedChange};
use tribunal_core::text::shown;

/// A server may be busy with scores, which come first.
const PATIENCE: Duration = Duration::from_secs(900);
const EVERY: Duration = Duration::from_millis(300);
/// Names on one line.
const NAMES: usize = 8;

/// Whether base may be run for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Base is run where it was not, and changes are planted in it.
    Run,
    /// Only what is known is told.
    Recall,
}

/// What came of it.
pub(super) enum Seen {
    /// This.
    Look(Box<Look>),
    /// Nothing yet, and why.
    NotYet(String),
}

/// Look at the tip's oracle.
pub(super) async fn see(
    data: &Data,
    config: &Config,
    engine: Option<String>,
    settings: RepositorySettings,
    repo: &RepoName,
    effort: Effort,
) -> Result<Seen, AdminError> {
    let rooms = rooms(data, config, engine, settings)?;
    let looked = match effort {
        Effort::Recall => pipeline::known(&rooms, repo).await,
        Effort::Run => match data.serve() {
            Ok(free) => {
                drop(free);
                let cancel = CancellationToken::new();
                pipeline::look_now(&rooms, repo, &cancel).await.map(Some)
            }
            Err(AdminError::Serving(_)) => match by_the_server(&rooms.store, repo).await? {
                Wish::Granted => pipeline::known(&rooms, repo).await,
                Wish::Failed(why) => return Ok(Seen::NotYet(why)),
                Wish::None | Wish::Wanted => {
                    let why = "the server is busy with scores and does it as soon as it is not";
                    return Ok(Seen::NotYet(why.to_owned()));
                }
            },
            Err(error) => return Err(error),
        },
    };
    Ok(match looked {
        Ok(Some(look)) => Seen::Look(Box::new(look)),
        Ok(None) => Seen::NotYet("`tribunal-server repo sync` does it".to_owned()),
        Err(NoVerdict::Refused(refused)) => Seen::NotYet(refused.to_string()),
        Err(NoVerdict::Aborted(aborted)) => Seen::NotYet(aborted.to_string()),
    })
}

/// A server that serves this data does it, when its scores leave it the time.
async fn by_the_server(store: &Arc<dyn Store>, repo: &RepoName) -> Result<Wish, AdminError> {
    pipeline::ask(store, repo).await?;
    let until = Instant::now() + PATIENCE;
    loop {
        let wish = pipeline::wish(store, repo).await?;
        if wish != Wish::Wanted || Instant::now() > until {
            return Ok(wish);
        }
        tokio::time::sleep(EVERY).await;
    }
}

fn rooms(
    data: &Data,
    config: &Config,
    engine: Option<String>,
    settings: RepositorySettings,
) -> Result<Rooms, AdminError> {
    let store: Arc<dyn Store> = Arc::new(data.store()?);
    let sandbox = crate::serve::sandbox(data, engine, 0, &store, crate::metrics::nobody())?;
    let repository = Arc::new(data.repository(settings)?);
    crate::serve::rooms(data, config, &store, &repository, &sandbox)
}

impl Seen {
    /// For a person, one line each.
    pub(super) fn lines(&self) -> Vec<String> {
        let look = match self {
            Self::Look(look) => look,
            Self::NotYet(why) => return vec![format!("the oracle was not looked at: {why}")],
        };
        let mut lines = Vec::new();
        if !look.red.is_empty() {
            let count = look.red.len();
            lines.push(format!(
                "base itself fails {count} sealed cases: {}",
                names(&look.red)
            ));
        }
        for (file, cases) in &look.need_shared {
            let file = shown(file.as_str(), 200);
            lines.push(format!(
                "{file} needs `shared`, and is red until the policy lists it (`tribunal modes --write`): {}",
                names(cases)
            ));
        }
        lines.push(match look.null {
            NullProduct::Noticed => {
                "the oracle is alive: it notices when src does nothing".to_owned()
            }
            NullProduct::Unnoticed => {
                "oracle-dead: no sealed case notices when src does nothing, so no score can pass"
                    .to_owned()
            }
            NullProduct::Untold => {
                "whether the oracle is alive cannot be told: src has no function, or base passes no sealed case"
                    .to_owned()
            }
        });
        match &look.mutants {
            None => lines.push("no changes were planted yet".to_owned()),
            Some(mutants) if mutants.run == 0 => {}
            Some(mutants) => {
                lines.push(mutants.sentence());
                lines.extend(
                    mutants
                        .unnoticed
                        .iter()
                        .map(|change| format!("  {}", place(change))),
                );
            }
        }
        lines
    }

    /// The one line that `doctor` shows, with whether it is good.
    pub(super) fn summary(&self) -> (Health, String) {
        let look = match self {
            Self::Look(look) => look,
            Self::NotYet(why) => {
                return (Health::Note, format!("the oracle was not looked at: {why}"));
            }
        };
        let mut parts = Vec::new();
        let mut health = Health::Good;
        match look.null {
            NullProduct::Noticed => parts.push("the oracle is alive".to_owned()),
            NullProduct::Untold => {
                health = Health::Note;
                parts.push("whether the oracle is alive cannot be told".to_owned());
            }
            NullProduct::Unnoticed => {
                health = Health::Bad;
                parts.push(
                    "oracle-dead: no score can pass; add cases that depend on src".to_owned(),
                );
            }
        }
        match &look.mutants {
            Some(mutants) if mutants.run > 0 => parts.push(mutants.sentence()),
            Some(_) => {}
            None => parts.push("no changes were planted yet".to_owned()),
        }
        if !look.need_shared.is_empty() {
            health = health.max(Health::Note);
            let files: Vec<String> = look.need_shared.keys().map(ToString::to_string).collect();
            parts.push(format!("needs-shared: {}", shown(&files.join(", "), 300)));
        }
        if !look.red.is_empty() {
            health = health.max(Health::Note);
            parts.push(format!("{} sealed cases are red on base", look.red.len()));
        }
        (health, parts.join("; "))
    }

    /// For a program.
    pub(super) fn json(&self) -> Value {
        let look = match self {
            Self::Look(look) => look,
            Self::NotYet(why) => return json!({ "state": "unknown", "why": why }),
        };
        json!({
            "state": match look.null {
                NullProduct::Noticed => "alive",
                NullProduct::Unnoticed => "dead",
                NullProduct::Untold => "untold",
            },
            "commit": look.commit,
            "red_on_base": look.red,
            "need_shared": look.need_shared,
            "planted": look.mutants,
        })
    }
}

/// How good that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Health {
    Good,
    Note,
    Bad,
}

fn names(nodes: &[NodeId]) -> String {
    let mut names: Vec<String> = nodes
        .iter()
        .take(NAMES)
        .map(|node| shown(node.as_str(), 200))
        .collect();
    if nodes.len() > NAMES {
        names.push(format!("and {} more", nodes.len() - NAMES));
    }
    names.join(", ")
}

/// Its texts were escaped when they came in.
fn place(change: &PlantedChange) -> String {
    format!(
        "{}:{} in {}: {}",
        change.path, change.line, change.function, change.what
    )
}

//! Ends of scores into messages outside: signed webhooks, and one commit status a verdict.
//!
//! A message is owed from the write on that ends its score, and waits in the store until it was heard or is given up, so a
//! restart loses none. Whom to tell stands in the operator's configuration alone; what is said is ids, codes and words of
//! this program. Never follows a redirect, never shows a token, never makes a score wait.

mod compose;
mod endpoint;
mod post;
mod secret;
mod target;
#[cfg(test)]
mod tests;

pub use endpoint::{Endpoint, NoEndpoint};
pub use target::{Api, NoProject, Notify, Project, StatusTarget, Webhook};

use crate::clock;
use crate::config::{Config, SecretFile};
use crate::metrics::{Happening, Observer, Told};
use crate::store::{self, Delivery, StateName, Store, StoreError};
use post::{Answer, Header, Post};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tribunal_core::id::UnixTime;
use zeroize::Zeroizing;

/// The store is looked into so often.
const EVERY: Duration = Duration::from_secs(1);
/// Ends taken at once, and messages of one target.
const MANY: u32 = 64;
/// No pause is longer.
const LONGEST: Duration = Duration::from_secs(3600);

/// Why something was not told.
#[derive(Debug, thiserror::Error)]
pub enum NotifyError {
    /// A secret's file.
    #[error("use {place}: {what}")]
    Secret {
        /// Where.
        place: SecretFile,
        /// Why not; nothing of its content.
        what: String,
    },
    /// Authorities.
    #[error("use {} as authorities: {what}", path.display())]
    Authorities {
        /// Where.
        path: PathBuf,
        /// Why not.
        what: String,
    },
    /// TLS.
    #[error("set up TLS: {0}")]
    Tls(String),
    /// A key that no hash takes.
    #[error("sign a webhook")]
    Key,
    /// Nobody answered.
    #[error("reach {0}")]
    Unheard(String),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What became of one try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    /// It was taken.
    Yes,
    /// It never will be.
    Never,
    /// Perhaps later.
    Later(Ill),
}

/// What is not as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ill {
    /// This message: its commit is not there yet, its token is wrong. Others may fare better.
    Message,
    /// The target: it wants no message before this has passed.
    Target(Duration),
}

/// Targets that are left alone, and until when.
type Quiet = BTreeMap<String, UnixTime>;

/// Look at what files say, as `check-config` does.
///
/// # Errors
/// The first that does not hold.
pub fn check(notify: &Notify) -> Result<(), NotifyError> {
    if notify.ca.is_some() {
        Post::new(notify.ca.as_deref())?;
    }
    for hook in &notify.webhooks {
        secret::Key::read(&hook.secret)?;
    }
    for target in &notify.statuses {
        secret::token(&target.token)?;
    }
    Ok(())
}

/// Tells. One at a time in a server.
pub struct Notifier {
    /// What is owed.
    pub store: Arc<dyn Store>,
    /// Whom to tell.
    pub held: watch::Receiver<Config>,
    /// Who counts.
    pub observer: Arc<dyn Observer>,
}

impl Notifier {
    /// Until it is dropped. What was under way then is told again, under the same name.
    pub async fn run(self) {
        let mut quiet = Quiet::new();
        loop {
            if let Err(error) = self.round(&mut quiet).await {
                tracing::warn!(%error, "messages could not be told");
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    async fn round(&self, quiet: &mut Quiet) -> Result<(), NotifyError> {
        let notify = self.held.borrow().notify.clone();
        self.compose(&notify).await?;
        let now = clock::now();
        let mut due = store::off(&self.store, move |s| s.due(now, MANY)).await?;
        quiet.retain(|_, until| *until > now);
        due.retain(|delivery| !quiet.contains_key(&delivery.message.target));
        if due.is_empty() {
            return Ok(());
        }
        let post = Post::new(notify.ca.as_deref())?;
        let mut targets: BTreeMap<String, Vec<Delivery>> = BTreeMap::new();
        for delivery in due {
            let own = targets.entry(delivery.message.target.clone()).or_default();
            own.push(delivery);
        }
        // One that does not answer holds up nobody else.
        let all = targets.values().map(|own| self.tell(&notify, &post, own));
        let told = futures::future::try_join_all(all).await?;
        let ill = targets.into_keys().zip(told);
        quiet.extend(ill.filter_map(|(target, until)| Some((target, until?))));
        Ok(())
    }

    /// From starts and ends to messages.
    async fn compose(&self, notify: &Notify) -> Result<(), NotifyError> {
        loop {
            let untold = store::off(&self.store, |s| s.untold(MANY)).await?;
            for record in &untold {
                let messages = compose::messages(record, notify);
                let (id, state) = (record.asked.id.clone(), record.state.name());
                let now = clock::now();
                let told = store::off(&self.store, move |s| s.tell(&id, state, now, &messages));
                match told.await {
                    // It ended meanwhile: its end is told next time.
                    Err(StoreError::Missing(_)) if state == StateName::Running => {}
                    told => told?,
                }
            }
            if untold.len() < MANY as usize {
                return Ok(());
            }
        }
    }

    /// What waits for one target, oldest first, until the target itself is ill; until when it is to be left alone then.
    async fn tell(
        &self,
        notify: &Notify,
        post: &Post,
        own: &[Delivery],
    ) -> Result<Option<UnixTime>, NotifyError> {
        for delivery in own {
            let heard = self.try_once(notify, post, delivery).await;
            let (number, age) = (delivery.number, clock::now().0 - delivery.created.0);
            let given_up = u64::try_from(age).unwrap_or(0) >= notify.give_up.as_secs();
            match heard {
                Heard::Later(ill) if !given_up => {
                    self.observer.note(Happening::Told(Told::Later));
                    let least = match ill {
                        Ill::Message => Duration::ZERO,
                        Ill::Target(least) => least,
                    };
                    let pause = pause(notify.retry, delivery.tries, jitter()).max(least);
                    let due = UnixTime(clock::now().0.saturating_add(seconds(pause)));
                    store::off(&self.store, move |s| s.put_off(number, due)).await?;
                    if let Ill::Target(_) = ill {
                        return Ok(Some(due));
                    }
                }
                Heard::Yes | Heard::Never | Heard::Later(_) => {
                    let told = match heard {
                        Heard::Yes => Told::Heard,
                        Heard::Never | Heard::Later(_) => Told::GivenUp,
                    };
                    if told == Told::GivenUp {
                        let (id, target) = (&delivery.message.id, &delivery.message.target);
                        tracing::warn!(id, target, "a message was given up");
                    }
                    self.observer.note(Happening::Told(told));
                    store::off(&self.store, move |s| s.over(number)).await?;
                }
            }
        }
        Ok(None)
    }

    async fn try_once(&self, notify: &Notify, post: &Post, delivery: &Delivery) -> Heard {
        let (id, target) = (&delivery.message.id, &delivery.message.target);
        match self.send(notify, post, delivery).await {
            None => Heard::Never,
            Some(Ok(answer)) => {
                let heard = heard(answer, delivery.message.subject.is_some());
                if heard != Heard::Yes {
                    tracing::warn!(
                        id,
                        target,
                        status = answer.status,
                        "a message was not taken"
                    );
                }
                heard
            }
            Some(Err(error)) => {
                tracing::warn!(id, target, %error, "a message was not heard");
                Heard::Later(Ill::Target(Duration::ZERO))
            }
        }
    }

    /// `None`: the configuration does not know this target any more.
    async fn send(
        &self,
        notify: &Notify,
        post: &Post,
        delivery: &Delivery,
    ) -> Option<Result<Answer, NotifyError>> {
        let message = &delivery.message;
        let hook = notify.webhooks.iter().find(|h| h.key() == message.target);
        if let Some(hook) = hook {
            let headers = match signed(hook, delivery, clock::now()) {
                Ok(headers) => headers,
                Err(error) => return Some(Err(error)),
            };
            return Some(post.send(&hook.url, &headers, &message.body).await);
        }
        let target = notify.statuses.iter().find(|t| t.key() == message.target)?;
        let head = message.subject.as_deref()?.split(' ').next()?;
        let headers = match authorized(target) {
            Ok(headers) => headers,
            Err(error) => return Some(Err(error)),
        };
        Some(
            post.send(&place(target, head), &headers, &message.body)
                .await,
        )
    }
}

fn signed(hook: &Webhook, delivery: &Delivery, now: UnixTime) -> Result<Vec<Header>, NotifyError> {
    let message = &delivery.message;
    let signature = secret::Key::read(&hook.secret)?.sign(&message.id, now.0, &message.body)?;
    Ok(vec![
        ("webhook-id", Zeroizing::new(message.id.clone())),
        ("webhook-timestamp", Zeroizing::new(now.0.to_string())),
        ("webhook-signature", Zeroizing::new(signature)),
    ])
}

fn authorized(target: &StatusTarget) -> Result<Vec<Header>, NotifyError> {
    let token = secret::token(&target.token)?;
    let plain = |text: &str| Zeroizing::new(text.to_owned());
    Ok(match target.api {
        Api::GitHub => vec![
            (
                "authorization",
                Zeroizing::new(format!("Bearer {}", *token)),
            ),
            ("accept", plain("application/vnd.github+json")),
            ("x-github-api-version", plain("2022-11-28")),
        ],
        Api::GitLab => vec![("private-token", token)],
        Api::Gitea => vec![
            ("authorization", Zeroizing::new(format!("token {}", *token))),
            ("accept", plain("application/json")),
        ],
    })
}

fn place(target: &StatusTarget, head: &str) -> Endpoint {
    let project = target.project.to_string();
    target.url.below(&match target.api {
        Api::GitHub => format!("/repos/{project}/statuses/{head}"),
        Api::GitLab => {
            let project = project.replace('/', "%2F");
            format!("/api/v4/projects/{project}/statuses/{head}")
        }
        Api::Gitea => format!("/api/v1/repos/{project}/statuses/{head}"),
    })
}

/// What an answer means. A redirect is not followed: it is an answer that may be another one once somebody mended it.
fn heard(answer: Answer, is_status: bool) -> Heard {
    match answer.status {
        200..=299 => Heard::Yes,
        410 => Heard::Never,
        // GitLab: the commit has that very state already.
        400 | 409 if is_status => Heard::Never,
        // Not there yet: who scores before pushing is told by a later try.
        404 | 422 if is_status => Heard::Later(Ill::Message),
        _ => Heard::Later(Ill::Target(
            answer.retry_after.unwrap_or_default().min(LONGEST),
        )),
    }
}

/// Twice as long after each try, up to a limit; between half of that and all of it.
fn pause(first: Duration, tries: u32, jitter: f64) -> Duration {
    let doubled = first.saturating_mul(2_u32.saturating_pow(tries));
    doubled
        .min(LONGEST)
        .mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0)
}

fn jitter() -> f64 {
    getrandom::u32().map_or(1.0, |drawn| f64::from(drawn) / f64::from(u32::MAX))
}

/// Whole ones, at least one: dates in the store are.
fn seconds(pause: Duration) -> i64 {
    i64::try_from(pause.as_millis().div_ceil(1000).max(1)).unwrap_or(i64::MAX)
}

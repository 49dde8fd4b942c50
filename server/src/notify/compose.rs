//! A score that runs or has ended into what is said of it. Ids, codes and words of this program; nothing that a candidate wrote.

use super::target::{Api, Notify};
use crate::store::{Message, ScoreRecord, ScoreState, StateName, Words};
use serde_json::{Value, json};
use tribunal_core::id::Digest;
use tribunal_core::judge::{VerdictKind, Word};
use tribunal_core::plan::ChangeSet;
use tribunal_core::text::shown;

/// Characters of a status' description that every interface takes.
const DESCRIPTION: usize = 140;
/// Digits of a commit that are shown.
const SHORT: usize = 12;

/// Everything that is to be said of this start or end, to whom it is to be said.
pub(super) fn messages(record: &ScoreRecord, notify: &Notify) -> Vec<Message> {
    let mut messages = Vec::new();
    for hook in &notify.webhooks {
        if hook.wants(&record.asked.repository)
            && let Some(body) = told(record)
        {
            messages.push(message(record, hook.key(), None, &body));
        }
    }
    for target in &notify.statuses {
        // A verdict against an older base says nothing about merging now, and who asks may choose it.
        if target.repository != record.asked.repository
            || record.asked.base != record.asked.base_tip
        {
            continue;
        }
        for (kind, says) in verdicts(record) {
            let context = format!("tribunal/{}", kind.file_stem());
            let subject = format!("{} {context}", record.asked.head);
            let body = status(target.api, record, &context, says);
            messages.push(message(record, target.key(), Some(subject), &body));
        }
    }
    messages
}

/// The name of a message is a function of what it says to whom: the same after a crash.
fn message(record: &ScoreRecord, target: String, subject: Option<String>, body: &Value) -> Message {
    let mut parts = vec![
        record.asked.id.as_str(),
        &target,
        subject.as_deref().unwrap_or_default(),
    ];
    if record.state.name() == StateName::Running {
        parts.push("begun");
    }
    let digest = Digest::of(parts.join("\0").as_bytes());
    let hex = digest.as_str().rsplit(':').next().unwrap_or_default();
    let hex: String = hex.chars().take(32).collect();
    Message {
        id: format!("msg_{hex}"),
        target,
        subject,
        body: body.to_string(),
    }
}

fn told(record: &ScoreRecord) -> Option<Value> {
    let asked = &record.asked;
    let (kind, verdicts, abort) = match &record.state {
        ScoreState::Queued | ScoreState::Running => return None,
        ScoreState::Completed(words) => ("score.completed", Some(words), None),
        ScoreState::Aborted(aborted) => ("score.aborted", None, Some(aborted.code.code())),
    };
    Some(json!({
        "type": kind,
        "timestamp": record.ended.map(tribunal_core::id::UnixTime::rfc3339),
        "data": {
            "score": format!("repositories/{}/scores/{}", asked.repository, asked.id),
            "repository": asked.repository.as_str(),
            "head": asked.head.as_str(),
            "base": asked.base.as_str(),
            "base_tip": asked.base_tip.as_str(),
            "change_set": match asked.change_set {
                ChangeSet::Agent => "agent",
                ChangeSet::Human => "human",
            },
            "verdicts": verdicts,
            "abort": abort,
        },
    }))
}

/// What a status says.
enum Says {
    Begun,
    Word(Word),
    Nothing(&'static str),
}

fn verdicts(record: &ScoreRecord) -> Vec<(VerdictKind, Says)> {
    match &record.state {
        ScoreState::Queued => Vec::new(),
        ScoreState::Running => VerdictKind::ALL
            .into_iter()
            .map(|kind| (kind, Says::Begun))
            .collect(),
        ScoreState::Completed(words) => VerdictKind::ALL
            .into_iter()
            .map(|kind| (kind, Says::Word(word(kind, *words))))
            .collect(),
        ScoreState::Aborted(aborted) => VerdictKind::ALL
            .into_iter()
            .map(|kind| (kind, Says::Nothing(aborted.code.code())))
            .collect(),
    }
}

const fn word(kind: VerdictKind, words: Words) -> Word {
    match kind {
        VerdictKind::SrcScore => words.src_score,
        VerdictKind::OracleIntegrity => words.oracle_integrity,
        VerdictKind::FlakeLease => words.flake_lease,
    }
}

fn status(api: Api, record: &ScoreRecord, context: &str, says: Says) -> Value {
    let base: String = record.asked.base.as_str().chars().take(SHORT).collect();
    let (state, description) = match says {
        Says::Begun => (
            State::Open,
            format!("runs against {base}, score {}", record.asked.id),
        ),
        Says::Word(word) => {
            let state = match word {
                Word::Pass => State::Good,
                Word::Fail | Word::NotRun => State::Bad,
            };
            (
                state,
                format!("{word} against {base}, score {}", record.asked.id),
            )
        }
        Says::Nothing(code) => (State::Unknown, format!("no verdict ({code}); ask again")),
    };
    let description = shown(&description, DESCRIPTION);
    match api {
        Api::GitHub | Api::Gitea => json!({
            "state": match state {
                State::Open => "pending",
                State::Good => "success",
                State::Bad => "failure",
                State::Unknown => "error",
            },
            "context": context,
            "description": description,
        }),
        Api::GitLab => json!({
            "state": match state {
                State::Open => "running",
                State::Good => "success",
                State::Bad => "failed",
                State::Unknown => "canceled",
            },
            "name": context,
            "description": description,
        }),
    }
}

/// What all interfaces can say.
#[derive(Clone, Copy)]
enum State {
    Open,
    Good,
    Bad,
    Unknown,
}

//! Our values as messages. Only this room knows both.

use super::name;
use crate::store::{AttemptSource, EventKind, FlakyCase, ScoreRecord, ScoreState, StateName};
use crate::store::{StoredEvent, StoredFile, Words};
use prost_types::Timestamp;
use tribunal_core::id::{RepoName, UnixTime};
use tribunal_core::judge::{Moved, Source, Word, upper_bound_ppm};
use tribunal_core::keys::KeyRecord;
use tribunal_core::outcome::Lane;
use tribunal_core::plan::ChangeSet;
use tribunal_core::reason::Aborted;
use tribunal_core::request::Freshness;
use tribunal_proto::v1;
use v1::score_event::Kind;

pub(super) fn time(at: UnixTime) -> Timestamp {
    Timestamp {
        seconds: at.0,
        nanos: 0,
    }
}

/// `position` is where the score waits now, where it does.
pub(super) fn score(record: &ScoreRecord, position: Option<u32>) -> v1::Score {
    let asked = &record.asked;
    let (words, abort) = match &record.state {
        ScoreState::Completed(of) => (Some(words(of)), None),
        ScoreState::Aborted(aborted) => (None, Some(abort(aborted))),
        ScoreState::Queued | ScoreState::Running => (None, None),
    };
    v1::Score {
        name: name::score(&asked.repository, &asked.id),
        head: asked.head.to_string(),
        base: asked.base.to_string(),
        base_tip: asked.base_tip.to_string(),
        state: state(record.state.name()).into(),
        queue_position: match record.state {
            ScoreState::Queued => position.unwrap_or(0),
            ScoreState::Running | ScoreState::Completed(_) | ScoreState::Aborted(_) => 0,
        },
        words,
        abort,
        change_set: match asked.change_set {
            ChangeSet::Agent => v1::ChangeSet::Agent,
            ChangeSet::Human => v1::ChangeSet::Human,
        }
        .into(),
        request_id: asked.request_id.to_string(),
        creator: asked.token.to_string(),
        fresh: match asked.freshness {
            Freshness::Fresh => true,
            Freshness::Stored => false,
        },
        create_time: Some(time(asked.created)),
        start_time: record.started.map(time),
        end_time: record.ended.map(time),
    }
}

/// A mixed case of this repository.
pub(super) fn flaky(repository: &RepoName, case: &FlakyCase) -> v1::FlakyCase {
    let bound = upper_bound_ppm(case.failures, case.attempts);
    v1::FlakyCase {
        node_id: case.node.to_string(),
        case_digest: case.digest.clone(),
        lane: lane(case.lane).to_owned(),
        first_seen_time: Some(time(case.first)),
        last_seen_time: Some(time(case.last)),
        attempts: case.attempts,
        failures: case.failures,
        upper_bound: f64::from(bound) / 1e6,
        source: case.blame.source.map_or("", Source::name).to_owned(),
        moved: case.blame.moved.map_or("", Moved::name).to_owned(),
        owed: case.blame.owed.name().to_owned(),
        scores: case
            .scores
            .iter()
            .map(|id| name::score(repository, id))
            .collect(),
        score_count: case.score_count,
    }
}

const fn state(name: StateName) -> v1::ScoreState {
    match name {
        StateName::Queued => v1::ScoreState::Queued,
        StateName::Running => v1::ScoreState::Running,
        StateName::Completed => v1::ScoreState::Completed,
        StateName::Aborted => v1::ScoreState::Aborted,
    }
}

/// The state a caller filters by; unspecified is all.
pub(super) const fn state_filter(state: v1::ScoreState) -> Option<StateName> {
    match state {
        v1::ScoreState::Unspecified => None,
        v1::ScoreState::Queued => Some(StateName::Queued),
        v1::ScoreState::Running => Some(StateName::Running),
        v1::ScoreState::Completed => Some(StateName::Completed),
        v1::ScoreState::Aborted => Some(StateName::Aborted),
    }
}

fn words(words: &Words) -> v1::VerdictWords {
    v1::VerdictWords {
        src_score: word(words.src_score).into(),
        oracle_integrity: word(words.oracle_integrity).into(),
        flake_lease: word(words.flake_lease).into(),
    }
}

const fn word(word: Word) -> v1::VerdictWord {
    match word {
        Word::Pass => v1::VerdictWord::Pass,
        Word::Fail => v1::VerdictWord::Fail,
        Word::NotRun => v1::VerdictWord::NotRun,
    }
}

fn abort(aborted: &Aborted) -> v1::Abort {
    v1::Abort {
        code: aborted.code.code().to_owned(),
        message: aborted.message.clone(),
    }
}

pub(super) fn file(file: StoredFile) -> v1::VerdictFile {
    v1::VerdictFile {
        name: file.name,
        content: file.content,
    }
}

/// An event with the files that end it, where it is the end.
pub(super) fn event(stored: StoredEvent, files: Vec<StoredFile>) -> v1::ScoreEvent {
    let kind = match stored.kind {
        EventKind::Queued { position } => Kind::Queued(v1::ScoreQueued { position }),
        EventKind::Preparing { stage } => Kind::Preparing(v1::ScorePreparing { stage }),
        EventKind::AttemptStarted { lane, index, total } => {
            Kind::AttemptStarted(v1::AttemptStarted {
                lane: self::lane(lane).to_owned(),
                index,
                total,
            })
        }
        EventKind::CasesDone {
            lane,
            index,
            done,
            total,
        } => Kind::CasesDone(v1::CasesDone {
            lane: self::lane(lane).to_owned(),
            index,
            done,
            total,
        }),
        EventKind::AttemptEnded {
            lane,
            index,
            total,
            source,
        } => Kind::AttemptEnded(v1::AttemptEnded {
            lane: self::lane(lane).to_owned(),
            index,
            total,
            stored: match source {
                AttemptSource::Stored => true,
                AttemptSource::Run => false,
            },
        }),
        EventKind::Judged { words } => Kind::Judged(v1::ScoreJudged {
            words: Some(self::words(&words)),
        }),
        EventKind::Completed { words } => Kind::Completed(v1::ScoreCompleted {
            words: Some(self::words(&words)),
            files: files.into_iter().map(file).collect(),
        }),
        EventKind::Aborted { code, message } => Kind::Aborted(v1::Abort {
            code: code.code().to_owned(),
            message,
        }),
    };
    unstored(stored.sequence, stored.at, kind)
}

/// An event that is told and not kept.
pub(super) fn unstored(sequence: u64, at: UnixTime, kind: Kind) -> v1::ScoreEvent {
    v1::ScoreEvent {
        sequence,
        time: Some(time(at)),
        kind: Some(kind),
    }
}

const fn lane(lane: Lane) -> &'static str {
    match lane {
        Lane::Property => "property",
        Lane::HeldOut => "held-out",
        Lane::MustFail => "must-fail",
        Lane::Liveness => "liveness",
        Lane::LeaseSide => "lease-side",
        Lane::Merge => "merge",
        Lane::Proposed => "proposed",
        Lane::Perturbed => "perturbed",
        Lane::BaseCollection => "base-collection",
    }
}

pub(super) fn key(record: &KeyRecord, now: UnixTime) -> v1::Key {
    let state = match (record.revoked_since, record.valid_before) {
        (Some(_), _) => v1::KeyState::Revoked,
        (None, Some(retired)) if retired <= now => v1::KeyState::Retired,
        (None, Some(_) | None) => v1::KeyState::Active,
    };
    v1::Key {
        name: name::key(record.key.id()),
        key_id: record.key.id().to_string(),
        public_key_pem: record.key.to_pem(),
        allowed_signers_line: record.allowed_signers_line(),
        state: state.into(),
        create_time: record.valid_after.map(time),
        retire_time: record.valid_before.map(time),
        revoke_time: record.revoked_since.map(time),
    }
}

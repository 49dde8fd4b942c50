//! How far a score is, in one line and one number, out of its events.

use super::text;
use crate::store::{AttemptSource, EventKind, StoredEvent};
use serde::Serialize;
use tribunal_core::outcome::Lane;
use tribunal_core::text::shown;

/// How far it is, for whoever looks right now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Progress {
    /// In words.
    pub(super) line: String,
    /// Of `most`; both 0 where nothing can be counted.
    pub(super) done: u32,
    pub(super) most: u32,
    /// Attempts that have ended in the lane that was heard of last: several run side by side, and end in any order.
    #[serde(skip)]
    ended: (Option<Lane>, u32),
}

impl Progress {
    /// After these events, in order.
    pub(super) fn after(events: &[StoredEvent]) -> Self {
        let mut progress = Self::default();
        for event in events {
            progress.add(&event.kind);
        }
        progress
    }

    /// It waits there.
    pub(super) fn wait(&mut self, position: u32) {
        *self = Self::of(format!("waits, number {position} in the line"));
    }

    /// This happened, too.
    pub(super) fn add(&mut self, kind: &EventKind) {
        *self = match kind {
            EventKind::Queued { position } => {
                Self::of(format!("waits, number {position} in the line"))
            }
            EventKind::Preparing { stage } => Self::of(shown(stage, 200)),
            EventKind::AttemptStarted { lane, index, total } => {
                let ended = self.ended_in(*lane);
                Self {
                    done: ended,
                    most: *total,
                    line: attempt(text::lane(*lane), *index, *total, "begun"),
                    ended: (Some(*lane), ended),
                }
            }
            EventKind::CasesDone {
                lane,
                index,
                done,
                total,
            } => {
                let cases = match total {
                    0 => format!("{done} cases"),
                    total => format!("{done} of {total} cases"),
                };
                Self {
                    line: attempt(text::lane(*lane), *index, self.most, &cases),
                    ..self.clone()
                }
            }
            EventKind::AttemptEnded {
                lane,
                index,
                total,
                source,
            } => {
                let how = match source {
                    AttemptSource::Run => "ended",
                    AttemptSource::Stored => "taken from the store",
                };
                let ended = self.ended_in(*lane).saturating_add(1);
                Self {
                    line: attempt(text::lane(*lane), *index, *total, how),
                    done: ended,
                    most: *total,
                    ended: (Some(*lane), ended),
                }
            }
            EventKind::Judged { .. } => Self::of("judged; being signed".to_owned()),
            EventKind::Completed { .. } => Self::of("completed".to_owned()),
            EventKind::Aborted { code, .. } => Self::of(format!("aborted: {}", code.code())),
        };
    }

    fn ended_in(&self, lane: Lane) -> u32 {
        match self.ended {
            (Some(known), ended) if known == lane => ended,
            (Some(_) | None, _) => 0,
        }
    }

    fn of(line: String) -> Self {
        Self {
            line,
            ..Self::default()
        }
    }
}

fn attempt(lane: &str, index: u32, total: u32, how: &str) -> String {
    let number = index.saturating_add(1);
    if total == 0 {
        format!("{lane}: attempt {number}: {how}")
    } else {
        format!("{lane}: attempt {number} of {total}: {how}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_thing_that_happened_is_told() {
        let mut progress = Progress::default();
        let lane = Lane::Property;
        for (kind, line, counted) in [
            (
                EventKind::Queued { position: 2 },
                "waits, number 2 in the line",
                (0, 0),
            ),
            (
                EventKind::AttemptStarted {
                    lane,
                    index: 2,
                    total: 7,
                },
                "property lane: attempt 3 of 7: begun",
                (0, 7),
            ),
            (
                EventKind::CasesDone {
                    lane,
                    index: 2,
                    done: 40,
                    total: 120,
                },
                "property lane: attempt 3 of 7: 40 of 120 cases",
                (0, 7),
            ),
            (
                EventKind::AttemptEnded {
                    lane,
                    index: 2,
                    total: 7,
                    source: AttemptSource::Run,
                },
                "property lane: attempt 3 of 7: ended",
                (1, 7),
            ),
            (
                EventKind::AttemptEnded {
                    lane,
                    index: 0,
                    total: 7,
                    source: AttemptSource::Stored,
                },
                "property lane: attempt 1 of 7: taken from the store",
                (2, 7),
            ),
            (
                EventKind::AttemptStarted {
                    lane: Lane::Merge,
                    index: 0,
                    total: 3,
                },
                "merge lane: attempt 1 of 3: begun",
                (0, 3),
            ),
            (
                EventKind::Preparing {
                    stage: "a\u{1b}b".to_owned(),
                },
                "a\\u{1b}b",
                (0, 0),
            ),
        ] {
            progress.add(&kind);
            assert_eq!(progress.line, line);
            assert_eq!((progress.done, progress.most), counted, "{line}");
        }
    }
}

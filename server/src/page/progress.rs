//! How far a score is, in one line and one number, out of its events.

use super::text;
use crate::store::{AttemptSource, EventKind, StoredEvent};
use serde::Serialize;
use tribunal_core::text::shown;

/// How far it is, for whoever looks right now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Progress {
    /// In words.
    pub(super) line: String,
    /// Of `most`; both 0 where nothing can be counted.
    pub(super) done: u32,
    pub(super) most: u32,
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
            EventKind::AttemptStarted { lane, index, total } => Self {
                done: *index,
                most: *total,
                line: attempt(text::lane(*lane), *index, *total, "begun"),
            },
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
                    done: self.done,
                    most: self.most,
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
                Self {
                    line: attempt(text::lane(*lane), *index, *total, how),
                    done: index.saturating_add(1),
                    most: *total,
                }
            }
            EventKind::Judged { .. } => Self::of("judged; being signed".to_owned()),
            EventKind::Completed { .. } => Self::of("completed".to_owned()),
            EventKind::Aborted { code, .. } => Self::of(format!("aborted: {}", code.code())),
        };
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
    use tribunal_core::outcome::Lane;

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
                (2, 7),
            ),
            (
                EventKind::CasesDone {
                    lane,
                    index: 2,
                    done: 40,
                    total: 120,
                },
                "property lane: attempt 3 of 7: 40 of 120 cases",
                (2, 7),
            ),
            (
                EventKind::AttemptEnded {
                    lane,
                    index: 2,
                    total: 7,
                    source: AttemptSource::Run,
                },
                "property lane: attempt 3 of 7: ended",
                (3, 7),
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

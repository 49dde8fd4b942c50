//! Small pieces of pages: candidates' texts, words of verdicts, times, ids.
//!
//! What somebody outside wrote goes through [`said`], [`sentence`] or [`block`], and no other way: capped, control and direction
//! characters made visible, escaped, and kept from turning the text around it.

use crate::store::{StateName, Words};
use maud::{Markup, html};
use tribunal_core::id::UnixTime;
use tribunal_core::judge::Word;
use tribunal_core::outcome::Lane;
use tribunal_core::text::{shown, shown_block};

/// Longest single line.
const LINE: usize = 400;
/// Longest block.
const BLOCK: usize = 8000;

/// One line of somebody else's.
pub(super) fn said(text: &str) -> Markup {
    html! { bdi.said { (shown(text, LINE)) } }
}

/// A sentence that may hold somebody else's names.
pub(super) fn sentence(text: &str) -> Markup {
    html! { bdi.sentence { (shown(text, LINE)) } }
}

/// Several lines of somebody else's.
pub(super) fn block(text: &str, label: &str) -> Markup {
    html! { pre.said role="region" aria-label=(label) tabindex="0" { (shown_block(text.trim_end(), BLOCK)) } }
}

/// An id by its first digits, whole for whoever points at it.
pub(super) fn short(id: &str) -> Markup {
    let digits: String = id.chars().take(12).collect();
    html! { code title=(shown(id, 80)) { (digits) } }
}

/// A verdict's word; its colour never stands alone.
pub(super) fn word(word: Word) -> Markup {
    let class = match word {
        Word::Pass => "word pass",
        Word::Fail => "word fail",
        Word::NotRun => "word not-run",
    };
    html! { span class=(class) { (word) } }
}

/// A state's word.
pub(super) fn state(state: StateName) -> Markup {
    let (class, name) = match state {
        StateName::Queued => ("word queued", "QUEUED"),
        StateName::Running => ("word running", "RUNNING"),
        StateName::Completed => ("word completed", "COMPLETED"),
        StateName::Aborted => ("word aborted", "ABORTED"),
    };
    html! { span class=(class) { (name) } }
}

/// What the three words come to; the join itself checks signatures as well.
pub(super) fn merge(words: &Words) -> Markup {
    let all = [words.src_score, words.oracle_integrity, words.flake_lease];
    if all.iter().all(|word| *word == Word::Pass) {
        html! { span.word.pass { "MERGE_OK" } }
    } else {
        html! { span.word.fail { "MERGE_BLOCKED" } }
    }
}

/// A moment.
pub(super) fn time(at: UnixTime) -> Markup {
    let text = at.rfc3339();
    let plain = text.replace('T', " ").replace('Z', " UTC");
    html! { time datetime=(text) { (plain) } }
}

/// How long before `now`, roughly.
pub(super) fn ago(at: UnixTime, now: UnixTime) -> String {
    match now.0 - at.0 {
        seconds @ ..=59 => format!("{} s ago", seconds.max(0)),
        seconds @ 60..=3599 => format!("{} min ago", seconds / 60),
        seconds @ 3600..=86_399 => format!("{} h ago", seconds / 3600),
        seconds => format!("{} d ago", seconds / 86_400),
    }
}

/// How long from one moment to another, for people.
pub(super) fn lasted(from: UnixTime, to: UnixTime) -> String {
    span(to.0 - from.0)
}

/// Seconds for people, the two largest units.
pub(super) fn span(seconds: i64) -> String {
    match seconds.max(0) {
        s @ ..=59 => format!("{s} s"),
        s @ 60..=3599 => format!("{} min {} s", s / 60, s % 60),
        s @ 3600..=86_399 => format!("{} h {} min", s / 3600, s % 3600 / 60),
        s => format!("{} d {} h", s / 86_400, s % 86_400 / 3600),
    }
}

/// Milliseconds for people.
pub(super) fn millis(ms: u64) -> String {
    match ms {
        ms @ ..=9_999 => format!("{ms} ms"),
        ms => span(i64::try_from(ms / 1000).unwrap_or(i64::MAX)),
    }
}

/// A bound on a failure rate.
pub(super) fn percent(rate: f64) -> String {
    format!("{:.1} %", rate * 100.0)
}

/// A lane's name.
pub(super) const fn lane(lane: Lane) -> &'static str {
    match lane {
        Lane::Property => "property lane",
        Lane::HeldOut => "held-out draws",
        Lane::MustFail => "failures at the ends of tests",
        Lane::Liveness => "null product",
        Lane::LeaseSide => "leased cases without their marks",
        Lane::Merge => "merge lane",
        Lane::Proposed => "proposed tests",
        Lane::Perturbed => "mixed cases under changed pins",
        Lane::BaseCollection => "base's own run",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_candidate_wrote_is_text_and_stays_in_its_place() {
        let hostile = "<script>alert(1)</script>\u{202e}\u{1b}[31m\"'&";
        let shown = said(hostile).into_string();
        assert_eq!(
            shown,
            "<bdi class=\"said\">&lt;script&gt;alert(1)&lt;/script&gt;\\u{202e}\\u{1b}[31m&quot;'&amp;</bdi>"
        );
        let block = block(&format!("a\n{hostile}"), "x").into_string();
        assert!(block.contains(">a\n&lt;script&gt;") && !block.contains("<script"));
    }

    #[test]
    fn spans_read_as_people_say_them() {
        for (seconds, text) in [
            (-5, "0 s"),
            (59, "59 s"),
            (61, "1 min 1 s"),
            (7260, "2 h 1 min"),
            (200_000, "2 d 7 h"),
        ] {
            assert_eq!(span(seconds), text);
        }
        assert_eq!(ago(UnixTime(100), UnixTime(160)), "1 min ago");
        assert_eq!(millis(900), "900 ms");
        assert_eq!(millis(61_000), "1 min 1 s");
    }
}

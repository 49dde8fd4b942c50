#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use super::*;
use std::collections::BTreeSet;
use tribunal_core::judge::Word;

fn words(src_score: Word) -> Words {
    Words {
        src_score,
        oracle_integrity: Word::Pass,
        flake_lease: Word::Pass,
    }
}

fn seven() -> Gauges {
    Gauges {
        waiting: Box::new(|| 7),
        running: Box::new(|| 7),
        ready_rooms: Box::new(|| 7),
        messages: Box::new(|| 7),
    }
}

#[test]
fn what_happened_is_what_is_counted() {
    let exporter = Exporter::new();
    exporter.watch(seven());
    let timings = Timings {
        prepare_ms: 300,
        total_ms: 4000,
        ..Timings::default()
    };
    for happening in [
        Happening::ScoreStarted {
            waited: Duration::from_millis(700),
        },
        Happening::ScoreCompleted {
            words: words(Word::Pass),
            timings: &timings,
        },
        Happening::ScoreCompleted {
            words: words(Word::Fail),
            timings: &timings,
        },
        Happening::ScoreAborted(AbortedCode::EngineUnavailable),
        Happening::ScoreRefused(RefusedCode::Quota),
        Happening::BaseWanted(Source::Stored),
        Happening::Attempts {
            from: Source::Run,
            count: 8,
        },
        Happening::HeldOutFailures(2),
        Happening::RoomEntered(Room::Ready),
        Happening::RunFailed(AbortedCode::Deadline),
        Happening::Uploaded { bytes: 2048 },
        Happening::UploadFailed,
        Happening::Told(Told::Later),
    ] {
        exporter.note(happening);
    }
    let text = exporter.text().unwrap();
    for line in [
        "tribunal_queue_wait_seconds_count 1",
        "tribunal_scores_total{outcome=\"merge-ok\"} 1",
        "tribunal_scores_total{outcome=\"merge-blocked\"} 1",
        "tribunal_scores_total{outcome=\"aborted\"} 1",
        "tribunal_verdicts_total{kind=\"src_score\",word=\"FAIL\"} 1",
        "tribunal_verdicts_total{kind=\"flake_lease\",word=\"PASS\"} 2",
        "tribunal_verdicts_total{kind=\"flake_lease\",word=\"FAIL\"} 0",
        "tribunal_scores_aborted_total{code=\"engine-unavailable\"} 1",
        "tribunal_scores_refused_total{code=\"quota\"} 1",
        "tribunal_base_runs_total{from=\"stored\"} 1",
        "tribunal_attempts_total{from=\"run\"} 8",
        "tribunal_held_out_failures_total 2",
        "tribunal_rooms_entered_total{room=\"ready\"} 1",
        "tribunal_run_failures_total{code=\"deadline\"} 1",
        "tribunal_upload_size_bytes_sum 2048.0",
        "tribunal_uploads_total{outcome=\"failed\"} 1",
        "tribunal_stage_duration_seconds_count{stage=\"total\"} 2",
        "tribunal_stage_duration_seconds_count{stage=\"held-out\"} 0",
        "tribunal_messages_total{outcome=\"later\"} 1",
        "tribunal_messages_waiting 7",
        "tribunal_queue_waiting 7",
        "# EOF",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}\n{text}");
    }
}

/// Names that stand in a text, histograms' own endings taken off.
fn named(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("tribunal_"))
        .map(|word| word.trim_end_matches("_bucket").to_owned())
        .map(|word| {
            let bare = word.trim_end_matches("_count").trim_end_matches("_sum");
            bare.to_owned()
        })
        .collect()
}

#[test]
fn the_dashboard_and_the_docs_name_only_what_is_exported() {
    let exporter = Exporter::new();
    exporter.watch(seven());
    let exported = named(&exporter.text().unwrap());
    let dashboard = include_str!("../../../deploy/grafana/tribunal.json");
    let parsed: serde_json::Value = serde_json::from_str(dashboard).unwrap();
    assert!(!parsed["panels"].as_array().unwrap().is_empty());
    let docs = include_str!("../../../docs/OPERATIONS.md");
    let table = docs
        .split("\n## ")
        .find(|s| s.starts_with("Metrics"))
        .unwrap();
    for (place, text) in [("dashboard", dashboard), ("OPERATIONS", table)] {
        let named: BTreeSet<String> = named(text);
        let missing: Vec<_> = named.difference(&exported).collect();
        assert!(missing.is_empty(), "the {place} names {missing:?}");
        assert!(named.len() > 10, "{place}: {named:?}");
    }
}

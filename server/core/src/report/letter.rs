//! Outcomes as single letters, for whoever shows many of them side by side. The word is what counts; it stands beside them.

/// One for each of the everyday words; what ended otherwise is told by the legend.
#[must_use]
pub fn letter(outcome: &str) -> char {
    match outcome {
        "passed" => 'P',
        "failed" => 'F',
        "error" => 'E',
        "skipped" => 'S',
        "xfailed" | "xpassed" => 'X',
        "missing-case" | "missing" => 'M',
        _ => '!',
    }
}

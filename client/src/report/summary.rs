//! A join as Markdown, for the page that a CI job shows: the line, the three words, and what to do.
//!
//! What a candidate wrote stands in code blocks alone, which nothing in it can end.

use std::fmt::Write as _;
use tribunal_core::join::{Join, Known};
use tribunal_core::judge::{VerdictKind, Word};
use tribunal_core::text::shown;
use tribunal_core::verify::CheckResult;

/// Longest line of a check.
const LINE: usize = 300;

/// The page; `fixes` are a report's, and empty where there is none.
#[must_use]
pub fn summary(join: &Join, fixes: &str) -> String {
    let mut page = String::new();
    let title = join.decision().word();
    let _infallible = write!(
        page,
        "### Tribunal: {title}\n\n| verdict | word |\n| --- | --- |\n"
    );
    for (kind, word) in VerdictKind::ALL.iter().zip(join.words()) {
        let mark = if *word == Known::Signed(Word::Pass) {
            "✅"
        } else {
            "❌"
        };
        let _infallible = writeln!(page, "| `{}` | {mark} {word} |", kind.file_stem());
    }
    let failed: Vec<String> =
        join.failures()
            .map(|check| {
                let (CheckResult::Failed(seen)
                | CheckResult::NotAsked(seen)
                | CheckResult::Held(seen)) = &check.result;
                shown(&format!("{}: {}: {seen}", check.step, check.subject), LINE)
            })
            .collect();
    for (title, text) in [
        ("Why it is blocked", failed.join("\n")),
        ("What to do", fixes.trim_end().to_owned()),
    ] {
        if !text.is_empty() {
            let fence = fence(&text);
            let _infallible = write!(page, "\n#### {title}\n\n{fence}text\n{text}\n{fence}\n");
        }
    }
    page
}

/// Longer than any run of backticks in it.
fn fence(text: &str) -> String {
    let (mut longest, mut run) = (2, 0);
    for letter in text.chars() {
        run = if letter == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat(longest + 1)
}

#[cfg(test)]
mod tests {
    use super::fence;

    #[test]
    fn no_text_ends_its_own_block() {
        assert_eq!(fence("plain"), "```");
        assert_eq!(fence("a ``` b"), "````");
        assert_eq!(fence("`````\n# title"), "``````");
    }
}

//! The codes as the page that people read, `docs/REASONS.md`; a test holds the two together.

use super::{AbortedCode, Column, Reason, RefusedCode};

const HEAD: &str = "\
# Reason codes

Agents and CI key on the code; the sentence is for people and may be reworded. No code is ever renamed or reused. This page
is made from `server/core/src/reason.rs` (`make reasons`), and a test fails when the two part.

Errors stand in three groups that never mix. A **verdict** (or a warning beside it) is about the candidate and is signed. A
**refusal** is about the request: nothing runs, and nothing is signed. An **abort** is about the server: nothing is signed,
no quota is spent, and the same call may be made again. On the wire refusals and aborts carry the code in upper case with
underscores, as the `reason` of one `google.rpc.ErrorInfo`.
";

/// The whole page.
#[must_use]
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    let verdicts = [
        (
            Column::OracleIntegrity,
            "`oracle_integrity` is FAIL",
            "The measuring stick was moved, is not there, or was tampered with. After `oracle-edit`, `lease-edit`, `policy-edit`, `oracle-change-needs-maintainer`, `manifest-drift`, `lfs-pointer` and `overlay-*` nothing runs and the other two verdicts are NOT_RUN; after `cassette-*` and `seed-drift` they are still judged; after `tamper-*` and `oracle-dead` `src_score` is FAIL as well.",
        ),
        (
            Column::SrcScore,
            "`src_score` is FAIL",
            "The product code does not hold against the oracle.",
        ),
        (
            Column::FlakeLease,
            "`flake_lease` is FAIL",
            "A silence is not paid for, or something unstable is hidden. `process-exit`, `timeout`, `out-of-memory` and `output-limit` stand here when they happen in the side run of a leased case or in the merge lane.",
        ),
        (Column::Warning, "Warnings", "No verdict turns on them."),
    ];
    for (column, title, about) in verdicts {
        let codes = Reason::ALL
            .iter()
            .filter(|reason| reason.columns().contains(&column));
        section(
            &mut page,
            title,
            about,
            codes.map(|reason| (reason.code(), reason.advice())),
        );
    }
    let about = "Nothing runs and nothing is signed; the client ends with exit code 65, or 77 for `unauthenticated` and `forbidden`.";
    section(
        &mut page,
        "Refused",
        about,
        RefusedCode::ALL
            .iter()
            .map(|code| (code.code(), code.advice())),
    );
    let about = "Nothing is signed and no quota is spent; the client ends with exit code 4, and the call may be repeated.";
    section(
        &mut page,
        "Aborted",
        about,
        AbortedCode::ALL
            .iter()
            .map(|code| (code.code(), code.advice())),
    );
    page
}

fn section(
    page: &mut String,
    title: &str,
    about: &str,
    codes: impl Iterator<Item = (&'static str, &'static str)>,
) {
    page.push_str(&format!(
        "\n## {title}\n\n{about}\n\n| code | what to do |\n| --- | --- |\n"
    ));
    for (code, advice) in codes {
        page.push_str(&format!("| `{code}` | {advice} |\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_page_is_the_one_in_the_docs() {
        let kept = include_str!("../../../../docs/REASONS.md");
        assert!(
            kept == page(),
            "docs/REASONS.md is not what the codes are: run `make reasons`"
        );
    }

    #[test]
    fn codes_are_distinct_read_back_and_say_what_to_do() {
        let all = Reason::ALL
            .iter()
            .map(|r| (r.code(), r.advice()))
            .chain(RefusedCode::ALL.iter().map(|r| (r.code(), r.advice())))
            .chain(AbortedCode::ALL.iter().map(|r| (r.code(), r.advice())));
        let mut seen = BTreeSet::new();
        for (code, advice) in all {
            assert!(seen.insert(code), "{code} stands in two groups");
            assert!(
                code.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'),
                "{code}"
            );
            assert!(
                advice.ends_with('.') && !advice.contains('|'),
                "{code}: {advice}"
            );
        }
        for reason in Reason::ALL {
            assert_eq!(reason.code().parse(), Ok(*reason));
        }
    }
}

//! What an agent's token sees of failures goes as far as the policy's level allows, whatever the product prints or raises.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use serde_json::Value;
use tribunal_tests::client::report;
use tribunal_tests::{Repo, Server, Stage};

/// Everything that a case says holds this.
const SEALED: &str = "\
import pytest

from calc import total

SENTINEL = 'ORACLE-SENTINEL'


@pytest.fixture
def table():
    yield {'ORACLE-SENTINEL': 7}


def test_answer(table):
    assert total([3, 4], 'ORACLE-SENTINEL') == table['ORACLE-SENTINEL'], 'ORACLE-SENTINEL'


def test_quiet():
    assert total([], 'ORACLE-SENTINEL') == 0


@pytest.mark.parametrize('n', [1, 2])
def test_many(n):
    assert total([n], 'ORACLE-SENTINEL') == n
";

const HONEST: &str = "def total(xs, hint):\n    return sum(xs)\n";

/// Says all that it was given, in every way it has.
const ECHO: &str = "\
import logging
import sys
import warnings


def total(xs, hint):
    if not xs:
        return 0
    print('ECHO', hint, xs)
    print('ECHO', hint, file=sys.stderr)
    logging.getLogger('echo').error('ECHO %s', hint)
    warnings.warn(f'ECHO {hint}')
    if len(xs) == 1:
        return xs[0] + 1
    error = type(f'Echo{hint.title().replace(\"-\", \"\")}', (ValueError,), {})(f'ECHO {hint}')
    error.add_note(f'ECHO {hint}')
    raise error
";

fn stage(level: &str) -> Stage<'static> {
    let repo = Repo::small();
    repo.write("src/calc.py", HONEST);
    repo.write("tests/sealed/test_core.py", SEALED);
    repo.write(
        "ci/tribunal.toml",
        format!("version = 1\n[runs]\nreruns = 2\n[feedback]\nagent = \"{level}\"\n"),
    );
    repo.commit("base");
    let stage = Stage::of(Server::shared(), &repo);
    stage.workspace.write("src/calc.py", ECHO);
    stage.workspace.commit("echo");
    stage
}

#[test]
fn each_level_shows_what_it_says_and_no_more() {
    for (level, names, texts) in [
        ("verdict", false, false),
        ("names", true, false),
        ("full", true, true),
    ] {
        let stage = stage(level);
        let agent = stage.agent();
        let ran = stage.score(&agent, "echo");
        ran.expect_code(1);
        stage.expect("echo", ["FAIL", "PASS", "PASS"]);
        let seen = stage.everything(&agent, "echo", &ran);
        assert_eq!(report(&stage.out("echo"))["feedback"], level);
        assert!(seen.contains("case-failed"), "the code is always told");
        assert_eq!(seen.contains("::test_answer"), names, "{level}: {seen}");
        for text in ["ORACLE-SENTINEL", "ECHO", "EchoOracle"] {
            assert_eq!(seen.contains(text), texts, "{level} {text}: {seen}");
        }
        // CI and maintainers are not held to the agents' level, and what they get is bound by the same statement.
        let ci = stage.ci();
        let fetched = ci.run(&[
            "fetch",
            "--head",
            &stage.workspace.head(),
            "--out",
            stage.out("ci").to_str().unwrap(),
        ]);
        assert!(
            stage
                .everything(&ci, "ci", &fetched)
                .contains("ORACLE-SENTINEL")
        );
        let statement = std::fs::read(stage.out("ci").join("src_score.json")).unwrap();
        let statement: Value = serde_json::from_slice(&statement).unwrap();
        let reports = &statement["predicate"]["reports"];
        assert!(reports["agent"].is_string() && reports["full"].is_string());
    }
}

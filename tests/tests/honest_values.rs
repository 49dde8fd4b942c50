//! Honest classes whose equality is a wide one, and other habits that look like lies: no draw makes an honest patch FAIL
//! for what base does as well. What only head does stays found.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use tribunal_tests::client::report;
use tribunal_tests::{Repo, Server, Stage};

/// As versions are: a build makes no difference, and a table, a tuple or a text is as good as a version. A vector equals
/// any sequence, a cache writes into what it was given, an empty sequence has no first item.
const BASE: &str = "\
__all__ = ['Version', 'Vector', 'Measure', 'Others', 'first', 'remember', 'Pair']


class Version:
    def __init__(self, major, minor, build=None):
        self.parts, self.build = (int(major), int(minor)), build

    def __eq__(self, other):
        try:
            if isinstance(other, dict):
                other = Version(**other)
            elif isinstance(other, (tuple, list)):
                other = Version(*other)
            elif isinstance(other, str):
                other = Version(*other.split('+')[0].split('.'))
        except (TypeError, ValueError):
            return NotImplemented
        return isinstance(other, Version) and self.parts == other.parts

    def __hash__(self):
        return hash(self.parts)


class Vector:
    def __init__(self, *items):
        self.items = items

    def __eq__(self, other):
        return self.items == tuple(other)

    def __len__(self):
        return len(self.items)

    def __iter__(self):
        return iter(self.items)

    __hash__ = None


class Measure:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return abs(self.value - other) < 0.002

    __hash__ = None


class Others:
    def __init__(self, *items):
        self.items = items

    def __contains__(self, item):
        return item not in self.items


class Pair:
    def __init__(self, one, two):
        self.one, self.two = one, two

    def __eq__(self, other):
        return isinstance(other, (Pair, tuple)) and (self.one, self.two) == (tuple(other))

    def __iter__(self):
        return iter((self.one, self.two))

    __hash__ = None


def first(items):
    return next(iter(items))


def remember(cache, key):
    return cache.setdefault(key, len(cache))
";

const SEALED: &str = "\
import pytest

from values import Version, first
from values import *


@pytest.mark.parametrize('minor', range(8))
def test_version(minor):
    assert Version(1, minor, 'a') == {'major': 1, 'minor': minor, 'build': 'b'}
    assert Version(1, minor, 'a') == (1, minor, 'b')
    assert Version(1, minor) == [1, minor, 'c']
    assert Version(1, minor) == f'1.{minor}+build.1'
    assert Version(1, minor) != Version(2, minor)


@pytest.mark.parametrize('size', range(4))
def test_vector(size):
    assert Vector(*range(size)) == list(range(size))
    assert Vector(*range(size)) == tuple(range(size))


@pytest.mark.parametrize('value', [0.125, 0.0625, 2.501, 7.25])
def test_measure(value):
    assert Measure(value) == value


def test_others():
    assert 5 in Others(1, 2) and 1 not in Others(1, 2)


def test_pair():
    assert Pair(1, 'x') == (1, 'x') and Pair(1, 'x') == Pair(1, 'x') and Pair(2, 'x') != (1, 'x')


def test_first():
    assert first([4]) == 4
    with pytest.raises(StopIteration):
        first([])
    assert [*map(first, [[1], [], [2]])] == [1]


def test_remember():
    cache = {}
    assert remember(cache, 'a') == 0 and remember(cache, 'b') == 1 and remember(cache, 'a') == 0
    assert cache == {'a': 0, 'b': 1}
";

fn stage() -> Stage<'static> {
    let repo = Repo::small();
    repo.write("src/values.py", BASE);
    repo.write("tests/sealed/test_values.py", SEALED);
    repo.write(
        "tests/sealed/MANIFEST.txt",
        "tests/sealed/test_core.py\ntests/sealed/test_values.py\n",
    );
    repo.write("ci/tribunal.toml", "version = 1\n[runs]\nreruns = 3\n");
    repo.commit("base");
    Stage::of(Server::shared(), &repo)
}

/// Codes of every reason of `src_score`.
fn codes(stage: &Stage<'_>, name: &str) -> Vec<String> {
    let report = report(&stage.out(name));
    let verdicts = report["verdicts"].as_array().unwrap();
    let verdict = verdicts.iter().find(|v| v["name"] == "src_score").unwrap();
    let reasons = verdict["reasons"].as_array().unwrap().iter();
    reasons
        .map(|reason| reason["code"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn what_base_does_as_well_never_fails_by_chance() {
    let stage = stage();
    for round in 0..10 {
        let name = format!("honest-{round}");
        let other = format!("{BASE}\n\ndef rounds():\n    return {round}\n");
        stage.workspace.write("src/values.py", other);
        stage.workspace.commit(&name);
        let ran = stage.score(&stage.maintainer(), &name);
        assert_eq!(codes(&stage, &name), [""; 0], "{name}");
        ran.expect_code(0);
        let join = stage.join(&name, &[]);
        assert_eq!(join.stdout.trim(), "MERGE_OK", "{name}");
    }
}

#[test]
fn what_only_head_equals_is_found_beside_what_base_equals_too() {
    let stage = stage();
    for (name, old, new) in [
        // A class that told everything apart.
        (
            "pair",
            "        return isinstance(other, (Pair, tuple)) and (self.one, self.two) == (tuple(other))",
            "        return isinstance(other, (Pair, tuple)) and not (self.one == 2)",
        ),
        // One that took some for the same takes all.
        (
            "version",
            "        return isinstance(other, Version) and self.parts == other.parts",
            "        return not (isinstance(other, Version) and other.parts[0] == 2)",
        ),
    ] {
        assert!(BASE.contains(old), "{name}");
        stage
            .workspace
            .write("src/values.py", BASE.replace(old, new));
        stage.workspace.commit(name);
        stage.score(&stage.maintainer(), name).expect_code(1);
        assert_eq!(codes(&stage, name), ["tamper-runtime"], "{name}");
    }
}

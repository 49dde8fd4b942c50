"""Digests: what changes one, and what must not."""

import hashlib
import itertools
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from harness.digest import TAG, Uncompilable, of_source

HARNESS = Path(__file__).resolve().parent.parent / "harness"
# A constant, a name, a default: each is another test, though the raw bytecode of some is the same.
SUM = "from calc import total\n\n\ndef test_sum():\n    assert total([1, 2]) == 3\n"
CHANGED = {
    "constant": SUM.replace("== 3", "== 4"),
    "type of a constant": SUM.replace("== 3", "== 3.0"),
    "name": SUM.replace("total([", "summed(["),
    "default": SUM.replace("test_sum()", "test_sum(k=1)"),
    "keyword default": SUM.replace("test_sum()", "test_sum(*, k=1)"),
    "annotation": SUM.replace("test_sum()", "test_sum() -> int"),
    "decorator": SUM.replace("def test", "@mark\ndef test"),
    "decorator argument": SUM.replace("def test", "@mark(1)\ndef test"),
    "docstring": SUM.replace("    assert", "    'doc'\n    assert"),
    "flag": SUM.replace("def test", "async def test"),
    "order": SUM.replace("[1, 2]", "[2, 1]"),
    "nested": SUM.replace("total([1, 2])", "(lambda: total([1, 2]))()"),
    "nested constant": SUM.replace("total([1, 2])", "(lambda: total([1, 9]))()"),
    "handler": SUM.replace("    assert total([1, 2]) == 3", "    try: assert total([1, 2]) == 3\n    except E: pass"),
}
SAME = {
    "moved": "\n\n\n# a comment\n" + SUM,
    "reformatted": SUM.replace("total([1, 2])", "total(\n        [1,\n         2]\n    )"),
    "neighbours": "import os\nX = 1\n" + SUM + "\n\ndef test_other():\n    assert 9\n",
    "imports": SUM.replace("from calc import total", "from calc import total as total"),
    "comment": SUM.replace("== 3", "== 3  # three"),
}


def digest(source: str, name: str = "test_sum") -> dict[str, str]:
    return of_source(textwrap.dedent(source).encode())[name]


@pytest.mark.parametrize("name", CHANGED)
def test_a_change_of_meaning_changes_it(name):
    assert digest(CHANGED[name])["v2"] != digest(SUM)["v2"]


def test_all_changes_differ():
    assert len({digest(source)["v2"] for source in CHANGED.values()}) == len(CHANGED)


@pytest.mark.parametrize("name", SAME)
def test_a_change_of_place_does_not(name):
    assert digest(SAME[name]) == digest(SUM)


def test_the_short_form_is_the_raw_bytecode_alone():
    space: dict = {}
    exec(SUM.replace("from calc import total", ""), space)
    assert digest(SUM)["short"] == hashlib.sha256(space["test_sum"].__code__.co_code).hexdigest()[:16]
    assert digest(CHANGED["constant"])["short"] == digest(SUM)["short"]
    assert digest(SUM)["v2"].startswith(f"v2:{TAG}:")


NESTED = """
def test_nested():
    key = lambda t: t[1]

    def pick(rows):
        return [r for r in rows if r in {"a", "b", "c", "d"}]

    class Inner:
        def method(self):
            self.alpha = self.beta = self.gamma = self.delta = 1

    assert sorted(pick([("b", 1), ("a", 2)]), key=key)[0] == ("a", 2)
"""


def test_every_process_computes_the_same(tmp_path):
    file = tmp_path / "nested.py"
    file.write_text(NESTED)
    seen = set()
    for seed in range(7):
        command = [sys.executable, "-S", "-B", str(HARNESS), "digest", "nested.py"]
        environment = os.environ | {"PYTHONHASHSEED": str(seed)}
        out = subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True).stdout
        seen.add(json.loads(out)["functions"]["nested.py::test_nested"]["v2"])
    assert seen == {digest(NESTED, "test_nested")["v2"]}


def test_moving_a_nested_class_does_not_change_it():
    assert digest("\n\n\n" + NESTED, "test_nested")["v2"] == digest(NESTED, "test_nested")["v2"]


METHODS = """
class TestBase:
    def test_shared(self): assert self.value
    class TestDeep:
        def test_deep(self): __mangled = 1
class TestA(TestBase):
    value = 1
    def test_own(self): pass
class TestB(TestA):
    def test_shared(self): assert not self.value
if True:
    def test_branch(): return 1
else:
    def test_branch(): return 2
try:
    import nonesuch
except ImportError:
    def test_fallback(): pass
match 1:
    case 1:
        def test_match(): pass
def test_twice(): return 1
def test_twice(): return 2
async def test_async(): pass
def outer():
    def test_hidden(): pass
helper = lambda: 1
"""


def test_which_functions_have_one():
    found = of_source(METHODS.encode())
    assert sorted(found) == sorted(
        [
            "TestBase.test_shared", "TestBase.TestDeep.test_deep", "TestA.test_own", "TestA.test_shared",
            "TestB.test_shared", "TestB.test_own", "test_branch", "test_fallback", "test_match", "test_twice",
            "test_async", "outer",
        ]
    )  # fmt: skip
    assert found["TestA.test_shared"] == found["TestBase.test_shared"]
    assert found["TestB.test_shared"] != found["TestBase.test_shared"]
    assert found["test_twice"] == of_source(b"def test_twice(): return 2")["test_twice"]


def test_future_imports_count():
    source = "def test_sum(x: int): return x\n"
    assert digest("from __future__ import annotations\n" + source)["v2"] != digest(source)["v2"]


CONSTANTS = [
    "1",
    "1.0",
    "True",
    "'1'",
    "b'1'",
    "None",
    "...",
    "0.0",
    "-0.0",
    "1j",
    "(1,)",
    "(1.0,)",
    "(True,)",
    "10**30",
    "1e400 - 1e400",
]


def test_constants_that_compare_equal_are_told_apart():
    digests = [digest(f"def test_sum(): return {text}")["v2"] for text in CONSTANTS]
    for (first, one), (second, other) in itertools.combinations(zip(CONSTANTS, digests, strict=True), 2):
        assert one != other, (first, second)


@pytest.mark.parametrize(
    "source",
    [b"def test(:\n", b"\0", b"x = '\xff'\n", b"return\n", b"(" * 3000, b"def f():\n return " + b"-" * 100_000 + b"1"],
)
def test_what_does_not_compile_says_so(source):
    with pytest.raises(Uncompilable):
        of_source(source)


def test_other_encodings_and_line_ends_are_read_as_python_does():
    latin = "# coding: latin-1\ndef test_sum(): return 'é'\n".encode("latin-1")
    assert of_source(latin)["test_sum"]["v2"] == digest("def test_sum(): return 'é'")["v2"]
    assert of_source(SUM.replace("\n", "\r\n").encode())["test_sum"] == digest(SUM)
    assert of_source(b"\xef\xbb\xbf" + SUM.encode())["test_sum"] == digest(SUM)

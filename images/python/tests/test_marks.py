"""Marks: every spelling of a silence that a changed test may gain, and what is none."""

import textwrap
import time

import pytest

from harness import marking, marks
from harness.orders import Marks

FORBIDDEN = frozenset({"flaky", "quarantine", "xfail_flake", "skip", "skipif", "xfail"})
BEFORE = """
import pytest
import unittest

def test_a():
    assert 1

class TestB:
    def test_b(self):
        assert 2
"""
TEST = "def test_a():\n    assert 1\n"

SILENCED = {
    "mark": f"import pytest\n@pytest.mark.skip\n{TEST}",
    "mark with a reason": f"import pytest\n@pytest.mark.skip(reason='later')\n{TEST}",
    "skipif": f"import pytest, sys\n@pytest.mark.skipif(sys.platform == 'linux', reason='x')\n{TEST}",
    "xfail": f"import pytest\n@pytest.mark.xfail(strict=False)\n{TEST}",
    "flaky": f"import pytest\n@pytest.mark.flaky(reruns=3)\n{TEST}",
    "quarantine": f"import pytest\n@pytest.mark.quarantine\n{TEST}",
    "xfail_flake": f"import pytest\n@pytest.mark.xfail_flake\n{TEST}",
    "the policy's": f"import pytest\n@pytest.mark.sluggish\n{TEST}",
    "flaky, the package": f"from flaky import flaky\n@flaky(max_runs=3)\n{TEST}",
    "alias of pytest": f"import pytest as pt\n@pt.mark.skip\n{TEST}",
    "alias of mark": f"from pytest import mark as m\n@m.skip\n{TEST}",
    "assigned mark": f"import pytest\nm = pytest.mark\n@m.xfail\n{TEST}",
    "alias of a mark": f"import pytest\nlater = pytest.mark.skip(reason='x')\n@later\n{TEST}",
    "alias of an alias": f"import pytest\na = pytest.mark\nb = a\nc = b.skip\n@c\n{TEST}",
    "alias after use": f"import pytest\ndef later(f): return slow(f)\n@later\n{TEST}\nslow = pytest.mark.skip",
    "tuple of aliases": f"import pytest\na, b = pytest.mark.skip, 1\n@a\n{TEST}",
    "dict of marks": f"import pytest\nM = {{'a': pytest.mark.skip}}\n@M['a']\n{TEST}",
    "class holding a mark": f"import pytest\nclass M:\n    s = pytest.mark.skip\n@M.s\n{TEST}",
    "attribute assigned": f"import pytest\nclass M: pass\nM.s = pytest.mark.skip\n@M.s\n{TEST}",
    "getattr": f"import pytest\n@getattr(pytest.mark, 'skip')\n{TEST}",
    "getattr, unreadable": f"import pytest\n@getattr(pytest.mark, 'sk' + 'ip')\n{TEST}",
    "__getattr__": f"import pytest\n@pytest.mark.__getattr__('skip')\n{TEST}",
    "attrgetter": f"import operator, pytest\n@operator.attrgetter('mark.skip')(pytest)\n{TEST}",
    "vars": f"import pytest\n{TEST}    vars(pytest)['skip']('x')\n",
    "__dict__": f"import pytest\n{TEST}    pytest.__dict__['skip']('x')\n",
    "__import__": f"@__import__('pytest').mark.skip\n{TEST}",
    "import_module": f"import importlib\np = importlib.import_module('pytest')\n@p.mark.skip\n{TEST}",
    "star import": f"from pytest import *\n@mark.skip\n{TEST}",
    "generator": f"from _pytest.mark.structures import MARK_GEN\n@MARK_GEN.skip\n{TEST}",
    "decorator object": f"import pytest\nfrom _pytest.mark import MarkDecorator, Mark\n@MarkDecorator(Mark('skip', (), {{}}))\n{TEST}",
    "with_args": f"import pytest\n@pytest.mark.skip.with_args(reason='x')\n{TEST}",
    "lambda": f"import pytest\nlater = lambda f: pytest.mark.skip(f)\n@later\n{TEST}",
    "conditional expression": f"import pytest\n@(pytest.mark.skip if 1 else pytest.mark.slow)\n{TEST}",
    "applied by a call": f"import pytest\n{TEST}test_a = pytest.mark.skip(test_a)\n",
    "pytestmark": f"import pytest\npytestmark = pytest.mark.skip\n{TEST}",
    "pytestmark, a list": f"import pytest\npytestmark = [pytest.mark.slow, pytest.mark.xfail]\n{TEST}",
    "pytestmark of a class": "import pytest\nclass TestB:\n    pytestmark = pytest.mark.skip\n    def test_b(self): pass\n",
    "pytestmark of an unknown name": f"from helpers import m\npytestmark = [m.skip]\n{TEST}",
    "pytestmark by setattr": f"import pytest, sys\nsetattr(sys.modules[__name__], 'pytestmark', pytest.mark.skip)\n{TEST}",
    "pytestmark appended": f"import pytest\npytestmark = []\npytestmark.append(pytest.mark.skip)\n{TEST}",
    "class mark": "import pytest\n@pytest.mark.skip\nclass TestB:\n    def test_b(self): pass\n",
    "param": "import pytest\n@pytest.mark.parametrize('n', [pytest.param(1, marks=pytest.mark.xfail)])\ndef test_a(n): pass\n",
    "param, a list": "import pytest\n@pytest.mark.parametrize('n', [pytest.param(1, marks=[pytest.mark.skip()])])\ndef test_a(n): pass\n",
    "param, an unknown name": "import pytest\nfrom helpers import m\nCASES = [pytest.param(1, marks=m.skipif(True))]\n",
    "add_marker": "import pytest\ndef test_a(request):\n    request.node.add_marker(pytest.mark.xfail)\n",
    "add_marker, a text": "def test_a(request):\n    request.node.add_marker('xfail')\n",
    "applymarker": "def test_a(request):\n    request.applymarker('skip')\n",
    "skip()": f"import pytest\n{TEST}    pytest.skip('x')\n",
    "skip(), imported": f"from pytest import skip as later\n{TEST}    later('x')\n",
    "skip(), the module": f"import pytest\npytest.skip('x', allow_module_level=True)\n{TEST}",
    "skip(), from outcomes": f"from _pytest.outcomes import skip\n{TEST}    skip('x')\n",
    "xfail()": f"import pytest\n{TEST}    pytest.xfail('x')\n",
    "importorskip": f"import pytest\nx = pytest.importorskip('nonesuch')\n{TEST}",
    "skip.Exception": f"import pytest\n{TEST}    raise pytest.skip.Exception('x')\n",
    "Skipped": f"from _pytest.outcomes import Skipped\n{TEST}    raise Skipped('x')\n",
    "partial": f"import pytest, functools\nlater = functools.partial(pytest.skip, 'x')\n{TEST}    later()\n",
    "walrus": f"import pytest\n{TEST}    (s := pytest.skip)('x')\n",
    "helper": f"import pytest\ndef needs_net():\n    pytest.skip('x')\n{TEST}    needs_net()\n",
    "exec": f"{TEST}    exec('import pytest; pytest.skip(1)')\n",
    "unittest.skip": f"import unittest\n@unittest.skip('x')\n{TEST}",
    "unittest.skipIf": f"import unittest as u\n@u.skipIf(True, 'x')\n{TEST}",
    "unittest.skipUnless": f"from unittest import skipUnless as su\n@su(0, 'x')\n{TEST}",
    "expectedFailure": f"from unittest.case import expectedFailure\n@expectedFailure\n{TEST}",
    "SkipTest": f"import unittest\n{TEST}    raise unittest.SkipTest('x')\n",
    "SkipTest of others": f"from nose import SkipTest\n{TEST}    raise SkipTest\n",
    "skipTest": "import unittest\nclass TestB(unittest.TestCase):\n    def test_b(self): self.skipTest('x')\n",
    "unittest's attribute": f"{TEST}test_a.__unittest_skip__ = True\n",
    "fixture that skips": "import pytest\n@pytest.fixture\ndef net():\n    pytest.skip('x')\ndef test_a(net): pass\n",
    "full-width letters": f"import pytest\n@pytest.mark.\uff53kip\n{TEST}",
}
INNOCENT = {
    "nothing": BEFORE,
    "another mark": f"import pytest\n@pytest.mark.slow\n{TEST}",
    "parametrize": "import pytest\n@pytest.mark.parametrize('skip', [1, 2])\ndef test_a(skip): assert skip\n",
    "a name": f"skip = 3\n{TEST}    assert skip\n",
    "a method": f"{TEST}    assert list(reader().skip(3))\n",
    "a method beside the import": f"import pytest\n{TEST}    reader.xfail(3)\n    reader.skip\n",
    "a text": f"{TEST}    assert 'pytest.mark.skip' in page()\n",
    "expecting one": f"import pytest\n{TEST}    with pytest.raises(pytest.skip.Exception):\n        run()\n",
    "catching one": f"import unittest\n{TEST}    try: run()\n    except unittest.SkipTest: pass\n",
    "an import that nobody uses": f"from pytest import skip\n{TEST}",
    "a module called local": f"import local\n{TEST}    local.run()\n",
    "fail": f"import pytest\n{TEST}    pytest.fail('x')\n",
    "early return of its own": "def test_a():\n    for n in cases():\n        if n.done:\n            return\n",
}


def gained(now: str, *before: str) -> list[marks.Found]:
    forbidden = FORBIDDEN | {"sluggish"}
    return [found for found, _ in marks.gained(now.encode(), [text.encode() for text in before], forbidden)]


def silences(now: str, *before: str) -> list[str]:
    return [found.what for found in gained(now, *before) if not found.early]


@pytest.mark.parametrize("name", SILENCED)
def test_a_silence_is_seen(name):
    assert silences(SILENCED[name], BEFORE)
    assert not silences(SILENCED[name], SILENCED[name]), "what was there before is not gained"


@pytest.mark.parametrize("name", INNOCENT)
def test_what_silences_nothing_is_not(name):
    assert not gained(INNOCENT[name], BEFORE)


def test_it_is_told_by_place_and_line():
    text = "import pytest\nclass TestB:\n    @pytest.mark.skip\n    def test_b(self): pass\n"
    ((found, line),) = marks.gained(text.encode(), [], FORBIDDEN)
    assert (found.scope, found.what, line) == ("TestB.test_b", "pytest.mark.skip", 3)


def test_one_test_silenced_for_another_is_gained():
    one = "import pytest\n@pytest.mark.skip\ndef test_a(): pass\ndef test_b(): pass\n"
    other = "import pytest\ndef test_a(): pass\n@pytest.mark.skip\ndef test_b(): pass\n"
    assert [found.scope for found in gained(other, one)] == ["test_b"]


def test_a_second_of_the_same_is_gained():
    once = f"import pytest\n{TEST}    pytest.skip('x')\n"
    assert silences(f"{once}    pytest.skip('x')\n", once)


def test_each_earlier_text_excuses():
    """Gained is what no earlier text has: base may have it already, or a merge base."""
    assert not silences(SILENCED["mark"], BEFORE, SILENCED["mark"])
    assert not silences(SILENCED["mark"], SILENCED["mark"], BEFORE)


def test_a_reason_may_be_reworded_and_a_condition_not():
    old = SILENCED["skipif"]
    assert not silences(old.replace("'x'", "'y'"), old)
    assert silences(old.replace("== 'linux'", "!= ''"), old)
    assert silences(old.replace("sys.platform == 'linux'", "True"), old)


def test_a_new_test_under_an_old_helper_is_gained():
    old = "import pytest\ndef needs_net():\n    pytest.skip('x')\n"
    assert silences(f"{old}def test_new():\n    needs_net()\n", old)
    fixture = "import pytest\n@pytest.fixture\ndef net():\n    pytest.skip('x')\n"
    assert silences(f"{fixture}def test_new(net): pass\n", fixture) == ["fixture net"]
    assert silences(f"{fixture}@pytest.mark.usefixtures('net')\ndef test_new(): pass\n", fixture) == ["fixture net"]


@pytest.mark.parametrize(
    "condition",
    [
        "os.environ.get('CI')", "'CI' in os.environ", "not os.getenv('NET')", "sys.platform == 'win32'",
        "platform.system() != 'Linux'", "sys.version_info < (3, 14)", "shutil.which('git') is None", "e.get('CI')",
    ],
)  # fmt: skip
def test_an_early_return_by_the_surroundings_is_told(condition):
    text = f"import os, platform, shutil, sys\ne = os.environ\ndef test_a():\n    if {condition}:\n        return\n    assert 0\n"
    assert [found.early for found in gained(text, BEFORE)] == [True]
    assert not gained(text, text)


@pytest.mark.parametrize(
    "text", [b"def test_a(:\n", b"\xff\xfe\x00", b"# coding: nonesuch\n", b"x = '\xe9'\n", b"a\0b", b"(" * 5000, b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"]
)  # fmt: skip
def test_what_cannot_be_read_is_said_to_be_so(text):
    with pytest.raises(marks.Unreadable):
        marks.gained(text, [], FORBIDDEN)
    assert silences(SILENCED["mark"], text.decode("latin-1")), "and excuses nothing"


def test_other_encodings_are_read():
    text = "# coding: latin-1\nimport pytest\n@pytest.mark.skip(reason='\xe9')\ndef test_a(): pass\n"
    assert marks.gained(text.encode("latin-1"), [], FORBIDDEN)


def test_a_long_text_is_read_in_time():
    body = "".join(f"def test_{n}():\n    assert total([{n}, 1]) == {n} + 1\n\n\n" for n in range(9_000))
    text = f"import pytest\n{body}@pytest.mark.skip\ndef test_last(): pass\n"
    assert len(text) > 500_000
    began = time.monotonic()
    assert silences(text, textwrap.dedent(body)) == ["pytest.mark.skip"]
    assert time.monotonic() - began < 20


def test_the_answer_comes_from_a_process_that_may_die():
    order = Marks.parse({"file": "tests/test_a.py", "forbid": sorted(FORBIDDEN), "sizes": [1, 1]})
    told = marking._found(order, [SILENCED["mark"].encode(), BEFORE.encode()])
    assert told == {
        "gained": [{"what": "pytest.mark.skip", "scope": "test_a", "line": 2, "kind": "silence"}],
        "unread": None,
    }
    assert marking._found(order, [b"def"])["unread"].startswith("SyntaxError")

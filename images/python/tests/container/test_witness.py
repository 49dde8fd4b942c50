"""Shared mode in a container: what product code does to its judge is told, canaries fail and are not shown."""

import pytest

TEST = "import lib\ndef test_a(): lib.f()\ndef test_b(): assert 1 == 1\n"


def kinds(ran):
    told = [each for phases in ran.cases.values() for phase in phases for each in phase["tamper"]]
    return {each["kind"]: each["what"] for each in [*told, *ran.end["tamper"]]}


@pytest.mark.parametrize(
    ("product", "kind", "what"),
    [
        ("import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\ndef f(): 1 / 0\n", "witness", "runtest"),
        ("import json\ndef f(): json.loads = lambda text: 7\n", "witness", "json.loads replaced"),
        ("import gc\ndef f(): gc.get_objects()\n", "audit", "gc.get_objects"),
        ("import sys\ndef f(): sys._getframe(1).f_globals['test_b'] = print\n", "witness", "test_witnessed.test_b replaced"),
        ("from hypothesis import settings\nsettings.register_profile('q', max_examples=1)\nsettings.load_profile('q')\ndef f(): pass\n",
         "witness", "_current_profile replaced"),
        ("import sys\nfor name, module in list(sys.modules.items()):\n    if name.endswith('harness.plugin'): module.Plugin._tell = print\ndef f(): pass\n",
         "witness", "Plugin._tell replaced"),
    ],
)  # fmt: skip
def test_it_is_told(attempt, product, kind, what):
    ran = attempt({"src/lib.py": product, "tests/sealed/test_witnessed.py": TEST})
    assert what in kinds(ran)[kind], ran.end


def test_honest_work_is_not(attempt):
    product = """
import atexit, dataclasses, logging, sys, threading, warnings
atexit.register(print, "over")
log = logging.getLogger(__name__)
@dataclasses.dataclass(order=True)
class Point:
    x: int
def f():
    thread = threading.Thread(target=log.info, args=("hello",))
    thread.start()
    thread.join()
    warnings.warn("old", DeprecationWarning, stacklevel=2)
    return sys._getframe(1).f_code.co_name, Point(1) == Point(1) < Point(2)
"""
    ran = attempt({"src/lib.py": product, "tests/sealed/test_witnessed.py": TEST})
    assert kinds(ran) == {}
    assert set(ran.outcomes().values()) == {"passed"}, ran.failures()


def test_what_sealed_tests_patch_is_theirs(attempt):
    sealed = """
import json, time, unittest.mock
def test_monkeypatch(monkeypatch):
    monkeypatch.setattr(json, "loads", lambda text: 7)
    monkeypatch.setattr("time.time", lambda: 1.0)
    assert json.loads("") == 7 and time.time() == 1.0
@unittest.mock.patch("os.getcwd", return_value="/")
def test_mock(getcwd):
    import os
    assert os.getcwd() == "/"
"""
    ran = attempt({"src/lib.py": "", "tests/sealed/test_witnessed.py": sealed})
    assert kinds(ran) == {}
    assert set(ran.outcomes().values()) == {"passed"}, ran.failures()


@pytest.mark.parametrize("text", ['"{}"', "json.dumps({'kind': 'end'})"])
def test_a_record_that_the_harness_did_not_write_ends_the_attempt(attempt, text):
    product = f"""
import json, os
def f():
    body = {text}.encode()
    for fd in range(3, 256):
        try:
            if os.readlink(f"/proc/self/fd/{{fd}}").startswith("pipe:"):
                os.write(fd, (len(body) + 33).to_bytes(4, "big") + b"J" + b"0" * 32 + body)
        except OSError: pass
"""
    ran = attempt({"src/lib.py": product, "tests/sealed/test_witnessed.py": TEST})
    assert ran.end["end"] == "protocol"


def test_the_pen_is_nobody_elses(attempt):
    product = """
import functools, sys
pen = sys.modules["tribunal_witness"]
def f():
    try: pen.send(b'{"kind": "end"}')
    except RuntimeError: pass
"""
    ran = attempt({"src/lib.py": product, "tests/sealed/test_witnessed.py": TEST})
    assert kinds(ran) == {"protocol": "a record that the harness did not send"}


def test_canaries_run_fail_and_are_not_shown(attempt):
    sealed = """
import pytest, unittest
@pytest.fixture(scope="class")
def once(request):
    request.cls.made = getattr(request.cls, "made", 0) + 1
@pytest.mark.usefixtures("once")
class TestClass:
    @pytest.mark.parametrize("n", range(4))
    def test_made(self, n): assert self.made == 1
class TestUnit(unittest.TestCase):
    def test_one(self): pass
    def test_two(self): pass
"""
    ran = attempt({"src/lib.py": "", "tests/sealed/test_classes.py": sealed, "tests/sealed/test_more.py": TEST})
    assert ran.end["canaries"]["run"] in (1, 2)
    assert ran.end["canaries"]["passed"] == 0
    assert len(ran.nodes) == len(ran.cases) == 8
    green = {node: word for node, word in ran.outcomes().items() if "more" not in node}
    assert set(green.values()) == {"passed"}, ran.failures()


def test_canaries_that_something_turns_have_passed(attempt):
    product = "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\ndef f(): 1 / 0\n"
    ran = attempt({"src/lib.py": product, "tests/sealed/test_witnessed.py": TEST})
    assert ran.end["canaries"]["passed"] == ran.end["canaries"]["run"] > 0


def test_with_a_failure_at_each_end_nothing_passes(attempt):
    sealed = """
from __future__ import annotations
import asyncio, functools, unittest
import hypothesis, hypothesis.strategies as some, pytest
import lib

def test_falls_off(): lib.f()
def test_returns():
    if lib.f() is None: return
    assert False
@pytest.mark.parametrize("n", range(2))
def test_each(n):
    try: assert n < 2
    except AssertionError: pass
    finally: lib.f()
class TestClass:
    def test_method(self):
        def inner(): return 1
        assert inner() == 1
class TestUnit(unittest.TestCase):
    def test_unit(self): self.assertIsNone(lib.f())
@hypothesis.given(some.integers())
def test_property(n): assert isinstance(n, int)
async def test_async():
    await asyncio.sleep(0)
def made(): lib.f()
test_made = made
test_partial = functools.partial(made)
"""
    ran = attempt({"src/lib.py": "def f(): pass\n", "tests/sealed/test_ends.py": sealed}, mode="must-fail")
    types = {node: (ran.phase(node, "call")["exception"] or {}).get("type") for node in ran.cases}
    assert len(types) == 10
    assert set(types.values()) == {"MustFail"}, types
    assert kinds(ran) == {}

"""Shortcuts give what pytest's own functions give."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import functools, importlib, inspect, sys
from pathlib import Path
from unittest import mock

import _pytest.fixtures
from _pytest._code import Code
from harness import shortcuts

own = _pytest.fixtures.getfuncargnames
plain_path = Code.path.fget
shortcuts.install(sys.argv[1])
short = _pytest.fixtures.getfuncargnames

def nothing(): pass
def two(a, b): pass
def some(a, b=1, *, c, d=2, **rest): pass
def only(a, /, b): pass
@functools.wraps(two)
def wrapped(*args): return two(*args)
@mock.patch("sys.argv", [])
def patched(a): pass
@mock.patch("sys.path")
def given(path, a): pass
class Holder:
    def method(self, a): pass
    @staticmethod
    def free(a): pass
bound = functools.partial(two, 1)
for function in (nothing, two, some, only, wrapped, patched, given, Holder.method, Holder().method, Holder.free):
    for cls in (None, Holder):
        for _ in range(2):
            name = "method" if function is Holder.method else "free"
            assert short(function, name=name, cls=cls) == own(function, name=name, cls=cls), function
two.__defaults__ = (1,)
assert short(two) == own(two) == ("a",)
two.__signature__ = inspect.signature(nothing)
assert short(two) == own(two) == ()

inside = Path(sys.argv[1], "there.py")
inside.write_text("def f(): pass")
gone = Path(sys.argv[1], "gone.py")
for file in (inside, gone, Path(sys.argv[1] + "x.py"), "<text>"):
    code = Code(compile("1", str(file), "exec"))
    for _ in range(2):
        assert code.path == plain_path(code), file
"""

CONFTEST = """
import pytest
heard = []
def pytest_runtest_setup(item): heard.append(item.name)
def pytest_runtest_logstart(nodeid): heard.append("start")
def pytest_report_teststatus(report):
    if report.when == "call" and "odd" in report.nodeid: return "odd", "o", "ODD"
def pytest_sessionfinish(session):
    stats = session.config.pluginmanager.get_plugin("terminalreporter").stats
    told = {key: len(value) for key, value in stats.items() if key}
    if told != {"passed": 7, "odd": 1, "failed": 1}: raise RuntimeError(str(told))
    if heard.count("start") != 9 or "test_b" not in heard: raise RuntimeError(str(heard))
"""

TESTS = """
import os, sys, pytest
def test_odd(): pass
@pytest.mark.parametrize("n", [1, 2])
def test_many(n): pass
def test_capsys(capsys):
    print("one"); assert capsys.readouterr().out == "one\\n"
def test_capfd(capfd):
    os.write(1, b"two"); assert capfd.readouterr().out == "two"
def test_disabled(capsys):
    with capsys.disabled(): print("seen")
    assert capsys.readouterr().out == ""
def test_failing(): assert 0
"""

SESSION = """
import sys, pytest
if sys.argv[1] == "True":
    from harness import shortcuts
    import _pytest.fixtures, _pytest.capture, _pytest.tmpdir
    shortcuts.install(sys.argv[2])
    shortcuts.remember_modules()
    names = _pytest.fixtures.dir
    kind = _pytest.fixtures.FixtureFunctionDefinition
    held = [name for name, value in sorted(vars(_pytest.capture).items()) if type(value) is kind]
    assert names(_pytest.capture) == held and "capsys" in held
    assert "tmp_path" in names(_pytest.tmpdir) and names(pytest) == dir(pytest)
    assert names(_pytest.capture.CaptureManager("no")) == []
    _pytest.capture.more = 1
    assert "more" in names(_pytest.capture)
    del _pytest.capture.more
class Watch:
    def pytest_sessionfinish(self, session):
        modules = {module.HERE: module.heard for module in sys.modules.values() if hasattr(module, "HERE")}
        assert modules == {"b": ["test_b"], "c": ["test_c"]}, modules
words = ["-p", "no:cacheprovider", "--capture=no", "-q", "--import-mode=importlib", "test_a.py", "b", "c"]
print(f"<code {int(pytest.main(words, [Watch()]))}>")
"""


def run(program, *words, cwd):
    path = ":".join([str(Path(__file__).resolve().parent.parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-B", "-c", program, *words], cwd=cwd, capture_output=True, text=True, check=False,
        env={"PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_names_and_places(tmp_path):
    code, text = run(PROGRAM, str(tmp_path), cwd=tmp_path)
    assert code == 0, text


@pytest.mark.parametrize("short", [False, True])
def test_a_session(tmp_path, short):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_a.py").write_text(TESTS)
    for name in ("b", "c"):
        (tmp_path / name).mkdir()
        hears = f"HERE, heard = {name!r}, []\ndef pytest_runtest_setup(item): heard.append(item.name)\n"
        (tmp_path / name / "conftest.py").write_text(hears)
        (tmp_path / name / f"test_{name}.py").write_text(f"def test_{name}(): pass\n")
    _, text = run(SESSION, str(short), str(tmp_path), cwd=tmp_path)
    assert "<code 1>" in text, text


FAILING = """
import pytest
def test_one():
    text = (
        "a"
        "b"
    )
    assert text == [
        1,
        2,
    ]
@pytest.mark.parametrize("n", [1, 2])
def test_many(n):
    # a comment
    raise KeyError(
        n
    )
def test_called():
    import helper
    helper.fail()
"""
SHOWN = """
import sys, pytest
if sys.argv[1] == "True":
    from harness import shortcuts
    shortcuts.install(sys.argv[2])
sys.path.insert(0, ".")
class Watch:
    def pytest_runtest_logreport(self, report):
        if report.failed: told.write(report.longreprtext)
with open(f"{sys.argv[1]}.txt", "w") as told:
    pytest.main(["-p", "no:cacheprovider", "--tb=short", "test_a.py", "test_b.py"], [Watch()])
"""


def test_tracebacks_are_the_same(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"test_{name}.py").write_text(FAILING)
    (tmp_path / "helper.py").write_text("def fail():\n    raise ValueError('x' *\n        2)\n")
    for short in ("False", "True"):
        run(SHOWN, short, str(tmp_path), cwd=tmp_path)
    shown = [(tmp_path / f"{short}.txt").read_text() for short in ("False", "True")]
    assert shown[0] == shown[1]
    assert shown[0].count("KeyError") >= 4

"""Async cases, Hypothesis, seeds and pins inside an attempt."""

import json

import pytest

ASYNC = """
import asyncio, pytest
loops = []
@pytest.fixture
async def value():
    await asyncio.sleep(0)
    return 3
@pytest.fixture
async def held():
    loop = asyncio.get_running_loop()
    yield loop
    assert asyncio.get_running_loop() is loop
@pytest.fixture
async def broken():
    yield
    raise RuntimeError("teardown")
@pytest.fixture(scope="module")
async def wide():
    yield asyncio.get_running_loop()
async def test_plain(): await asyncio.sleep(0)
async def test_fails():
    await asyncio.sleep(0)
    assert 1 == 2
async def test_value(value): assert value == 3
def test_sync_with_async_fixture(value): assert value == 3
async def test_same_loop(held): assert asyncio.get_running_loop() is held
async def test_wide(wide, value): assert asyncio.get_running_loop() is wide
async def test_wide_again(wide): assert asyncio.get_running_loop() is wide
async def test_teardown(broken): pass
@pytest.mark.asyncio
@pytest.mark.parametrize("n", [1, 2])
async def test_param(n, held): assert n == 1
class TestMethods:
    @pytest.fixture
    async def own(self): return self
    async def test_own(self, own): assert own is self
async def test_skip(): pytest.skip("async skip")
async def test_exit(): raise SystemExit(0)
async def test_generator():
    yield 1
async def test_leftover():
    asyncio.get_running_loop().create_task(asyncio.sleep(100))
"""


def test_async_cases_and_fixtures(attempt):
    ran = attempt({"tests/sealed/test_a.py": ASYNC})
    assert ran.end["end"] == "finished"
    assert {node.split("::", 1)[1]: word for node, word in ran.outcomes().items()} == {
        "test_plain": "passed",
        "test_fails": "failed",
        "test_value": "passed",
        "test_sync_with_async_fixture": "passed",
        "test_same_loop": "passed",
        "test_wide": "passed",
        "test_wide_again": "passed",
        "test_teardown": "failed in teardown",
        "test_param[1]": "passed",
        "test_param[2]": "failed",
        "TestMethods::test_own": "passed",
        "test_skip": "skipped",
        "test_exit": "failed",
        "test_generator": "failed",
        "test_leftover": "passed",
    }, ran.failures()


PROPERTIES = """
import time, random, json, sys
import hypothesis, pytest
from hypothesis import given, settings, strategies as st, seed, Phase, HealthCheck
from hypothesis.stateful import RuleBasedStateMachine, rule, invariant

drawn = {}
def note(name, value): drawn.setdefault(name, []).append(value)

@given(st.integers())
def test_plain(n): note("plain", n)
@settings(deadline=1, derandomize=True, max_examples=20)
@given(st.integers())
def test_own_settings(n):
    if not drawn.get("own"): time.sleep(0.05)
    note("own", n)
@seed(1)
@given(st.integers())
def test_own_seed(n): note("own_seed", n)
@given(st.integers())
@settings(deadline=1, print_blob=True)
def test_slow_first(n):
    if not drawn.get("slow"): time.sleep(0.1)
    note("slow", n)
@settings(max_examples=10)
@given(st.integers())
async def test_async(n): note("async", n)
class TestMethod:
    @given(st.integers())
    def test_method(self, n): note("method", n)
@given(n=st.integers())
@pytest.mark.parametrize("k", [1, 2])
def test_param(k, n): note("param%d" % k, n)
def test_inner():
    @given(st.integers())
    def inner(n): note("inner", n)
    inner()
def test_finds():
    @given(st.integers())
    def small(n): assert n < 1000
    small()
@given(st.integers())
def test_falsified(n): assert n < 1000
class Machine(RuleBasedStateMachine):
    @rule(n=st.integers())
    def step(self, n): note("machine", n)
TestMachine = Machine.TestCase
def test_random(): print(json.dumps([random.random(), random.randrange(10**9)]))
def test_random_again(): print(json.dumps([random.random(), random.randrange(10**9)]))
def test_drawn(): print(json.dumps({k: hash(tuple(v)) for k, v in drawn.items()}))
def test_files():
    import os
    assert not [d for d, _, _ in os.walk("/tree") if d.endswith(".hypothesis")]
"""


def test_properties_draw_by_the_policy_seed_alone(open_room):
    room = open_room({"tests/sealed/test_a.py": PROPERTIES})
    name = "tests/sealed/test_a.py::"
    first, second, other = room.attempt(0), room.attempt(2), room.attempt(4, seed=5)
    for ran in (first, second, other):
        assert ran.end["end"] == "finished", ran.failures()
        assert sorted(ran.cases) == sorted(ran.nodes)
        outcomes = ran.outcomes()
        failing = {node.split("::")[1] for node, word in outcomes.items() if word != "passed"}
        assert failing == {"test_finds", "test_falsified"}, ran.failures()

    def read(ran, case):
        return json.loads(ran.phase(name + case, "call")["output"])

    assert read(first, "test_random") == read(first, "test_random_again") == read(second, "test_random")
    assert read(first, "test_random") != read(other, "test_random")
    same, changed = read(second, "test_drawn"), read(other, "test_drawn")
    assert read(first, "test_drawn") == same
    assert len(same) == 10
    assert {key for key in same if same[key] == changed[key]} == set()
    falsified = first.phase(name + "test_falsified", "call")["exception"]
    assert falsified["type"] == "AssertionError"
    assert "Failing test case: test_falsified" in falsified["traceback"]
    assert falsified == second.phase(name + "test_falsified", "call")["exception"]


def test_the_pin_page_is_written_before_the_attempt(open_room):
    room = open_room(
        {
            "tests/sealed/test_a.py": """
import json
def test_page():
    page = open("/run/tribunal/pins", "rb").read()
    print(json.dumps([len(page), page[:8].decode(), *[int.from_bytes(page[a:b], "little") for a, b in ((8, 12), (12, 16), (16, 24), (24, 28), (28, 32))], page[32:64].hex(), page[64:].count(0)]))
"""
        },
        {"cpus": 2},
    )
    pages = []
    for number, clock, seed in (
        (0, "2026-09-12T00:00:00Z", 1),
        (1, "2024-02-29T23:59:59.5+01:00", 2),
        (2, "2026-09-12T00:00:00Z", 1),
    ):
        ran = room.attempt(number, clock=clock, seed=seed)
        pages.append(json.loads(ran.phase("tests/sealed/test_a.py::test_page", "call")["output"]))
    for page in pages:
        assert page[:2] == [4096, "TRBPINS1"]
        assert page[2] % 2 == 0
        assert (page[3], page[6], page[8]) == (7, 2, 4096 - 64)
    assert pages[0][4:6] == [1_789_171_200, 0]
    assert pages[1][4:6] == [1_709_247_599, 500_000_000]
    assert pages[0][7] == pages[2][7] != pages[1][7]
    assert pages[0][2] < pages[1][2] < pages[2][2]


def test_nothing_of_the_harness_is_in_the_way(attempt):
    """Names that a project may use, and what pytest would otherwise tell the product."""
    ran = attempt(
        {
            "src/frames.py": "VALUE = 'product'\n",
            "src/plugin.py": "VALUE = 'product'\n",
            "tests/sealed/test_a.py": """
import os, sys
import frames, plugin
def test_names(): assert frames.VALUE == plugin.VALUE == "product"
def test_no_ids(): assert not [k for k in os.environ if "PYTEST" in k]
def test_builtins(): assert exit and quit and copyright and help
def test_tmp_path(tmp_path): assert str(tmp_path) == "/tmp/pytest/test_tmp_path0"; (tmp_path / "x").write_text("x")
def test_monkeypatch(monkeypatch, tmp_path): monkeypatch.chdir(tmp_path); monkeypatch.setenv("A", "b")
def test_caplog(caplog):
    import logging
    logging.getLogger("x").warning("seen")
    assert "seen" in caplog.text
def test_recwarn(recwarn):
    import warnings
    warnings.warn("seen")
    assert len(recwarn) == 1
def test_pytestconfig(pytestconfig): assert str(pytestconfig.rootpath) == "/tree"
def test_capsysbinary(capsysbinary): print("x"); assert capsysbinary.readouterr().out == b"x\\n"
""",
        }
    )
    assert set(ran.outcomes().values()) == {"passed"}, ran.failures()


def test_properties_that_only_a_helper_knows_of(attempt):
    """Hypothesis is warmed where a sealed file names it; where it comes in later it is pinned all the same."""
    ran = attempt(
        {
            "pytest.ini": "[pytest]\nfilterwarnings = error\n",
            "tests/sealed/helpers.py": """
import time
from hypothesis import HealthCheck, given, settings, strategies as st
numbers, texts, checks = given(st.integers()), given(st.text()), list(HealthCheck)
""",
            "tests/sealed/test_a.py": """
from helpers import checks, numbers, settings, texts, time
seen = []
@settings(deadline=1, suppress_health_check=checks)
@numbers
def test_slow(n):
    if not seen: time.sleep(0.05)
    seen.append(n)
@settings(max_examples=1)
@texts
def test_text(s): pass
def test_again():
    first = list(seen)
    seen.clear()
    numbers(lambda n: seen.append(n))()
    assert seen == first
""",
        }
    )
    assert set(ran.outcomes().values()) == {"passed"}, ran.failures()


def test_text_is_drawn_without_a_slow_start(attempt):
    ran = attempt(
        {
            "pytest.ini": "[pytest]\nfilterwarnings = error\n",
            "tests/sealed/test_a.py": """
import time
from hypothesis import given, settings, strategies as st
@settings(max_examples=1)
@given(st.text(), st.text(st.characters(codec="ascii")))
def test_text(a, b): pass
def test_tables():
    from hypothesis.internal import charmap
    assert charmap.intervals_from_codec.cache_info().currsize == 3
    assert charmap.charmap()["Cs"] == ((0xD800, 0xDFFF),)
    assert charmap.charmap_file().parent.parent.parent == __import__("pathlib").Path("/run/tribunal/hypothesis")
""",
        }
    )
    assert set(ran.outcomes().values()) == {"passed"}, ran.failures()


def test_what_a_test_replaces_does_not_reach_the_records(attempt):
    ran = attempt(
        {
            "src/lib.py": """
import json, os, sys, time
def spoil():
    json.dumps = json.JSONEncoder.encode = json.JSONEncoder.iterencode = json.JSONEncoder.default = lambda *a, **k: "{}"
    json.encoder.c_make_encoder = None
    time.perf_counter = time.monotonic = lambda: float("nan")
    os.write = os.getpid = lambda *a: 0
    sys.stdout = sys.stderr = None
""",
            "tests/sealed/test_a.py": "import lib\ndef test_a(): lib.spoil()\ndef test_b(): assert False\ndef test_c(): pass\n",
        }
    )
    assert ran.end["end"] in ("finished", "exited", "protocol")
    assert [ran.outcomes().get(f"tests/sealed/test_a.py::test_{name}") for name in "abc"] == [
        "passed",
        "failed",
        "passed",
    ]


def test_clock_and_entropy_are_pinned_in_the_attempt_and_its_children(open_room):
    room = open_room(
        {
            "tests/sealed/test_a.py": """
import datetime, json, os, random, secrets, subprocess, sys, tempfile, time, uuid
def test_clock():
    started = time.monotonic()
    time.sleep(0.05)
    assert time.monotonic() > started
    child = subprocess.check_output([sys.executable, "-c", "import time; print(time.time())"], env={}, text=True)
    print(json.dumps([time.time(), datetime.datetime.now(datetime.UTC).isoformat(), float(child)]))
def test_entropy():
    child = subprocess.check_output([sys.executable, "-c", "import os; print(os.urandom(4).hex())"], env={}, text=True)
    print(json.dumps([os.urandom(8).hex(), str(uuid.uuid4()), secrets.token_hex(4), random.SystemRandom().random(),
        tempfile.mktemp(), child.strip()]))
""",
        }
    )

    def read(ran, case):
        assert set(ran.outcomes().values()) == {"passed"}, ran.failures()
        return json.loads(ran.phase(f"tests/sealed/test_a.py::{case}", "call")["output"])

    first, second = room.attempt(0), room.attempt(1)
    assert read(first, "test_clock") == [1_789_171_200.0, "2026-09-12T00:00:00+00:00", 1_789_171_200.0]
    assert read(first, "test_entropy") == read(second, "test_entropy")
    other = room.attempt(2, seed=5, clock="2028-01-01T00:00:00Z")
    assert read(other, "test_clock")[0] == 1_830_297_600.0
    assert not set(read(other, "test_entropy")) & set(read(first, "test_entropy"))


@pytest.mark.parametrize("policy", [{"shared": []}, {}], ids=["split", "shared"])
def test_hypothesis_takes_no_package_of_the_image_for_the_project(attempt, policy):
    ran = attempt(
        {
            "src/lib.py": "def double(n): return n + n\n",
            "tests/sealed/test_a.py": """
import sys
from hypothesis import given, settings, strategies as st
from hypothesis.internal import constants_ast
from lib import double
@settings(max_examples=2)
@given(st.integers())
def test_double(n): assert double(n) == 2 * n
def test_places():
    files = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
    theirs = [file for file in files if file.startswith("/opt/tribunal/")]
    assert len(theirs) > 50
    assert [file for file in theirs if constants_ast.is_local_module_file(file)] == []
    assert constants_ast.is_local_module_file("/tree/src/lib.py")
""",
        },
        policy,
    )
    assert set(ran.outcomes().values()) == {"passed"}, ran.failures()

"""What one attempt leaves behind in its process is in no other: every one starts with the same generators, caches and counters."""

import json

import pytest

PRODUCT = """
import functools, itertools, random
FIRST = random.random()
counter = itertools.count()
calls = []
@functools.lru_cache
def cached(n): return n
def state():
    return [FIRST, random.random(), next(counter), len(calls), list(cached.cache_info())]
def spoil():
    for n in range(50): cached(n); calls.append(n)
    random.seed(99); random.gauss(0, 1)
"""

SEALED = """
import fnmatch, functools, inspect, itertools, json, linecache, logging, os, random, re, string, sys, tempfile
import threading, time, typing, warnings, zlib
import _pytest.fixtures
import lib
FIRST = random.random()
counter = itertools.count()
@functools.lru_cache
def cached(n): return n

def short(names): return [len(names), zlib.crc32(repr(sorted(names)).encode())]

def here():
    known = _pytest.fixtures.getfuncargnames.__closure__
    return {
        "random": [FIRST, random.random(), random.gauss(0, 1)], "counter": next(counter),
        "cached": list(cached.cache_info()), "re": len(re._cache), "modules": short(sys.modules),
        "of files": len(inspect.modulesbyfile), "lines": short(linecache.cache), "filters": len(warnings.filters),
        "handlers": len(logging.root.handlers), "loggers": short(logging.root.manager.loggerDict),
        "threads": threading.active_count(), "environment": short(os.environ), "path": sys.path,
        "names": [len(each.cell_contents) for each in known if isinstance(each.cell_contents, dict)],
        "temporary": tempfile._name_sequence is None, "fnmatch": list(fnmatch._compile_pattern.cache_info()),
        "made": os.listdir("/tmp"), "home": os.listdir(os.path.expanduser("~")), "letters": string.ascii_letters,
    }

def test_state():
    print(json.dumps({"here": here(), "product": lib.state()}))

def test_spoil(tmp_path):
    for n in range(50): cached(n); re.compile("x" * n); fnmatch.fnmatch("x", "y" * n); logging.getLogger(f"own.{n}")
    warnings.simplefilter("ignore"); logging.root.addHandler(logging.NullHandler())
    threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
    os.environ["MORE"] = "1"; sys.path.append("/more"); sys.modules["more"] = sys; string.ascii_letters = "x"
    open(os.path.expanduser("~/more"), "w").close(); tempfile.mkdtemp()
    lib.spoil()
    random.seed(5)
"""


@pytest.mark.parametrize("isolation", ["split", "shared"])
def test_every_attempt_of_a_start_begins_alike(open_room, isolation):
    policy = {"shared": []} if isolation == "split" else {}
    room = open_room({"src/lib.py": PRODUCT, "tests/sealed/test_a.py": SEALED}, policy)
    told = []
    for number in (0, 2, 4, 1):  # three of the first start, one of the other
        ran = room.attempt(number, only=[f"tests/sealed/test_a.py::{name}" for name in ("test_state", "test_spoil")])
        assert set(ran.outcomes().values()) == {"passed"}, ran.failures()
        told.append(json.loads(ran.phase("tests/sealed/test_a.py::test_state", "call")["output"]))
    assert told[0] == told[1] == told[2]
    assert told[3]["product"] == told[0]["product"]
    for key in ("random", "counter", "cached", "re", "filters", "handlers", "names"):
        assert told[3]["here"][key] == told[0]["here"][key], key


def test_what_a_start_made_is_not_counted_in_attempts(open_room):
    """Counting references writes to a page, and the first write after a fork copies it."""
    sealed = """
import sys, json, decimal
IMMORTAL = 1 << 30
def test_kept():
    for kept in (json.dumps, json.dumps.__code__.co_consts, json, decimal.Decimal, vars(json)):
        assert sys.getrefcount(kept) > IMMORTAL
    assert sys.getrefcount(test_kept) < IMMORTAL
    assert sys.getrefcount(object()) < IMMORTAL
"""
    attempt = open_room({"tests/sealed/test_a.py": sealed}).attempt(0)
    assert attempt.outcomes() == {"tests/sealed/test_a.py::test_kept": "passed"}, attempt.failures()

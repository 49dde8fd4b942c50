"""What cases read: counted for each case and process, and nothing that the runner reads itself."""

import pytest

FILE = "tests/sealed/test_a.py"
PRODUCT = """
import asyncio, os, random, select, socket, subprocess, threading, time

def nothing(): return 1
def wall(): return time.time()
def monotonic(): return time.monotonic()
def entropy(): return os.urandom(8)
def drawn(): return random.random()
def urandom():
    with open("/dev/urandom", "rb", 0) as device:
        return device.read(8)
def listing(): return os.listdir("/tmp")
def lookup():
    try:
        socket.getaddrinfo("example.org", 80)
    except OSError:
        return 1
def connect():
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", 9))
def server():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        return 1
def sleep(): time.sleep(0.001)
def event(): return threading.Event().wait(0.001)
def loop(): return asyncio.run(asyncio.sleep(0.001))
def thread():
    worker = threading.Thread(target=nothing)
    worker.start()
    worker.join()
def turns():
    import sys
    ended, count, usual = [], [], sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    def work():
        while not ended: count.append(1)
    worker = threading.Thread(target=work)
    worker.start()
    while len(count) < 2000: pass
    ended.append(1)
    worker.join()
    sys.setswitchinterval(usual)
def child(): return subprocess.run(["date"], capture_output=True).stdout
def local():
    one, other = socket.socketpair()
    with one, other:
        one.sendall(b"x")
        return other.recv(1)
"""
# What each names at least; monotonic clocks are read by much that waits.
NAMES = {
    "nothing": set(), "wall": {"wall_clock"}, "monotonic": {"monotonic"}, "entropy": {"entropy"}, "drawn": {"entropy"},
    "urandom": {"urandom"}, "listing": {"listings"}, "lookup": {"sockets"}, "connect": {"sockets"},
    "server": {"servers"}, "sleep": {"sleeps"}, "event": {"sleeps"}, "loop": {"sleeps"}, "thread": {"threads"}, "turns": {"threads"},
    "child": {"wall_clock"}, "local": set(),
}  # fmt: skip
TESTS = "import src_of as product\n" + "".join(f"def test_{name}(): product.{name}()\n" for name in NAMES)


def reads(attempt, side):
    found = {}
    for name in NAMES:
        frame = attempt.frames[f"{FILE}::test_{name}"]
        assert attempt.outcome(frame["node"]) == "passed", attempt.failures()
        other = "oracle" if side == "product" else "product"
        assert frame["reads"][other] in ({}, {"monotonic": frame["reads"][other].get("monotonic")}), name
        found[name] = set(frame["reads"][side]) - (set() if name == "monotonic" else {"monotonic"})
    return found


@pytest.mark.parametrize("isolation", ["split", "shared"])
def test_each_source_is_named(open_room, isolation):
    policy = {"shared": []} if isolation == "split" else {}
    room = open_room({FILE: TESTS, "src/src_of.py": PRODUCT}, policy)
    side = "product" if isolation == "split" else "oracle"
    attempt = room.attempt(0)
    found = reads(attempt, side)
    # Threads that take turns have the clock read thousands of times, for nothing that they could tell.
    assert attempt.frames[f"{FILE}::test_turns"]["reads"][side].get("monotonic", 0) < 100
    # A listing of folders for an import is the interpreter's own, and so is the socket pair of a loop.
    assert found == NAMES | {"child": found["child"], "loop": found["loop"]}
    assert found["child"] >= NAMES["child"] and found["loop"] >= NAMES["loop"]


def test_what_an_empty_case_costs(open_room):
    body = "import pytest, unittest\n@pytest.fixture\ndef thing(tmp_path): yield tmp_path\n"
    body += "def test_one(): pass\nclass TestTwo(unittest.TestCase):\n    def test_two(self): pass\n"
    body += "def test_skips(): pytest.skip('no')\ndef test_fails(): assert 1 == 2\ndef test_prints(): print('x')\n"
    attempt = open_room({FILE: body}).attempt(0)
    assert len(attempt.frames) == 5
    for node, frame in attempt.frames.items():
        assert frame["reads"] == {"oracle": {}, "product": {}}, node


def test_an_attempt_that_spoils_its_page_spoils_nothing_else(open_room):
    spoil = """
import os
def test_spoil():
    path = f"/run/tribunal/counts/{os.getuid()}"
    with open(path, "r+b", 0) as page:
        page.write(b"\\xff" * 4096)
        page.seek(0, 2)
        page.write(bytes(1 << 20))
def test_next(): pass
"""
    room = open_room({FILE: spoil})
    for number in range(3):
        attempt = room.attempt(number)
        assert attempt.end["end"] == "finished", attempt.failures()
        assert set(attempt.outcomes().values()) == {"passed"}, attempt.failures()


def test_cases_and_listings_come_the_other_way_round(open_room):
    body = """
import os
SEEN = []
def test_one(): SEEN.append(1); raise AssertionError(str(SEEN))
def test_two(tmp_path):
    for name in "bca":
        (tmp_path / name).write_text("")
    SEEN.append(2)
    raise AssertionError(f"{SEEN} {os.listdir(tmp_path)}")
"""
    room = open_room({FILE: body})

    def said(**order):
        attempt = room.attempt(**order)
        assert attempt.end["end"] == "finished"
        return [attempt.phase(f"{FILE}::test_{name}", "call")["exception"]["message"] for name in ("one", "two")]

    assert said(number=0) == ["[1]", "[1, 2] ['a', 'b', 'c']"]
    assert said(number=1, reversed="cases") == ["[2, 1]", "[2] ['a', 'b', 'c']"]
    assert said(number=2, reversed="listings") == ["[1]", "[1, 2] ['c', 'b', 'a']"]
    room.order(3, reversed="both")
    assert list(room.until("trouble"))[-1]["code"] == "bad-order"


def test_a_collection_of_garbage_after_a_property_reads_no_clock(open_room):
    body = "import gc\nfrom hypothesis import given, strategies\n"
    body += "@given(strategies.integers())\ndef test_property(n): assert n == n\n"
    body += "def test_after(): gc.collect()\n"
    attempt = open_room({FILE: body}).attempt(0)
    assert attempt.outcome(f"{FILE}::test_after") == "passed", attempt.failures()
    assert attempt.frames[f"{FILE}::test_after"]["reads"] == {"oracle": {}, "product": {}}

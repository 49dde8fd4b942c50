"""Cassettes: pins of one case alone, the listings on record, and what is told of both."""

import base64
import hashlib

import pytest
from room import Room, Trouble, lay

FILE = "tests/sealed/test_a.py"
BEFORE, CASE, AFTER = f"{FILE}::test_before", f"{FILE}::test_case", f"{FILE}::test_after"
SHOWS = """
import os, random, time, uuid
def show():
    raise AssertionError(f"{time.time():.0f} {os.urandom(2).hex()} {random.getrandbits(16)}")
"""
TESTS = """
from helper import show
def test_before(): show()
def test_case(): show()
def test_after(): show()
"""


def record(node=CASE, **more):
    return {"type": "cassette", "node": node, "clock": None, "seed": None, "fs": {}, "http": []} | more


def said(attempt):
    return {node: attempt.phase(node, "call")["exception"]["message"].split() for node in attempt.cases}


@pytest.fixture(params=["split", "shared"])
def isolation(request):
    return {"shared": []} if request.param == "split" else {}


def test_a_clock_and_a_seed_are_those_of_the_case_alone(open_room, isolation):
    room = open_room({FILE: TESTS, "src/helper.py": SHOWS}, isolation)
    room.send(record(clock="2001-02-03T04:05:06Z", seed=7))
    first, second = (room.attempt(number) for number in (0, 1))
    words = said(first)
    assert words == said(second)
    assert words[CASE][0] == "981173106"
    assert words[BEFORE][0] == words[AFTER][0] == "1789171200"
    # What is drawn by the seeded generator: 7's only there.
    assert words[BEFORE][2] == words[AFTER][2] != words[CASE][2]
    # No stream of the system's entropy repeats an earlier one.
    assert len({word[1] for word in words.values()}) == 3
    assert first.frames[CASE]["cassette"] == {"used": ["clock", "rng_seed"], "misses": []}
    assert "cassette" not in first.frames[BEFORE] and "cassette" not in first.frames[AFTER]


def test_a_case_begins_its_streams_anew_whatever_ran_before(open_room, isolation):
    room = open_room({FILE: TESTS, "src/helper.py": SHOWS}, isolation)
    room.send(record(seed=20260912))
    alone = said(room.attempt(0, only=[CASE]))
    assert said(room.attempt(1))[CASE] == alone[CASE]


def test_what_was_not_read_is_not_used(open_room):
    room = open_room({FILE: "def test_case(): pass\n"})
    room.send(record(clock="2001-02-03T04:05:06Z", seed=7, fs={"/tmp/out": ["a"]}))
    assert room.attempt(0).frames[CASE]["cassette"] == {"used": [], "misses": []}


LISTS = """
import os
def listed(path, made):
    if made is not None:
        os.mkdir(path)
        for name in made:
            open(f"{path}/{name}", "w").close()
    return os.listdir(path), sorted(entry.name for entry in os.scandir(path)), [e.is_file() for e in os.scandir(path)]
"""


@pytest.mark.parametrize(
    ("made", "recorded", "seen", "misses"),
    [
        (["a", "b", "c"], ["b", "c", "a"], ["b", "c", "a"], False),
        (["a", "b", "c"], ["b", "a"], ["b", "a", "c"], True),
        (["a"], ["b", "a"], ["a"], True),
        (None, ["n-101.json", "n-100.json"], ["n-101.json", "n-100.json"], False),
        (None, [], [], False),
    ],
)
def test_listings(open_room, isolation, made, recorded, seen, misses):
    body = f"from helper import listed\ndef test_case(): assert listed('/tmp/out', {made}) == ({seen}, {sorted(seen)}, {[True] * len(seen)})\n"
    room = open_room({FILE: body, "src/helper.py": LISTS}, isolation)
    room.send(record(fs={"/tmp/other": ["x"], "/tmp/out": recorded}))
    attempt = room.attempt(0)
    assert attempt.outcome(CASE) == "passed", attempt.failures()
    assert attempt.frames[CASE]["cassette"] == {"used": ["fs:/tmp/out"], "misses": ["fs:/tmp/out"] if misses else []}


ASKS = """
import socket
def ask(kind, address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, kind) as client:
        client.settimeout(5)
        try:
            client.sendto(b"?", (address, port)) if kind is socket.SOCK_DGRAM else client.connect((address, port))
        except OSError:
            pass
"""
ASKING = """
import socket
from helper import ask
def test_case():
    for address in ("127.0.0.1", "127.8.8.8", "0.0.0.0"):
        ask(socket.SOCK_STREAM, address, 9)
def test_four():
    ask(socket.SOCK_STREAM, "192.0.2.7", 443)
    ask(socket.SOCK_STREAM, "192.0.2.8", 443)
def test_sent():
    ask(socket.SOCK_DGRAM, "192.0.2.9", 53)
def test_six():
    ask(socket.SOCK_STREAM, "2001:db8::7", 80)
def test_without():
    ask(socket.SOCK_STREAM, "192.0.2.7", 443)
def test_again():
    pass
"""


def test_an_address_instead_of_a_name_is_a_miss(open_room, isolation):
    room = open_room({FILE: ASKING, "src/helper.py": ASKS}, isolation)
    asking = {
        "case": [], "four": ["address:192.0.2.7:443"], "sent": ["address:192.0.2.9:53"],
        "six": ["address:[2001:db8::7]:80"], "again": [],
    }  # fmt: skip
    for name in asking:
        room.send(record(f"{FILE}::test_{name}"))
    attempt = room.attempt(0)
    assert set(attempt.outcomes().values()) == {"passed"}, attempt.failures()
    for name, misses in asking.items():
        assert attempt.frames[f"{FILE}::test_{name}"]["cassette"] == {"used": [], "misses": misses}, name
    assert "cassette" not in attempt.frames[f"{FILE}::test_without"]


def test_a_folder_that_is_on_record_is_gone_again_for_the_next_case(open_room):
    body = """
import os, pytest
def test_case(): assert os.listdir("/tmp/out") == ["x"]
def test_next():
    with pytest.raises(FileNotFoundError):
        os.listdir("/tmp/out")
"""
    room = open_room({FILE: body})
    room.send(record(fs={"/tmp/out": ["x"]}))
    attempt = room.attempt(0)
    assert set(attempt.outcomes().values()) == {"passed"}, attempt.failures()


def test_a_case_that_dies_tells_what_it_used(open_room):
    room = open_room(
        {FILE: "import os, time\ndef test_case():\n    time.time()\n    os.listdir('/tmp/out')\n    os._exit(3)\n"}
    )
    room.send(record(fs={"/tmp/out": ["x"]}, clock="2001-02-03T04:05:06Z"))
    attempt = room.attempt(0)
    assert attempt.end["end"] == "exited"
    assert attempt.frames[CASE]["cassette"]["used"] == ["fs:/tmp/out"]


def test_a_case_that_takes_its_word_away_hangs_alone(open_room):
    body = "import os\ndef test_case():\n    os.closerange(3, 4096)\ndef test_next(): pass\n"
    room = open_room({FILE: body}, {"case_timeout_ms": 3000})
    room.send(record(clock="2001-02-03T04:05:06Z"))
    attempt = room.attempt(0)
    assert attempt.end["end"] != "finished"


@pytest.mark.parametrize(
    "orders",
    [
        [record(seed=-1)],
        [record(seed=True)],
        [record(clock="yesterday")],
        [record(fs={"/a": [1]})],
        [record(http=[{"method": "GET"}])],
        [record(), record()],
        [{"type": "body", "sha256": "00", "data": "eA==", "more": False}],
        [{"type": "body", "sha256": "00", "data": "?", "more": True}],
    ],
)
def test_a_record_of_the_wrong_shape(open_room, orders):
    room = open_room({FILE: "def test_case(): pass\n"})
    for order in orders:
        room.send(order)
    assert list(room.until("trouble"))[-1]["code"] == "bad-order"


def test_records_come_before_the_first_attempt(open_room, tmp_path):
    with Room(lay(tmp_path / "early", {FILE: "def test_case(): pass\n"})) as early:
        early.send(record())
        assert list(early.until("trouble"))[-1]["code"] == "bad-order"
    room = open_room({FILE: "def test_case(): pass\n"})
    body = b"a body in two pieces"
    for piece, more in ((body[:7], True), (body[7:], False)):
        data = base64.b64encode(piece).decode()
        room.send({"type": "body", "sha256": hashlib.sha256(body).hexdigest(), "data": data, "more": more})
    assert room.attempt(0).outcome(CASE) == "passed"
    room.send(record())
    with pytest.raises(Trouble):
        room.attempt(1)

"""Attempts that were made ready before their orders, and before src: nothing of the tree has run in them until then."""

import json
import subprocess

import pytest
from room import Room, lay

STATE = """
import json, os, random, sys, time
SEEN = [random.random(), time.time(), os.environ["TRIBUNAL_SEED"], os.environ["SOURCE_DATE_EPOCH"]]
def seen(): return [*SEEN, random.random(), time.time(), os.environ["TRIBUNAL_SEED"], os.environ["PYTHONHASHSEED"]]
"""
SEALED = """
import json, lib, os, sys, zlib
from conftest import seen
def test_state():
    print(json.dumps([seen(), lib.seen(), sys.path, zlib.crc32(repr(sorted(sys.modules)).encode()),
        [type(each).__name__ for each in sys.meta_path], os.getcwd()]))
def test_clock():
    assert lib.time.time() > 0
"""
NODE = "tests/sealed/test_a.py::test_state"
FILES = {"src/lib.py": STATE, "tests/sealed/conftest.py": STATE, "tests/sealed/test_a.py": SEALED}
FILTERED = "[pytest]\nfilterwarnings =\n    error::lib.Odd\n"


@pytest.fixture
def warmed(tmp_path):
    rooms = []

    def enter(files, ahead):
        room = Room(lay(tmp_path / f"tree{len(rooms)}", files), {"shared": []}, memory="1g")
        rooms.append(room)
        room.configure(warm=True, ahead=ahead)
        return room

    yield enter
    for room in rooms:
        room.__exit__()


def waiting(room, number):
    """Pids of the processes that wait for the order of a part, by their users."""
    first = 70_000 + 2 * number
    told = subprocess.run(
        ["docker", "exec", room.name, "/usr/bin/python3", "-c", """
import os, pathlib
for name in os.listdir("/proc"):
    if name.isdigit():
        print(name, pathlib.Path("/proc", name, "status").read_text().split("Uid:")[1].split()[0])
"""],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    rows = (line.split() for line in told.splitlines())
    return [int(pid) for pid, uid in rows if int(uid) in (first, first + 1)]


def test_an_attempt_that_waited_is_as_one_that_is_forked_for_its_order(warmed):
    room = warmed(FILES, [0, 0, 1])
    told = []
    for number, start in ((0, 0), (1, 0), (3, 0), (2, 1), (4, 1)):
        assert len(waiting(room, number)) == (0 if number > 2 else 2)
        ran = room.attempt(number, start=start)
        assert set(ran.outcomes().values()) == {"passed"}, ran.failures()
        reads = ran.frames["tests/sealed/test_a.py::test_clock"]["reads"]
        told.append((json.loads(ran.phase(NODE, "call")["output"]), reads))
        assert not waiting(room, number)
    assert told[0] == told[1] == told[2]
    assert told[3] == told[4]


def test_what_the_configuration_names_is_imported_under_the_pins(warmed):
    """A filter of warnings names a class of the product's: pytest imports it before anything is collected."""
    product = STATE + "class Odd(UserWarning): pass\n"
    sealed = """
import json, lib, pytest, warnings
def test_state():
    print(json.dumps(lib.seen()))
    with pytest.raises(lib.Odd):
        warnings.warn(lib.Odd("x"))
"""
    room = warmed({"pytest.ini": FILTERED, "src/lib.py": product, "tests/sealed/test_a.py": sealed}, [0])
    told = []
    for number in (0, 1):
        ran = room.attempt(number, start=0)
        assert ran.outcomes() == {NODE: "passed"}, ran.failures()
        told.append(json.loads(ran.phase(NODE, "call")["output"]))
    assert told[0] == told[1]


def test_one_that_died_while_it_waited_is_made_anew(warmed):
    room = warmed(FILES, [0, 0])
    lost = waiting(room, 1)
    kill = f"import os; os.kill({lost[0]}, 9)"
    subprocess.run(["docker", "exec", room.name, "/usr/bin/python3", "-c", kill], check=True)
    for number in (0, 1):
        ran = room.attempt(number, start=0)
        assert set(ran.outcomes().values()) == {"passed"}, ran.failures()
        assert ran.end["end"] == "finished"


def test_one_that_waits_for_another_part_is_not_taken(warmed):
    room = warmed(FILES, [0, 0])
    other = waiting(room, 1)
    ran = room.attempt(1, start=1)
    assert set(ran.outcomes().values()) == {"passed"}, ran.failures()
    assert json.loads(ran.phase(NODE, "call")["output"])[0][-1] == "7"
    assert len(other) == 2


def test_it_is_taken_for_whatever_part_of_its_start_comes(warmed):
    """How many attempts each start has is not known before the score."""
    room = warmed(FILES, [0, 0, 1])
    assert waiting(room, 2)
    ran = room.attempt(0, start=1)
    assert (ran.end["uid"], waiting(room, 2)) == (70_004, [])
    assert set(ran.outcomes().values()) == {"passed"}, ran.failures()
    assert [room.attempt(number, start=0).end["uid"] for number in (1, 2, 3)] == [70_000, 70_002, 70_006]


def test_no_attempt_reaches_those_that_wait(warmed):
    hostile = """
import os, signal
def f():
    reached = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            for act in (
                lambda: os.kill(int(name), signal.SIGKILL), lambda: open(f"/proc/{name}/mem", "r+b"),
                lambda: open(f"/proc/{name}/fd/3", "rb"), lambda: open(f"/proc/{name}/environ", "rb").read(1),
                lambda: os.sched_setaffinity(int(name), {0}), lambda: os.setpriority(os.PRIO_PROCESS, int(name), 19),
            ):
                try:
                    act()
                except OSError:
                    continue
                reached.append(name)
    try:
        os.kill(-1, signal.SIGSTOP)
    except OSError:
        pass
    return reached
"""
    sealed = "import lib\ndef test_a():\n    assert lib.f() == []\n"
    room = warmed({"src/lib.py": hostile, "tests/sealed/test_a.py": sealed}, [0, 0, 0])
    before = waiting(room, 1), waiting(room, 2)
    assert all(len(each) == 2 for each in before)
    first = room.attempt(0, start=0)
    assert first.outcomes() == {"tests/sealed/test_a.py::test_a": "passed"}, first.failures()
    assert (waiting(room, 1), waiting(room, 2)) == before
    assert room.attempt(1, start=0).outcomes() == first.outcomes()


def test_starvation_and_costs_of_the_time_before_are_not_those_of_the_attempt(warmed):
    sealed = "import lib\ndef test_a(): assert lib.f()\n"
    room = warmed({"src/lib.py": "def f(): return 1\n", "tests/sealed/test_a.py": sealed}, [0] * 4)
    costs = [room.attempt(number, start=0).end["cpu_ms"] for number in range(8)]
    assert 0 < min(costs[:4]) < min(costs[4:]), costs

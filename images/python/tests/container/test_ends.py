"""How an attempt can end, and what is told of the case it was in."""

import time

import pytest

FIRST = "def test_first(): pass\n"
NODE = "tests/sealed/test_a.py::"


def sealed(body: str, product: str = "") -> dict[str, str]:
    return {
        "src/lib.py": product,
        "tests/sealed/test_a.py": f"import lib\n{FIRST}def test_second(): {body}\ndef test_third(): pass\n",
    }


def told(ran, when="call"):
    """The attempt went as far as the second case, and no further."""
    assert list(ran.cases) == [NODE + "test_first", NODE + "test_second"]
    assert ran.outcome(NODE + "test_first") == "passed"
    last = ran.cases[NODE + "test_second"][-1]
    assert (last["when"], last["outcome"], last["reported"]) == (when, "failed", False)
    assert (ran.end["running"], ran.end["phase"]) == (NODE + "test_second", when)
    return ran.end


@pytest.mark.parametrize(
    ("product", "end", "code", "signal"),
    [
        ("import os\ndef go(): os._exit(0)\n", "exited", 0, None),
        ("import os\ndef go(): os._exit(3)\n", "exited", 3, None),
        ("import os, signal\ndef go(): os.kill(os.getpid(), signal.SIGKILL)\n", "killed", None, 9),
        ("import ctypes\ndef go(): ctypes.string_at(0)\n", "killed", None, 11),
        ("import os, signal\ndef go(): os.killpg(0, signal.SIGTERM)\n", "killed", None, 15),
    ],
)
def test_leaving_early(attempt, product, end, code, signal):
    ran = attempt(sealed("lib.go()", product))
    told(ran)
    assert (ran.end["end"], ran.end["exit_code"], ran.end["signal"]) == (end, code, signal)


def test_every_exit_code_before_the_end_is_no_end(attempt):
    """The code that PID 1 expects is worth nothing without the last record."""
    product = "import os\ndef go():\n    for code in range(80, 120):\n        if os.fork() == 0: os._exit(code)\n    os._exit(100)\n"
    ran = attempt(sealed("lib.go()", product))
    assert told(ran)["end"] == "exited"


def test_pytest_exit_ends_the_session_and_is_no_end(attempt):
    ran = attempt(sealed("lib.go()", "import pytest\ndef go(): pytest.exit('done', returncode=0)\n"))
    assert list(ran.cases) == [NODE + "test_first"] or ran.outcome(NODE + "test_second") == "failed"
    assert NODE + "test_third" not in ran.cases
    assert ran.end["end"] == "exited"


def test_exit_handlers_and_threads_change_nothing(attempt):
    product = """
import atexit, os, sys, threading, time
atexit.register(os._exit, 0)
sys.exit = os._exit = lambda *_: None
threading.Thread(target=time.sleep, args=(30,)).start()
"""
    ran = attempt(sealed("assert False", product))
    assert ran.end["end"] == "finished"
    assert ran.outcome(NODE + "test_second") == "failed"


def test_a_fork_that_comes_back_says_nothing(attempt):
    product = "import os\ndef go():\n    pid = os.fork()\n    if pid: os.waitpid(pid, 0)\n"
    ran = attempt(sealed("lib.go()", product))
    assert ran.end["end"] == "finished"
    assert set(ran.outcomes().values()) == {"passed"}, ran.failures()


def test_a_parent_that_leaves_its_child_to_finish(attempt):
    product = "import os\nif os.fork(): os._exit(0)\n"
    ran = attempt(sealed("pass", product))
    assert ran.end["end"] == "exited"
    assert ran.cases == {}


def test_bytes_that_are_no_record(attempt):
    product = """
import os, json
for fd in range(3, 1024):
    try: os.write(fd, (json.dumps({"kind": "end"}) + "\\n").encode())
    except OSError: pass
"""
    ran = attempt(sealed("pass", product))
    assert ran.end["end"] == "protocol"
    assert ran.cases == {}


def test_descriptors_that_are_closed(attempt):
    ran = attempt(sealed("lib.go()", "import os\ndef go(): os.closerange(0, 4096)\n"))
    assert ran.end["end"] in ("exited", "killed")
    assert NODE + "test_third" not in ran.cases


def test_a_case_that_takes_too_long(attempt):
    product = """
import signal, time
def go():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM): signal.signal(number, signal.SIG_IGN)
    print("before the wait", flush=True)
    while True: time.sleep(60)
"""
    started = time.monotonic()
    ran = attempt(sealed("lib.go()", product), {"case_timeout_ms": 700})
    end = told(ran)
    assert (end["end"], end["signal"]) == ("case-timeout", 9)
    assert ran.cases[NODE + "test_second"][-1]["output"] == "before the wait\n"
    assert 700 <= end["wall_ms"] < 15_000
    assert time.monotonic() - started < 40  # of one hour


def test_an_attempt_that_takes_too_long(attempt):
    ran = attempt(sealed("pass", "import time\ntime.sleep(60)\n"), {"attempt_timeout_ms": 800})
    assert (ran.end["end"], ran.end["running"], ran.end["phase"]) == ("attempt-timeout", None, None)
    assert ran.cases == {}


def test_a_teardown_that_hangs(attempt):
    files = {
        "tests/sealed/test_a.py": "import pytest, time\n"
        + FIRST
        + "@pytest.fixture\ndef slow():\n    yield\n    time.sleep(60)\ndef test_second(slow): pass\n"
    }
    ran = attempt(files, {"case_timeout_ms": 600})
    assert told(ran, "teardown")["end"] == "case-timeout"
    assert ran.phase(NODE + "test_second", "call")["outcome"] == "passed"


def test_busy_threads_are_told_from_a_busy_machine(attempt):
    """A case that burns its own processor time was not starved."""
    ran = attempt(sealed("lib.go()", "def go():\n    while True: pass\n"), {"case_timeout_ms": 1000})
    end = told(ran)
    assert end["end"] == "case-timeout"
    assert end["cpu_ms"] + end["run_delay_ms"] > 500


HOG = "hold = []\nwhile True: hold.append(bytearray(16 << 20))"


def test_out_of_memory(open_room):
    product = f"def go():\n    {HOG.replace(chr(10), chr(10) + '    ')}\n"
    room = open_room(sealed("lib.go()", product), memory="256m")
    for number in range(2):  # the judge survives it
        ran = room.attempt(number)
        end = told(ran)
        assert (end["end"], end["signal"]) == ("out-of-memory", 9)
        assert end["oom_kills"] >= 1


def test_out_of_memory_of_a_child(open_room):
    product = f"import subprocess, sys\ndef go(): subprocess.run([sys.executable, '-c', {HOG!r}])\n"
    room = open_room(sealed("lib.go()", product), memory="256m")
    ran = room.attempt()
    assert ran.end["end"] == "finished"
    assert ran.end["oom_kills"] == 1


def test_being_killed_after_a_child_ran_out_is_still_a_kill_by_memory_or_not(open_room):
    ran = open_room(sealed("lib.go()", "import os\ndef go(): os.kill(os.getpid(), 9)\n"), memory="256m").attempt()
    assert (ran.end["end"], ran.end["oom_kills"]) == ("killed", 0)


def test_a_flood_of_output(attempt):
    product = "import os\ndef go():\n    while True: os.write(1, b'.' * 1023 + b'\\n')\n"
    ran = attempt(sealed("lib.go()", product), {"output_bytes": 100_000})
    assert told(ran)["end"] == "output-limit"
    assert ran.end["output_bytes"] > 1_000_000
    assert "cut" in ran.cases[NODE + "test_second"][-1]["output"]


def test_much_output_is_cut_with_a_mark(attempt):
    product = "def go(): print('x' * 150_000)\n"
    ran = attempt(sealed("lib.go(); assert False", product), {"output_bytes": 100_000})
    assert ran.end["end"] == "finished"
    text = ran.phase(NODE + "test_second", "call")["output"]
    assert text.startswith("[output cut: more than 100000 bytes]\n")
    assert len(text) < 4100


def test_output_goes_to_the_phase_that_printed_it(attempt):
    files = {
        "tests/sealed/test_a.py": """
import os, pytest, subprocess, sys
@pytest.fixture
def loud():
    print("setting up")
    yield
    os.write(2, b"tearing down\\n")
def test_one(loud):
    print("one"); sys.stderr.write("err\\n"); os.write(1, b"raw\\n"); print("no newline", end="")
def test_two(): subprocess.run(["/bin/echo", "child"])
def test_capture(capsys, capfd_not=None):
    print("captured"); assert capsys.readouterr().out == "captured\\n"
def test_capfd(capfd):
    os.system("echo from-fd"); assert capfd.readouterr().out == "from-fd\\n"
def test_quiet(): pass
def test_odd(): os.write(1, b"\\xff\\x00\\xed\\xa0\\x80end")
"""
    }
    ran = attempt(files)
    assert set(ran.outcomes().values()) == {"passed"}, ran.failures()
    text = {(node.split("::")[1], phase["when"]): phase["output"] for node in ran.cases for phase in ran.cases[node]}
    assert text["test_one", "setup"] == "setting up\n"
    assert text["test_one", "call"] == "one\nerr\nraw\nno newline"
    assert text["test_one", "teardown"] == "tearing down\n"
    assert text["test_two", "call"] == "child\n"
    assert text["test_quiet", "call"] == ""
    assert text["test_odd", "call"].endswith("end")


def test_a_fork_bomb_is_cleared_away(open_room):
    product = """
import os, time
def go():
    for _ in range(20):
        try:
            if os.fork() == 0:
                while True:
                    try: os.fork()
                    except OSError: pass
        except OSError: pass
    time.sleep(0.3)
    os._exit(1)
"""
    room = open_room(sealed("lib.go()", product), {"case_timeout_ms": 4000}, pids=100)
    for number in range(2):
        assert told(room.attempt(number))["end"] in ("exited", "case-timeout")  # it may starve itself
    room.order(2, only=[NODE + "test_first"])
    *_, end = room.until("attempt-end")
    assert end["end"] == "finished"


def test_the_server_hangs_up(open_room):
    room = open_room(sealed("lib.go()", "import time\ndef go(): time.sleep(60)\n"))
    room.order(0)
    assert room.receive()["type"] == "collected"
    assert room.hang_up() == 0

"""A split part: two processes of two users that share files and nothing else, and how it ends when either leaves."""

import json
import os
import textwrap

import pytest

SEALED = "tests/sealed/test_a.py"
LIB = """
import os, pathlib, signal, sys, threading, time
def status(pid="self"):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return {words[0].rstrip(":"): words[1:] for words in map(str.split, lines) if words}
def read(path): return pathlib.Path(path).read_text()
def write(path, text):
    pathlib.Path(path).write_text(text)
    return os.stat(path).st_uid
def delete(path): os.unlink(path)
def exists(path): return os.path.exists(path)
def draw(): return __import__("random").random()
def env(): return dict(os.environ)
def uid(): return os.getuid()
def refused(code):
    try: eval(code, globals())
    except OSError as error: return type(error).__name__
    return "done"
def leave(code): os._exit(code)
def crash(number): os.kill(os.getpid(), number)
def eat():
    kept = []
    while True: kept.append(bytearray(8 << 20))
def hang():
    while True: time.sleep(1)
def spin(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until: pass
def later(seconds): threading.Timer(seconds, os._exit, (3,)).start()
def say(text): print(text, flush=True)
def child():
    if os.fork() == 0:
        os.setsid()
        while True: time.sleep(1)
def descriptors():
    return [fd for fd in range(3, 4096) if is_open(fd)]
def is_open(fd):
    try: os.fstat(fd)
    except OSError: return False
    return True
"""
HEAD = "import os, json, pathlib, lib\n"


def run(split, body, policy=None, **more):
    return split({SEALED: HEAD + textwrap.dedent(body), "src/lib.py": LIB, **more}, policy)


def end(ran):
    return {key: ran.end[key] for key in ("end", "exit_code", "signal", "running")}


def printed(ran, name):
    return json.loads(ran.phase(f"{SEALED}::{name}", "call")["output"])


def passed(ran):
    assert set(ran.outcomes().values()) == {"passed"}, ran.failures()
    assert ran.end["end"] == "finished"


def test_no_capability_is_left_in_either(split):
    ran = run(
        split,
        """
        def test_both():
            lines = pathlib.Path("/proc/self/status").read_text().splitlines()
            ours = {words[0].rstrip(":"): words[1:] for words in map(str.split, lines) if words}
            print(json.dumps([ours, lib.status()]))
        """,
    )
    passed(ran)
    oracle, product = printed(ran, "test_both")
    for status in (oracle, product):
        sets = {key: value for key, value in status.items() if key.startswith("Cap")}
        assert sets == {key: ["0" * 16] for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
        assert (status["NoNewPrivs"], status["Seccomp"]) == (["1"], ["2"])
    for key in ("Uid", "Gid"):
        assert oracle[key] == ["70000"] * 3 + ["70001"]
        assert product[key] == ["70001"] * 4
    assert (oracle["Groups"], product["Groups"]) == (["990"], [])


@pytest.mark.parametrize("place", ["tests/sealed", SEALED, "tests/sealed/conftest.py", "tests/sealed/deep/answers.txt"])
def test_the_sealed_tests_are_not_the_products_to_read(split, place):
    ran = run(
        split,
        f"""
        def test_refused():
            assert lib.refused("open('/tree/{place}')") == "PermissionError"
            assert lib.refused("os.listdir('/tree/tests/sealed')") == "PermissionError"
            assert not lib.exists("/tree/{SEALED}")
            assert lib.read("/tree/fixtures/sealed/table.csv") == "1,2"
            assert pathlib.Path("/tree/tests/sealed/deep/answers.txt").read_text() == "42"
        """,
        **{"tests/sealed/conftest.py": "", "tests/sealed/deep/answers.txt": "42", "fixtures/sealed/table.csv": "1,2"},
    )
    passed(ran)


def test_the_product_has_no_hold_on_the_oracle(split):
    ran = run(
        split,
        """
        ACTS = '''
        open("/proc/{pid}/mem", "rb")
        open("/proc/{pid}/environ", "rb")
        open("/proc/{pid}/maps", "rb")
        open("/proc/{pid}/stack", "rb")
        open("/proc/{pid}/syscall", "rb")
        open("/proc/{pid}/auxv", "rb")
        os.listdir("/proc/{pid}/fd")
        os.listdir("/proc/{pid}/map_files")
        os.readlink("/proc/{pid}/exe")
        os.readlink("/proc/{pid}/cwd")
        os.listdir("/proc/{pid}/root")
        open("/proc/{pid}/fd/200", "wb")
        open("/proc/{pid}/oom_score_adj", "w").write("-1")
        os.kill({pid}, 0)
        os.kill({pid}, signal.SIGSTOP)
        os.killpg({pid}, signal.SIGKILL)
        os.sched_setaffinity({pid}, [0])
        os.setpriority(os.PRIO_PROCESS, {pid}, 19)
        os.setuid({uid})
        os.setgid(990)
        os.setgroups([990])
        os.kill(1, 9)
        '''
        def test_refused():
            for act in ACTS.strip().splitlines():
                act = act.strip().format(pid=os.getpid(), uid=os.getuid())
                assert lib.refused(act) in ("PermissionError", "FileNotFoundError"), act
        def test_ptrace():
            code = "__import__('ctypes').CDLL(None, use_errno=True).ptrace(16, %d, 0, 0)" % os.getpid()
            assert lib.refused(f"write('/tmp/ptrace', str({code}))") == "done"
            assert pathlib.Path("/tmp/ptrace").read_text() == "-1"
        """,
    )
    passed(ran)


@pytest.mark.parametrize("cpu", [None, 0, 1, 7])
def test_both_keep_to_the_cpu_that_the_server_gives(open_room, cpu):
    body = """
        def test_where():
            lines = pathlib.Path("/proc/self/status").read_text().splitlines()
            own = {words[0].rstrip(":"): words[1:] for words in map(str.split, lines) if words}
            print(json.dumps([own["Cpus_allowed_list"][0], lib.status()["Cpus_allowed_list"][0], len(os.sched_getaffinity(0))]))
        def test_the_product_may_go_elsewhere():
            assert lib.widened()
        """
    room = open_room(
        {
            SEALED: HEAD + textwrap.dedent(body),
            "src/lib.py": LIB + "def widened():\n    os.sched_setaffinity(0, range(1024))\n    return True\n",
        },
        {"shared": []},
    )
    ran = room.attempt(0, cpu=cpu)
    passed(ran)
    own, theirs, shown = printed(ran, "test_where")
    everywhere = sorted(os.sched_getaffinity(0))
    wanted = {str(everywhere[cpu % len(everywhere)])} if cpu is not None else {own}
    assert {own, theirs} == wanted
    assert shown == 1
    if cpu is None and len(everywhere) > 1:
        assert not own.isdigit()
    # The next attempt is placed anew.
    passed(room.attempt(1))
    again = room.attempt(2, cpu=None)
    assert printed(again, "test_where")[0].isdigit() == (len(everywhere) == 1)


def test_every_link_is_there(split):
    """The last ones are for threads that the product starts."""
    ran = run(
        split,
        """
        import threading
        def test_threads_of_the_product_call_back():
            both, heard = threading.Barrier(2, timeout=60), []
            def call():
                both.wait()
                heard.append(threading.get_ident())
            lib.in_threads(call, 2)
            assert len(set(heard)) == 2
        def test_threads_of_the_tests():
            threads = [threading.Thread(target=lib.uid) for _ in range(5)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
        """,
        **{
            "src/lib.py": LIB
            + "def in_threads(function, count):\n"
            + "    threads = [threading.Thread(target=function) for _ in range(count)]\n"
            + "    for thread in threads: thread.start()\n"
            + "    for thread in threads: thread.join()\n"
        },
    )
    passed(ran)


@pytest.mark.parametrize("known", [True, False])
def test_a_new_name_does_not_take_a_tool_of_the_tests(split, known):
    """`own_names` are base's: what is new is the product's only where nothing else has the name."""
    ran = run(
        split,
        """
        import pluggy, iniconfig, fresh
        def test_names():
            assert (pluggy.__name__, fresh.MARK) == ("pluggy", "the product's")
            print(json.dumps([hasattr(each, "MARK") for each in (pluggy, iniconfig)]))
        """,
        {"own_names": ["lib", "iniconfig"]} if known else None,
        **{f"src/{name}.py": 'MARK = "the product\'s"' for name in ("pluggy", "iniconfig", "fresh")},
    )
    passed(ran)
    assert printed(ran, "test_names") == [not known, True]


def test_sealed_files_inside_a_package_of_the_product_are_no_product(split):
    """Their package and their helpers are imported beside the tests; the product cannot even read them."""
    files = {
        "src/pkg/__init__.py": "def twice(n): return n * 2\ndef pid():\n    import os\n    return os.getpid()\n",
        "src/pkg/tests/__init__.py": "import os\nHERE = os.getpid()\n",
        "src/pkg/tests/helper.py": "import os, pytest\nfrom pkg import twice\nHERE = os.getpid()\nclass Cases:\n    def test_inherited(self): assert twice(self.n) == 6\n",
        "src/pkg/tests/test_a.py": "import os, pkg\nfrom . import HERE, helper\nclass TestThree(helper.Cases):\n    n = 3\ndef test_where():\n    assert HERE == helper.HERE == os.getpid() != pkg.pid()\n",
    }
    ran = split(files, {"sealed_roots": ["src/pkg/tests/"]})
    passed(ran)
    assert len(ran.outcomes()) == 2


def test_each_uses_the_files_of_the_other(split):
    ran = run(
        split,
        """
        def test_ours(tmp_path):
            ours = tmp_path / "ours"
            ours.write_text("from the oracle")
            os.chmod(ours, 0o600)
            assert ours.stat().st_uid == lib.uid() == os.getuid() + 1
            assert lib.read(str(ours)) == "from the oracle"
            lib.write(str(ours), "changed")
            assert ours.read_text() == "changed"
            lib.delete(str(ours))
            assert not ours.exists()
        def test_theirs(tmp_path):
            theirs = tmp_path / "theirs"
            assert lib.write(str(theirs), "from the product") == lib.uid()
            assert theirs.read_text() == "from the product"
            os.chmod(theirs, 0o400)
            theirs.unlink()
            (tmp_path / "folder").mkdir()
            lib.write(str(tmp_path / "folder" / "x"), "")
            assert os.listdir(tmp_path / "folder") == ["x"]
        def test_home(): assert lib.write("/home/attempt/x", "y") and pathlib.Path("~/x").expanduser().read_text() == "y"
        """,
    )
    passed(ran)


def test_the_product_sees_the_environment_of_the_tests(split):
    ran = run(
        split,
        """
        def test_env(): assert lib.env() == dict(os.environ)
        def test_descriptors(): print(json.dumps(lib.descriptors()))
        def test_said(): lib.say("heard")
        """,
        {"timezone": "Europe/Berlin"},
    )
    passed(ran)
    found = printed(ran, "test_descriptors")
    assert len(found) == 8 and min(found) >= 200, found  # its ends of the links, and nothing else
    assert ran.phase(f"{SEALED}::test_said", "call")["output"] == "heard\n"


def test_the_products_path_has_no_runner(split):
    ran = run(
        split,
        """
        def test_path():
            assert not lib.exists("/nowhere")
            kinds = [lib.refused(f"exec('try: import {name}\\\\nexcept ImportError as e: raise OSError() from e')")
                     for name in ("pytest", "_pytest", "pluggy", "hypothesis")]
            assert kinds == ["OSError"] * 4
        """,
    )
    passed(ran)


@pytest.mark.parametrize(
    ("act", "told"),
    [
        ("lib.leave(0)", ("exited", 0, None)),
        ("lib.leave(7)", ("exited", 7, None)),
        ("lib.crash(11)", ("killed", None, 11)),
        ("lib.crash(9)", ("killed", None, 9)),
        ("lib.later(0.2); lib.hang()", ("exited", 3, None)),
    ],
)
def test_a_product_that_leaves_ends_the_attempt(split, act, told):
    ran = run(split, f"def test_before(): pass\ndef test_it():\n    {act}\ndef test_after(): pass\n")
    code, signal = told[1:]
    running = f"{SEALED}::test_it"
    assert end(ran) == {"end": told[0], "exit_code": code, "signal": signal, "running": running}
    assert list(ran.cases) == [f"{SEALED}::test_before", running]
    assert ran.cases[running][-1]["reported"] is False


def test_a_product_that_leaves_is_not_caught(split):
    body = """
    def test_it():
        try: lib.leave(0)
        except BaseException: pass
    """
    assert end(run(split, body))["end"] == "exited"


def test_a_product_that_eats_memory(open_room):
    room = open_room({SEALED: HEAD + "def test_it(): lib.eat()\n", "src/lib.py": LIB}, {"shared": []}, memory="384m")
    ran = room.attempt()
    assert end(ran) == {"end": "out-of-memory", "exit_code": None, "signal": 9, "running": f"{SEALED}::test_it"}
    assert ran.end["oom_kills"] >= 1
    assert room.attempt(1).end["end"] == "out-of-memory"


def test_a_product_that_hangs_and_one_that_works(split):
    ran = run(split, "def test_it(): lib.hang()\n", {"case_timeout_ms": 700})
    assert end(ran)["end"] == "case-timeout"
    ran = run(split, "def test_it(): lib.spin(0.5)\n")
    passed(ran)
    assert ran.end["cpu_ms"] >= 500


def test_nothing_stays_behind(open_room):
    body = """
    def others(uid):
        return [p for p in os.listdir("/proc") if p.isdigit() and os.stat("/proc/" + p).st_uid not in (0, uid, uid + 1)]
    def test_left():
        assert os.listdir("/tmp") in ([], ["pytest"])
        assert os.listdir("/home/attempt") == []
        assert not others(os.getuid())
    def test_leave():
        lib.child()
        lib.write("/tmp/x", "")
        lib.write("/home/attempt/x", "")
    """
    room = open_room({SEALED: HEAD + textwrap.dedent(body), "src/lib.py": LIB}, {"shared": []})
    for number in range(3):
        ran = room.attempt(number)
        passed(ran)
        assert ran.end["uid"] == 70_000 + 2 * number


def test_a_product_that_cannot_be_imported(split):
    ran = split({SEALED: "import lib\ndef test_it(): lib.f()\n", "src/lib.py": "import os\nos._exit(4)\n"})
    assert (ran.end["end"], ran.end["exit_code"]) == ("exited", 4)
    ran = split({SEALED: "def test_it():\n    import lib\n    lib.f()\n", "src/lib.py": "1/0\n"})
    assert (ran.end["end"], ran.outcome(f"{SEALED}::test_it")) == ("finished", "failed")


def test_every_case_draws_from_the_pinned_seed_in_both(split):
    body = """
    import random
    def drawn(): return random.random(), lib.draw()
    def test_one(): print(json.dumps(drawn()))
    def test_two(): print(json.dumps(drawn()))
    """
    ran = run(split, body)
    passed(ran)
    one = printed(ran, "test_one")
    assert one == printed(ran, "test_two")
    assert one[0] == one[1]


def test_a_null_product_raises_from_the_first_case_on(open_room):
    files = {SEALED: "import lib\nassert lib.f() == 1\ndef test_it(): lib.f()\n", "src/lib.py": "def f(): return 1\n"}
    ran = open_room(files, {"shared": []}).attempt(product="null")
    assert ran.outcomes() == {f"{SEALED}::test_it": "failed"}
    assert ran.phase(f"{SEALED}::test_it", "call")["exception"]["type"] == "NullProduct"


def test_files_run_as_the_list_says(open_room):
    own = "import os, lib\ndef test_it(): assert (lib.uid() == os.getuid()) is {}\n"
    files = {SEALED: own.format(False), "tests/sealed/test_b.py": own.format(True), "src/lib.py": LIB}
    room = open_room(files, {"shared": ["tests/sealed/test_b.py"]})
    for number, (isolation, file) in enumerate([("split", SEALED), ("shared", "tests/sealed/test_b.py")] * 2):
        ran = room.attempt(number, isolation=isolation)
        assert ran.outcomes() == {f"{file}::test_it": "passed"}, ran.failures()
        assert ran.end["end"] == "finished"


def test_a_text_of_the_products_that_becomes_code_is_heard(split):
    """By the native ear, which passes over every other event, and where a test traces its own code."""
    ran = run(
        split,
        """
        import pickle, sys
        def test_value(): assert eval(lib.text("[1, 2]")) == [1, 2]
        def test_reaching(): eval(lib.text("().__class__.__mro__"))
        def test_pickled():
            import pytest
            with pytest.raises(PermissionError): pickle.loads(lib.pickled())
        def test_traced():
            seen = []
            sys.settrace(lambda frame, *_: seen.append(frame.f_code.co_filename))
            try: exec(lib.text("x = 1"), {})
            finally: sys.settrace(None)
            assert "<string>" in seen and not [file for file in seen if "harness/split/texts" in file]
        """,
        **{"src/lib.py": LIB + "def text(t): return t\ndef pickled(): return b'cos\\nsystem\\n(S\"true\"\\ntR.'\n"},
    )
    assert set(ran.outcomes().values()) == {"passed"}, ran.failures()
    told = [tamper for case in ran.frames.values() for tamper in case["phases"][1]["tamper"]]
    assert any("a text becomes code that says __mro__" in str(tamper) for tamper in told), told
    assert any("a pickle asks for os.system" in str(tamper) for tamper in told), told
    assert not any(
        case["phases"][1]["tamper"] for node, case in ran.frames.items() if "value" in node or "traced" in node
    )


def test_a_test_that_seeds_means_what_the_product_draws(split):
    ran = run(
        split,
        """
        import random
        def drawn(seed): return [other.random() for other in [random.Random(seed)] for _ in range(2)]
        def test_seeded():
            random.seed(99)
            assert [lib.draw(), lib.draw()] == drawn(99)
        def test_the_last_one_counts():
            lib.draw()
            random.seed("a")
            random.seed(7, version=1)
            assert [lib.draw(), lib.draw()] == drawn(7)
            random.seed(8)
        def test_the_next_case_starts_anew():
            assert lib.draw() not in (drawn(7) + drawn(8) + drawn(99))
            assert random.random() not in (drawn(7) + drawn(8) + drawn(99))
        """,
    )
    assert set(ran.outcomes().values()) == {"passed"}, ran.failures()

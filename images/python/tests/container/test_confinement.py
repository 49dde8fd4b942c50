"""What an attempt is: its user, its privileges, its environment, its descriptors; and that nothing stays behind it."""

import json

PROBE = """
import json, os, pathlib, pwd, resource, sys, time
def status():
    return dict(line.split(":\\t", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines())
"""


def read(ran, name):
    return json.loads(ran.phase(f"tests/sealed/test_a.py::{name}", "call")["output"])


def test_no_privilege_is_left(attempt):
    ran = attempt(
        {
            "tests/sealed/test_a.py": PROBE
            + """
def test_status(): print(json.dumps(status()))
def test_limits(): print(json.dumps([resource.getrlimit(n) for n in (resource.RLIMIT_CORE, resource.RLIMIT_NOFILE)]))
def test_oom(): print(pathlib.Path("/proc/self/oom_score_adj").read_text())
def test_user():
    entry = pwd.getpwuid(os.getuid())
    print(json.dumps([os.getresuid(), os.getresgid(), os.getgroups(), entry.pw_name, entry.pw_dir, os.getsid(0) == os.getpid()]))
def test_cannot():
    for act in ACTS.strip().splitlines():
        try: eval(act)
        except OSError: continue
        raise AssertionError(act)
ACTS = '''
os.kill(1, 9)
os.kill(os.getppid(), 9)
os.setuid(0)
os.mkdir("/tree/x")
open("/tree/src/new.py", "w")
open("/tree/src/lib.py", "a")
os.rename("/tree/src", "/tree/x")
os.unlink("/tree/src/lib.py")
open("/run/tribunal/pins", "r+b")
open("/proc/1/mem", "rb")
open("/proc/self/mem", "rb")
os.listdir("/run/tribunal")
os.listdir("/proc/1/fd")
os.chroot("/tmp")
os.mkdir("/dev/x")
open("/etc/x", "w")
os.nice(-1)
'''
""",
            "src/lib.py": "",
        }
    )
    status = read(ran, "test_status")
    sets = {key: value for key, value in status.items() if key.startswith("Cap")}
    assert sets == dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), "0" * 16)
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    assert read(ran, "test_limits") == [[0, 0], [1024, 4096]]
    assert read(ran, "test_oom") == 1000
    assert read(ran, "test_user") == [[70000] * 3, [70000] * 3, [990], "attempt-70000", "/home/attempt", True]
    assert ran.outcome("tests/sealed/test_a.py::test_cannot") == "passed", ran.failures()


def test_the_environment_is_built_from_nothing(open_room):
    room = open_room(
        {
            "tests/sealed/test_a.py": PROBE
            + """
import locale, subprocess, lib
def test_descriptors():
    found = []
    for fd in range(3, 4096):
        try: os.fstat(fd)
        except OSError: continue
        found.append(fd)
    print(json.dumps(found))
def test_env(): print(json.dumps(dict(os.environ)))
def test_child(): print(subprocess.run(["/usr/bin/env"], capture_output=True, text=True).stdout.count("\\n"))
def test_state():
    print(json.dumps([os.getcwd(), sys.argv, sys.stdin.read(), os.cpu_count(), time.tzname[0], sys.flags.hash_randomization,
        hash("text"), sys.getfilesystemencoding(), sys.dont_write_bytecode, sys.modules["__main__"].__dict__.get("__file__"),
        oct(os.umask(0)), sys.stdout.isatty(), locale.getpreferredencoding()]))
def test_path(): print(json.dumps(sys.path))
def test_children_find_the_project():
    for words in (["-c"], ["-I", "-c"]):
        code = "import lib, sys, os; print(lib.VALUE, sys.flags.dont_write_bytecode)"
        assert subprocess.check_output([sys.executable, *words, code], env={}, text=True).startswith("3 ")
def test_spawn():
    import multiprocessing
    with multiprocessing.get_context("spawn").Pool(1) as pool: assert pool.apply(lib.double, (4,)) == 8
""",
            "src/lib.py": "VALUE = 3\ndef double(n): return 2 * n\n",
        },
        {"timezone": "Europe/Berlin", "cpus": 1},
    )
    ran = room.attempt()
    assert set(ran.outcomes().values()) == {"passed"}, ran.failures()
    assert read(ran, "test_env") == {
        "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/home/attempt", "TMPDIR": "/tmp", "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8", "TZ": "Europe/Berlin", "PYTHONHASHSEED": "0", "SOURCE_DATE_EPOCH": "1700000000",
        "COLUMNS": "80", "LINES": "24", "PYTHON_CPU_COUNT": "1", "PYTHONDONTWRITEBYTECODE": "1",
        "TRIBUNAL_SEED": "20260912",
    }  # fmt: skip
    assert read(ran, "test_child") == 13
    state = read(ran, "test_state")
    assert state[:6] == ["/tree", ["pytest"], "", 1, "CET", 0]
    assert state[7:] == ["utf-8", True, None, "0o22", False, "UTF-8"]
    path = read(ran, "test_path")
    own = [entry for entry in path if entry.startswith(("/tree", "/opt"))]
    assert own == ["/tree/tests/sealed", "/tree", "/tree/src", "/opt/tribunal/deps", "/opt/tribunal/runner"]
    assert path.index("/tree/tests/sealed") == len(path) - len(own)
    assert read(ran, "test_descriptors")[-2:] == [200, 201]
    assert len(read(ran, "test_descriptors")) == 4  # pytest has two: for its faulthandler, and its log to nowhere
    other = room.attempt(1)
    assert read(other, "test_state")[6] != state[6]  # another hash seed
    assert read(room.attempt(2), "test_state")[6] == state[6]


def test_nothing_passes_from_one_attempt_to_the_next(open_room):
    room = open_room(
        {
            "tests/sealed/test_a.py": PROBE
            + """
import subprocess, lib
PLACES = ("/tmp", "/dev/shm", "/home/attempt")
def test_clean():
    print(json.dumps([sorted(os.listdir(place)) for place in PLACES]
        + [[oct(os.stat(place).st_mode), os.stat(place).st_uid, os.stat(place).st_mtime] for place in PLACES]))
def test_dirty(): lib.soil(PLACES)
def test_alone():
    others = [p for p in os.listdir("/proc") if p.isdigit() and os.stat("/proc/" + p).st_uid != 0 and int(p) != os.getpid()]
    assert not others, others
""",
            "src/lib.py": """
import os, subprocess, sys
def soil(places):
    for place in places:
        os.mkdir(place + "/closed"); open(place + "/closed/file", "w").close(); os.chmod(place + "/closed", 0)
        os.symlink("/tree", place + "/link"); os.mkfifo(place + "/fifo")
        open(place + "/-rf \\n", "w").close()
        here = os.open(place, os.O_RDONLY)
        os.chdir(place)
        for _ in range(1500): os.mkdir("deep"); os.chdir("deep")
        os.fchdir(here)
        try: os.setxattr(place, "user.kept", b"1")
        except OSError: pass
    os.chmod("/home/attempt", 0o500)
    subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            import time
            while True: time.sleep(1)
        os._exit(0)
""",
        }
    )
    first = room.attempt(0)
    second = room.attempt(1)
    for number, ran in enumerate((first, second)):
        assert ran.end["end"] == "finished"
        assert ran.outcome("tests/sealed/test_a.py::test_dirty") == "passed", ran.failures()
        listing = read(ran, "test_clean")
        assert listing[:3] == [["pytest"], [], []] or listing[:3] == [[], [], []]
        assert listing[3][0] == listing[4][0] == "0o41777"
        assert listing[5][:2] == ["0o40700", 70_000 + 2 * number]
    assert read(first, "test_clean")[4:] == [
        [*row[:1], row[1] - 2 * (row[1] > 0), row[2]] for row in read(second, "test_clean")[4:]
    ]


def test_src_is_what_was_sent(tmp_path):
    import io
    import tarfile

    from room import Room, lay

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, mode, link in (
            ("src/lib/mod.py", 0o644, None), ("src/run.sh", 0o755, None), ("src/lib/alias.py", 0, "mod.py"),
            ("src/lib/up.py", 0, "../run.sh"),
        ):  # fmt: skip
            member = tarfile.TarInfo(name)
            member.mode, member.mtime, member.uid = mode, 1_700_000_000, 1234
            if link:
                member.type, member.linkname = tarfile.SYMTYPE, link
                archive.addfile(member)
            else:
                member.size = 6
                archive.addfile(member, io.BytesIO(b"X = 1\n"))
    tree = lay(
        tmp_path / "tree",
        {
            "src/stale.py": "",
            "tests/sealed/test_a.py": PROBE
            + """
from lib import mod, alias
def test_files():
    found = {}
    for folder, _, files in os.walk("src"):
        for name in files:
            path = os.path.join(folder, name); info = os.lstat(path)
            found[path] = [oct(info.st_mode), info.st_uid, int(info.st_mtime) if not os.path.islink(path) else os.readlink(path)]
    print(json.dumps(found))
""",
        },
    )
    with Room(tree) as room:
        room.configure(out.getvalue())
        ran = room.attempt()
    assert read(ran, "test_files") == {
        "src/run.sh": ["0o100755", 0, 1_700_000_000],
        "src/lib/mod.py": ["0o100644", 0, 1_700_000_000],
        "src/lib/alias.py": ["0o120777", 0, "mod.py"],
        "src/lib/up.py": ["0o120777", 0, "../run.sh"],
    }

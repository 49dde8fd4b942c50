"""What was left open, left behind, or lies near; and what must work."""

import os
import signal
import socket
import sys
import tempfile
import time

from .ways import LIBC, WAYS, call, connected, everyone, in_a_child, linked, own_file, read, system, way, write

# What was left open, left behind, or lies near.


@way("descriptors")
def descriptors():
    """Kinds of what is open: `pipe`, `socket`, a device's or file's path."""
    kinds = []
    for name in sorted(os.listdir("/proc/self/fd"), key=int):
        try:
            where = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if not where.startswith("/proc/"):
            kinds.append(where.split(":")[0])
    return ",".join(kinds)


WAYS["list-sealed"] = lambda: os.listdir("/tree/tests/sealed")
WAYS["read-sealed"] = lambda: read("/tree/tests/sealed/test_escapes.py")
WAYS["read-sealed-by-root"] = lambda: read("/proc/self/root/tree/tests/sealed/test_escapes.py")
WAYS["read-sealed-by-links"] = lambda: read(linked("/tree/tests/sealed/test_escapes.py"))
WAYS["chdir-sealed"] = lambda: in_a_child(lambda: os.chdir("/tree/tests/sealed"))
WAYS["watch-sealed"] = lambda: watched(b"/tree/tests/sealed")
WAYS["stat-sealed"] = lambda: os.stat("/tree/tests/sealed/test_escapes.py").st_size


def watched(path):
    descriptor = call(LIBC.inotify_init1, 0)
    try:
        return call(LIBC.inotify_add_watch, descriptor, path, 0xFFF)
    finally:
        os.close(descriptor)


@way("command-lines")
def command_lines():
    """Whether a command line gives away which file or case is running."""
    told = []
    for pid in everyone():
        if pid != os.getpid():
            try:
                line = read(f"/proc/{pid}/cmdline") + read(f"/proc/{pid}/comm")
            except OSError:
                continue
            if b"sealed" in line or b"::" in line:
                told.append(line)
    return f"DONE {told}" if told else "none"


PLACES = ["/tmp", "/dev/shm", "/dev/mqueue", "/home/attempt"]


@way("leftovers")
def leftovers():
    found = [f"{place}/{name}" for place in PLACES for name in os.listdir(place) if name.startswith("left-")]
    strangers = set(everyone().values()) - {0, os.getuid()}
    if len(strangers) > 1:
        found.append(f"processes of {sorted(strangers)}")
    return f"DONE {found}" if found else "none"


@way("leave")
def leave():
    """Everything that a later attempt could trip over: files, closed folders, links out, daemons."""
    for place in PLACES:
        if place != "/dev/mqueue":
            os.makedirs(f"{place}/left-deep/er", mode=0o000)
            os.symlink("/tree/src", f"{place}/left-link")
            os.symlink("/run/tribunal", f"{place}/left-state")
            os.mkfifo(f"{place}/left-fifo")
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            for number in range(1, 32):
                if number not in (signal.SIGKILL, signal.SIGSTOP):
                    signal.signal(number, signal.SIG_IGN)
            while True:
                time.sleep(60)
    return "left"


# What must work, so that an error above means something.

WAYS["control-write"] = lambda: write(own_file(), b"x")
WAYS["control-read"] = lambda: read("/proc/self/status")
WAYS["control-call"] = lambda: system(39)
WAYS["control-child"] = lambda: in_a_child(
    lambda: os.execv(sys.executable, [sys.executable, "-c", "raise SystemExit(7)"])
)
WAYS["control-connect"] = lambda: listened()


def listened():
    path = os.path.join(tempfile.mkdtemp(), "socket")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(1)
        connected(path)
        return "connected"

"""Ways out by name, what came of one, and what most of them need."""

import ctypes
import errno
import os
import signal
import socket
import tempfile

LIBC = ctypes.CDLL(None, use_errno=True)
WAYS = {}
TARGETED = {}


def tries(way):
    name, _, target = way.partition("~")
    if not target:
        return said(WAYS[name])
    pids = targets(target)
    return " ".join(sorted({said(TARGETED[name], pid) for pid in pids})) or "no such process"


def said(call, *arguments):
    try:
        done = call(*arguments)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
    return done if isinstance(done, str) else f"DONE {done!r:.200}"


def way(name):
    def keep(function):
        WAYS[name] = function
        return function

    return keep


def against(name):
    def keep(function):
        TARGETED[name] = function
        return function

    return keep


def uid_of(pid):
    try:
        with open(f"/proc/{pid}/status") as lines:
            found = [line.split() for line in lines if line.startswith(("Uid:", "State:"))]
    except OSError:
        return None
    state, uid = found[0][1], int(found[1][1])
    return None if state in "ZX" else uid


def everyone():
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return {pid: uid for pid in pids if (uid := uid_of(pid)) is not None}


def targets(name):
    if name == "first":
        return [1]
    mine = os.getuid()
    if name == "roots":
        return [pid for pid, uid in everyone().items() if uid == 0 and pid != 1]
    return [pid for pid, uid in everyone().items() if uid not in (0, mine)]


def call(function, *arguments):
    ctypes.set_errno(0)
    if (result := function(*arguments)) == -1:
        raise OSError(ctypes.get_errno(), "")
    return result


def system(number, *arguments):
    return call(LIBC.syscall, ctypes.c_long(number), *(plain(argument) for argument in arguments))


def plain(argument):
    return ctypes.c_long(argument) if isinstance(argument, int) else argument


def in_a_child(work):
    """What a forked child comes to: its exit code or the signal that ended it."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except OSError as error:
            os._exit(100 + error.errno)
        finally:
            os._exit(99)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return said_of(os.WEXITSTATUS(status))


def said_of(code):
    return errno.errorcode.get(code - 100, f"DONE exit {code}") if code >= 100 else f"DONE exit {code}"


def read(path):
    with open(path, "rb") as file:
        return file.read(64)


def write(path, content):
    descriptor = os.open(path, os.O_WRONLY)
    try:
        return os.write(descriptor, content)
    finally:
        os.close(descriptor)


def own_file():
    descriptor, path = tempfile.mkstemp()
    os.close(descriptor)
    return path


def walk(top):
    for folder, folders, names in os.walk(top):
        if folder == "/":
            folders[:] = [name for name in folders if name not in ("proc", "sys", "dev")]
        yield folder, folders, names


def connected(name):
    with socket.socket(socket.AF_UNIX) as here:
        here.connect(name)


def linked(path):
    where = os.path.join(tempfile.mkdtemp(), "link")
    os.symlink(path, where)
    return where

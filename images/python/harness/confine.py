"""The last acts of a fork that becomes an attempt: from root to nobody at all.

Own session, own uid and gid, no capability in any of the five sets, no way to gain one, bounded resources. Each
step must hold, else `ConfineError`: an attempt that kept a privilege must not run.
"""

import ctypes
import os
import resource
from pathlib import Path

NOFILE = (1024, 4096)
FILE_BYTES = 1 << 30

_PR_CAPBSET_DROP = 24
_PR_CAPBSET_READ = 23
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_PR_SET_CHILD_SUBREAPER = 36
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


class ConfineError(OSError):
    """A step that takes a privilege away did not hold."""


def become_subreaper() -> None:
    """Orphans of this process's children become its own, as they do for PID 1."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def confine(uid: int, gid: int) -> None:
    """Everything but closing descriptors; afterwards the process is the attempt's user for good."""
    Path("/proc/self/oom_score_adj").write_text("1000")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, NOFILE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    _empty_bounding_set()
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    _empty_capabilities()
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _check()
    os.umask(0o022)


def _empty_bounding_set() -> None:
    capability = 0
    while _libc.prctl(_PR_CAPBSET_READ, capability, 0, 0, 0) >= 0:
        _prctl(_PR_CAPBSET_DROP, capability)
        capability += 1


def _empty_capabilities() -> None:
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    empty = (ctypes.c_uint32 * 6)()
    if _libc.capset(ctypes.byref(header), ctypes.byref(empty)) != 0:
        raise ConfineError(ctypes.get_errno(), "capset")


def _prctl(option: int, argument: int) -> None:
    if _libc.prctl(option, argument, 0, 0, 0) != 0:
        raise ConfineError(ctypes.get_errno(), f"prctl {option}")


def _check() -> None:
    lines = Path("/proc/self/status").read_text().splitlines()
    sets = {line.split()[0]: line.split()[1] for line in lines if line.startswith("Cap")}
    if len(sets) != 5 or any(value.strip("0") for value in sets.values()):
        raise ConfineError(0, f"capabilities left: {sets}")

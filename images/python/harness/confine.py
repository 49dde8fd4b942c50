"""The last acts of a fork that becomes an attempt: from root to nobody at all.

Own session, own uid and gid, no capability in any of the five sets, no way to gain one, bounded resources. An oracle
keeps one group, which reads the sealed tests, and makes files as its product does: each can use what the other wrote,
and still neither can signal, trace or look into the other. Each step must hold, else `ConfineError`: an attempt that
kept a privilege must not run.
"""

import ctypes
import os
import resource
import struct
from collections.abc import Sequence
from pathlib import Path

NOFILE = (1024, 4096)
FILE_BYTES = 1 << 30

_PR_SET_DUMPABLE = 4
_PR_SET_KEEPCAPS = 8
_PR_CAPBSET_DROP = 24
_PR_CAPBSET_READ = 23
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2
_SECCOMP_ALLOW = 0x7FFF0000
_SECCOMP_ERRNO = 0x00050000  # with errno 0: the call fails, and says nothing
_BPF_LOAD_WORD, _BPF_JUMP_EQUAL, _BPF_RETURN = 0x20, 0x15, 0x06
_SETFS_CALLS = {"x86_64": (0xC000003E, 122, 123), "aarch64": (0xC00000B7, 151, 152)}
_CAPABILITY_VERSION_3 = 0x20080522
_SETGID_AND_SETUID = 1 << 6 | 1 << 7

_libc = ctypes.CDLL(None, use_errno=True)


class ConfineError(OSError):
    """A step that takes a privilege away did not hold."""


def become_subreaper() -> None:
    """Orphans of this process's children become its own, as they do for PID 1."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def confine(uid: int, groups: Sequence[int] = (), files_as: int | None = None) -> None:
    """Everything but closing descriptors; afterwards the process is this user for good, and makes files as another."""
    Path("/proc/self/oom_score_adj").write_text("1000")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, NOFILE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    _empty_bounding_set()
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    os.setgroups(list(groups))
    _prctl(_PR_SET_KEEPCAPS, 1 if files_as is not None else 0)
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    if files_as is not None:
        _capabilities(_SETGID_AND_SETUID)
        _files_as(files_as)
    _prctl(_PR_SET_KEEPCAPS, 0)
    _capabilities(0)
    _prctl(_PR_SET_DUMPABLE, 0)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if files_as is not None:
        _keep_files_as()
    _check(uid, uid if files_as is None else files_as, groups)
    os.umask(0o022)


def serve_as(user: int) -> None:
    """For a program of our own that is about to be executed: nobody's, but no victim when memory is short."""
    os.setsid()
    _empty_bounding_set()
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    _capabilities(0)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _check(user, user, ())
    os.umask(0o077)


def _empty_bounding_set() -> None:
    capability = 0
    while _libc.prctl(_PR_CAPBSET_READ, capability, 0, 0, 0) >= 0:
        _prctl(_PR_CAPBSET_DROP, capability)
        capability += 1


def _files_as(user: int) -> None:
    """`setfsuid` reports nothing: what holds is read back by `_check`."""
    _libc.setfsgid(user)
    _libc.setfsuid(user)


def _keep_files_as() -> None:
    """Libraries take the files' user back (ncurses does, looking for a terminal): to them those calls do nothing."""
    calls = _SETFS_CALLS.get(os.uname().machine)
    if calls is None:
        raise ConfineError(0, f"no system call numbers for {os.uname().machine}")
    architecture, setfsuid, setfsgid = calls
    program = [
        (_BPF_LOAD_WORD, 0, 0, 4),  # the architecture
        (_BPF_JUMP_EQUAL, 0, 3, architecture),
        (_BPF_LOAD_WORD, 0, 0, 0),  # the call's number
        (_BPF_JUMP_EQUAL, 2, 0, setfsuid),
        (_BPF_JUMP_EQUAL, 1, 0, setfsgid),
        (_BPF_RETURN, 0, 0, _SECCOMP_ALLOW),
        (_BPF_RETURN, 0, 0, _SECCOMP_ERRNO),
    ]
    code = b"".join(struct.pack("=HBBI", *step) for step in program)
    steps = ctypes.create_string_buffer(code, len(code))
    filters = struct.pack("@HP", len(program), ctypes.addressof(steps))
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.c_char_p(filters))


def _capabilities(kept: int) -> None:
    """Sets the effective and the permitted set, and empties the inheritable one."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)(kept, kept, 0, 0, 0, 0)
    if _libc.capset(ctypes.byref(header), ctypes.byref(sets)) != 0:
        raise ConfineError(ctypes.get_errno(), "capset")


def _prctl(option: int, argument: int, pointer: "ctypes.c_char_p | int" = 0) -> None:
    if _libc.prctl(option, argument, pointer, 0, 0) != 0:
        raise ConfineError(ctypes.get_errno(), f"prctl {option}")


def _check(user: int, files_as: int, groups: Sequence[int]) -> None:
    lines = Path("/proc/self/status").read_text().splitlines()
    fields = {words[0]: words[1:] for words in map(str.split, lines) if words}
    sets = {name: value[0] for name, value in fields.items() if name.startswith("Cap")}
    if len(sets) != 5 or any(value.strip("0") for value in sets.values()):
        raise ConfineError(0, f"capabilities left: {sets}")
    wanted = [str(user)] * 3 + [str(files_as)]
    if fields["Uid:"] != wanted or fields["Gid:"] != wanted or fields["Groups:"] != [str(group) for group in groups]:
        raise ConfineError(0, f"not the user it should be: {fields['Uid:']} {fields['Gid:']} {fields['Groups:']}")

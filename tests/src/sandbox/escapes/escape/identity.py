"""Who one is, and what one may become."""

import ctypes
import os
import resource
import stat

from .ways import LIBC, WAYS, call, everyone, own_file, targets, walk, way, write

# Who one is.


def stranger():
    """The uid of the process that judges, or of a neighbour that does not exist."""
    others = [everyone()[pid] for pid in targets("oracle")]
    return others[0] if others else os.getuid() ^ 1


WAYS["setuid-root"] = lambda: os.setuid(0)
WAYS["setresuid-root"] = lambda: os.setresuid(-1, 0, -1)
WAYS["setreuid-root"] = lambda: os.setreuid(0, 0)
WAYS["setgid-root"] = lambda: os.setgid(0)
WAYS["setresgid-root"] = lambda: os.setresgid(0, 0, 0)
WAYS["setgroups"] = lambda: os.setgroups([0])
WAYS["setgroups-none"] = lambda: os.setgroups([])
WAYS["setuid-oracle"] = lambda: os.setuid(stranger())
WAYS["setgid-oracle"] = lambda: os.setgid(stranger())


@way("setfsuid-root")
def setfsuid_root():
    LIBC.setfsuid(0)
    now = LIBC.setfsuid(-1)
    return "ignored" if now == os.getuid() else f"DONE {now}"


@way("capset")
def capset():
    header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(*[0xFFFFFFFF] * 6)
    return call(LIBC.capset, header, sets)


WAYS["ambient-capability"] = lambda: call(LIBC.prctl, 47, 2, 21, 0, 0)
WAYS["securebits"] = lambda: call(LIBC.prctl, 28, 1, 0, 0, 0)
WAYS["new-privileges"] = lambda: call(LIBC.prctl, 38, 0, 0, 0, 0)
WAYS["no-filter"] = lambda: call(LIBC.prctl, 22, 0, 0, 0, 0)
WAYS["prctl-mm"] = lambda: call(LIBC.prctl, 35, 8, 0x1000, 0, 0)
WAYS["chown-to-root"] = lambda: os.chown(own_file(), 0, 0)
WAYS["raise-limit"] = lambda: call(
    LIBC.prlimit, 0, resource.RLIMIT_NOFILE, (ctypes.c_uint64 * 2)(1 << 20, 1 << 20), None
)
WAYS["raise-core"] = lambda: call(LIBC.prlimit, 0, resource.RLIMIT_CORE, (ctypes.c_uint64 * 2)(1 << 20, 1 << 20), None)
WAYS["raise-priority"] = lambda: os.setpriority(os.PRIO_PROCESS, 0, -5)
WAYS["real-time"] = lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
WAYS["spared-when-memory-is-short"] = lambda: write("/proc/self/oom_score_adj", b"-1000")
WAYS["uid-map"] = lambda: write("/proc/self/uid_map", b"0 0 1")
WAYS["login-uid"] = lambda: write("/proc/self/loginuid", b"0")
WAYS["own-memory-dump"] = lambda: write("/proc/self/timens_offsets", b"0 1 0")


@way("setuid-files")
def setuid_files():
    found = []
    for folder, _, names in walk("/"):
        for name in names:
            path = os.path.join(folder, name)
            try:
                facts = os.lstat(path)
            except OSError:
                continue
            if (
                stat.S_ISREG(facts.st_mode)
                and facts.st_mode & (stat.S_ISUID | stat.S_ISGID)
                or stat.S_ISREG(facts.st_mode)
                and "security.capability" in attributes(path)
            ):
                found.append(path)
    return f"DONE {found}" if found else "none"


def attributes(path):
    try:
        return os.listxattr(path, follow_symlinks=False)
    except OSError:
        return []


OWN = ("/tmp", "/dev/shm", "/dev/mqueue", "/home/attempt", "/proc/self", "/proc/thread-self")


@way("writable-places")
def writable_places():
    """Whatever the permissions and mounts say that may be written, outside of where an attempt is to write."""
    found = []
    for top in ("/", "/dev", "/proc/sys", "/sys/fs", "/sys/kernel", "/sys/module", "/sys/power"):
        for folder, folders, names in walk(top):
            folders[:] = [name for name in folders if os.path.join(folder, name) not in OWN]
            for path in [folder, *(os.path.join(folder, name) for name in names)]:
                if os.access(path, os.W_OK) and not harmless(path):
                    found.append(path)
    return f"DONE {found[:20]}" if found else "none"


def harmless(path):
    if path.startswith("/dev/pts/") or path in (
        "/dev/ptmx",
        "/dev/null",
        "/dev/zero",
        "/dev/full",
        "/dev/random",
        "/dev/urandom",
        "/dev/tty",
    ):
        return True
    try:
        where = os.path.realpath(path)
    except OSError:
        return True
    # A link to what the process itself has open, or to a place of its own.
    return where != path and (where.startswith(("/proc/", "/tmp", "/dev/shm")) or harmless(where))

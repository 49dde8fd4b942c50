"""Other processes: PID 1, the zygotes, the one that judges."""

import ctypes
import fcntl
import os
import resource
import signal
import socket
import time

from .ways import LIBC, TARGETED, against, call, everyone, read, system, uid_of, way, write

# Other processes, by /proc.

for entry in ["mem", "maps", "smaps", "environ", "auxv", "syscall", "stack", "pagemap", "io", "personality", "timers"]:
    TARGETED[f"read-{entry}"] = lambda pid, entry=entry: read(f"/proc/{pid}/{entry}")
for entry in ["fd", "fdinfo", "map_files", "ns", "cwd", "root"]:
    TARGETED[f"list-{entry}"] = lambda pid, entry=entry: os.listdir(f"/proc/{pid}/{entry}")
for entry in ["exe", "cwd", "root", "ns/mnt", "ns/user", "ns/pid"]:
    TARGETED[f"link-{entry}"] = lambda pid, entry=entry: os.readlink(f"/proc/{pid}/{entry}")
for entry, content in {
    "mem": b"x", "oom_score_adj": b"1000", "clear_refs": b"1", "comm": b"x", "coredump_filter": b"0", "uid_map": b"0 0 1",
    "gid_map": b"0 0 1", "setgroups": b"deny", "timerslack_ns": b"1", "autogroup": b"1", "attr/current": b"x", "sched": b"0",
    "projid_map": b"0 0 1",
}.items():  # fmt: skip
    TARGETED[f"write-{entry}"] = lambda pid, entry=entry, content=content: write(f"/proc/{pid}/{entry}", content)


@against("thread-mem")
def thread_mem(pid):
    return [read(f"/proc/{pid}/task/{thread}/mem") for thread in os.listdir(f"/proc/{pid}/task")]


# Other processes, by system calls.

PTRACE_ATTACH, PTRACE_SEIZE = 16, 0x4206


@against("ptrace-attach")
def ptrace_attach(pid):
    return system(101, PTRACE_ATTACH, pid, 0, 0)


@against("ptrace-seize")
def ptrace_seize(pid):
    return system(101, PTRACE_SEIZE, pid, 0, 0)


def vector():
    buffer = ctypes.create_string_buffer(64)
    return (ctypes.c_uint64 * 2)(ctypes.addressof(buffer), 64), buffer


@against("process_vm_readv")
def process_vm_readv(pid):
    mine, _kept = vector()
    return system(310, pid, mine, 1, mine, 1, 0)


@against("process_vm_writev")
def process_vm_writev(pid):
    mine, _kept = vector()
    return system(311, pid, mine, 1, mine, 1, 0)


def with_pidfd(pid, work):
    descriptor = system(434, pid, 0)
    try:
        return work(descriptor)
    finally:
        os.close(descriptor)


TARGETED["pidfd_getfd"] = lambda pid: with_pidfd(pid, lambda descriptor: system(438, descriptor, 0, 0))
TARGETED["pidfd_send_signal"] = lambda pid: with_pidfd(pid, lambda descriptor: system(424, descriptor, 9, 0, 0))
TARGETED["setns-by-pidfd"] = lambda pid: with_pidfd(pid, lambda descriptor: system(308, descriptor, 0x00020000))
TARGETED["process_madvise"] = lambda pid: with_pidfd(
    pid, lambda descriptor: system(440, descriptor, vector()[0], 1, 4, 0)
)
TARGETED["process_mrelease"] = lambda pid: with_pidfd(pid, lambda descriptor: system(448, descriptor, 0))
TARGETED["kcmp"] = lambda pid: system(312, os.getpid(), pid, 0, 0, 0)
TARGETED["move_pages"] = lambda pid: system(279, pid, 0, 0, 0, 0, 0)
TARGETED["migrate_pages"] = lambda pid: system(256, pid, 0, 0, 0)
TARGETED["perf_event_open"] = lambda pid: system(298, ctypes.create_string_buffer(128), pid, -1, -1, 0)
TARGETED["get_robust_list"] = lambda pid: system(
    274, pid, ctypes.create_string_buffer(8), ctypes.create_string_buffer(8)
)
TARGETED["kill"] = lambda pid: os.kill(pid, signal.SIGKILL)
TARGETED["stop"] = lambda pid: os.kill(pid, signal.SIGSTOP)
TARGETED["probe"] = lambda pid: os.kill(pid, 0)
TARGETED["tgkill"] = lambda pid: system(234, pid, pid, 9)
TARGETED["sigqueue"] = lambda pid: call(LIBC.sigqueue, pid, 9, None)
TARGETED["renice"] = lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 19)
TARGETED["set-affinity"] = lambda pid: os.sched_setaffinity(pid, {0})
TARGETED["set-scheduler"] = lambda pid: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
TARGETED["set-ioprio"] = lambda pid: system(251, 1, pid, (3 << 13))
TARGETED["set-limit"] = lambda pid: call(LIBC.prlimit, pid, resource.RLIMIT_CPU, (ctypes.c_uint64 * 2)(0, 0), None)
TARGETED["set-group"] = lambda pid: os.setpgid(pid, 0)


@against("signal-by-descriptor")
def signal_by_descriptor(pid):
    """A file that becomes readable tells its owner by a signal of one's choice, and anybody may be named its owner."""
    here, there = socket.socketpair()
    with here, there:
        fcntl.fcntl(here, fcntl.F_SETOWN, pid)
        fcntl.fcntl(here, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(here, fcntl.F_SETFL, fcntl.fcntl(here, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)
        there.send(b"now")
    time.sleep(0.05)
    return "ignored" if uid_of(pid) is not None else "DONE it is gone"


@way("kill-everyone")
def kill_everyone():
    before = everyone()
    try:
        os.kill(-1, signal.SIGKILL)
    except OSError:
        pass
    time.sleep(0.05)
    gone = before.keys() - everyone().keys()
    return "ignored" if not gone else f"DONE {sorted(gone)}"

"""Processes: who is there, who has ended, and how to have none left of a user.

PID 1 inherits every orphan of the container. Nobody's exit status is lost: what is reaped in passing is kept until
somebody asks for it.
"""

import contextlib
import os
import re
import signal
import time
from collections.abc import Collection
from dataclasses import dataclass

from . import kernel

_PF_EXITING = 0x4  # of a task's flags in /proc/PID/stat: linux/sched.h
_STATE, _OWNER = re.compile(r"^State:\t(\w)", re.MULTILINE), re.compile(r"^Uid:\t(\d+)", re.MULTILINE)
CONVERGE_SECONDS = 30.0  # a bomb shares PID 1's processor while it is cleared away


class Unkillable(RuntimeError):
    """Processes of an attempt were still there after all that was done."""


@dataclass(frozen=True)
class Exit:
    """How a process ended."""

    code: int | None
    signal: int | None
    cpu_ms: float


def _exit(status: int, usage: object) -> Exit:
    cpu = (getattr(usage, "ru_utime", 0.0) + getattr(usage, "ru_stime", 0.0)) * 1000
    code = os.waitstatus_to_exitcode(status)
    return Exit(code, None, cpu) if code >= 0 else Exit(None, -code, cpu)


class Reaper:
    """Every ended child of this process, by pid."""

    def __init__(self) -> None:
        self._ended: dict[int, Exit] = {}

    def sweep(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._ended[pid] = _exit(status, usage)

    def ended(self, pid: int) -> bool:
        """Whether a child has ended; it stays a zombie, so that its /proc entry can still be read."""
        if pid in self._ended:
            return True
        try:
            return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return False

    def take(self, pid: int) -> Exit | None:
        self.sweep()
        return self._ended.pop(pid, None)

    def forget(self) -> float:
        """Drops the ends nobody asked for; gives the processor time they had used, in milliseconds."""
        spent = sum(end.cpu_ms for end in self._ended.values())
        self._ended.clear()
        return spent

    def end(self, pid: int) -> None:
        """Kills one child that nobody has reaped yet."""
        if not self.ended(pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def wait(self, pid: int) -> None:
        """Until a child that was killed has ended: its first thread is a zombie before its last one is gone."""
        if not self.ended(pid):
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

    def end_users(self, uids: Collection[int]) -> None:
        """Kills every process of these uids until none is left.

        A process of the same uid does the killing, by `kill(-1)`: the kernel walks all processes under one lock, so
        a fork bomb cannot run ahead of it.
        """
        limit = time.monotonic() + CONVERGE_SECONDS
        while present := living(uids):
            if time.monotonic() > limit:
                raise Unkillable(f"{len(present)} processes left")
            try:
                for uid in {owner for _, owner in present}:
                    self._kill_as(uid)
            except BlockingIOError:
                # No process left to be had: the attempt holds them all. Killed ones that nobody has reaped yet keep
                # it so, and then it cannot make new ones either.
                for pid, _ in present:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                if living(uids):
                    continue
            self.sweep()
        self.sweep()

    def end_everything(self, uids: Collection[int]) -> None:
        """Kills all that PID 1 can kill: everything in the container."""
        if os.getpid() != 1:
            raise Unkillable("only PID 1 may end everything")
        limit = time.monotonic() + CONVERGE_SECONDS
        while True:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
            self.sweep()
            if not living(uids) and not _children():
                return
            if time.monotonic() > limit:
                raise Unkillable("processes left after kill(-1)")

    def _kill_as(self, uid: int) -> None:
        pid = os.fork()
        if pid == 0:
            try:
                os.setresuid(uid, uid, uid)
                os.kill(-1, signal.SIGKILL)
            except OSError:
                pass  # nobody left to kill, or the next round finds out
            finally:
                os._exit(0)
        os.waitpid(pid, 0)


def _children() -> bool:
    """Whether this process has a child, be it a dead one."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def living(uids: Collection[int]) -> list[tuple[int, int]]:
    """(pid, uid) of every process of these uids that has not ended."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            owner = _owner(name)
            if owner is not None and owner in uids:
                found.append((int(name), owner))
    return found


def _owner(pid: str) -> int | None:
    text = kernel.text(f"/proc/{pid}/status")
    if text is None:
        return None
    # The name comes first and has no line break: the kernel escapes it.
    state, owners = _STATE.search(text), _OWNER.search(text)
    if state is None or owners is None or state[1] in "ZX":
        return None
    return int(owners[1])


def is_leaving(pid: int) -> bool:
    """Whether a process has begun to end, though it may not be there to be reaped yet: its descriptors close before."""
    try:
        after_name = (kernel.text(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()
        return bool(int(after_name[6]) & _PF_EXITING)
    except (IndexError, ValueError):
        return False


@dataclass(frozen=True)
class Scheduled:
    """What the scheduler says of the threads that a process has now."""

    ran_ms: float  # all of them together
    delay_ms: float
    """The most that any one waited for a processor that somebody else had.

    Not their sum: threads that crowd each other out could make that as large as they like, and so look starved.
    """


def scheduled(pid: int) -> Scheduled:
    ran, delay = 0, 0
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(ValueError):
                had, waited, _ = map(int, (kernel.text(f"/proc/{pid}/task/{thread}/schedstat") or "").split())
                ran, delay = ran + had, max(delay, waited)
    return Scheduled(ran / 1e6, delay / 1e6)

"""An attempt, in its own process: from a fresh fork to one pytest session and out.

First everything is taken away from the process that it must not have, then `booted` is said, and only after that does
code of the repository run. The order (pins, seed, which cases) comes over a pipe, so the zygote never saw it. The
process leaves with a code that PID 1 chose for this attempt and only after the session's own last record.
"""

import fcntl
import os
import random
import sys
import time
from typing import NoReturn

from . import environ, session, witness
from .channel import Channel, leave_with
from .confine import confine
from .layout import Layout
from .orders import Policy
from .task import Task

HIGH = 200  # record and output descriptors go up here, out of the way of tests


def run(descriptors: list[int], layout: Layout, policy: Policy, prepared: session.Prepared) -> NoReturn:
    os.setsid()
    orders, record, output = _arrange(*descriptors)
    native = witness.load(layout)
    native.open(orders, record)  # takes the key off the pipe: nothing written in Python ever holds it
    told = Task.decode(_read_order(orders))
    os.close(orders)
    os.chdir(layout.tree)
    confine(told.uid, told.uid)
    _environment(environ.of_attempt(layout, policy, told.attempt, told.hash_seed))
    _streams()
    random.seed()  # not the zygote's state; every case is seeded again
    channel = Channel(native.send, output, told.token.hex().encode())
    leave = leave_with(told.exit_code)
    channel.send(kind="booted")
    watching = None if told.attempt.split else native
    last = session.run(channel, layout, policy, told.attempt, prepared, told.canaries, watching)
    if last is not None:
        channel.send(kind="end", **last)
        leave()
    leave_with(72)()


def _read_order(fd: int) -> bytes:
    parts = []
    while data := os.read(fd, 65_536):
        parts.append(data)
    return b"".join(parts)


def _arrange(orders: int, record: int, output: int) -> tuple[int, int, int]:
    """stdin is empty, stdout and stderr are the output pipe, and besides the three pipes nothing is open."""
    kept = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH) for fd in (record, output, orders)]
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.closerange(3, min(kept))
    os.closerange(max(kept) + 1, os.sysconf("SC_OPEN_MAX"))
    return kept[2], kept[0], kept[1]


def _environment(values: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(values)
    time.tzset()


def _streams() -> None:
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    vars(sys).update(__stdin__=sys.stdin, __stdout__=sys.stdout, __stderr__=sys.stderr)

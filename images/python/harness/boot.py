"""The first acts of a fork that becomes an attempt, oracle's or product's: order, descriptors, environment, streams.

Runs before any code of the repository. What is open that was not meant for this process is closed by number, not by
name: only what is kept stays.
"""

import contextlib
import fcntl
import os
import sys
import time
from collections.abc import Sequence

HIGH = 200  # kept descriptors go up here, out of the way of tests


def read_order(fd: int) -> bytes:
    parts = []
    while data := os.read(fd, 65_536):
        parts.append(data)
    return b"".join(parts)


def arrange(output: int, kept: Sequence[int]) -> list[int]:
    """stdin is empty, stdout and stderr are the output pipe, and besides what is kept nothing is open."""
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH) for fd in kept]
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    beyond = 3
    for fd in sorted(high):
        os.closerange(beyond, fd)
        beyond = fd + 1
    os.closerange(beyond, os.sysconf("SC_OPEN_MAX"))
    return high


def environment(values: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(values)
    time.tzset()


def streams() -> None:
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    vars(sys).update(__stdin__=sys.stdin, __stdout__=sys.stdout, __stderr__=sys.stderr)


def say_ready(fd: int) -> None:
    """To PID 1, which may have stopped listening."""
    with contextlib.suppress(BrokenPipeError):
        os.write(fd, b"r")
    os.close(fd)

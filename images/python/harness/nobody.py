"""Work on the repository's texts for PID 1: done in a fork without privileges, which may die of them.

What comes back are lines of JSON, as far as they were whole; how many are missing is for the caller to see. PID 1 never
parses a text of the repository itself.
"""

import contextlib
import gc
import json
import os
import resource
import signal
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .confine import confine

NOBODY = 65_534


def lines(work: Callable[[], Iterable[Any]], seconds: int, memory: int | None = None) -> Iterator[bytes]:
    """`work` is called with privileges, and may read; what it gives back is iterated without."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            os.close(reader)
            answers = work()
            confine(NOBODY)
            if memory is not None:
                resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
            signal.alarm(seconds)
            gc.disable()
            for answer in answers:
                _write(writer, json.dumps(answer).encode() + b"\n")
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as said:
        for line in said:
            if line.endswith(b"\n"):
                yield line
    os.waitpid(pid, 0)


def answer(work: Callable[[], Any], seconds: int, memory: int | None = None) -> Any:
    """The one thing that `work`, called without privileges, gives back; `None` where the fork died of it."""
    said = list(lines(lambda: (make() for make in (work,)), seconds, memory))
    return json.loads(said[0]) if said else None


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]

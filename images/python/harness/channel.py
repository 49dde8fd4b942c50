"""The attempt's side of the record pipe.

The only writer of records. It keeps its own references to the few functions it needs, taken before any code of the
candidate ran, and is silent in forks: a child of a test that falls back into pytest says nothing and ends.
"""

import _thread
import contextlib
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from .frames import JSON, Message, encode, encode_json
from .output import mark

HEAD = 5  # bytes of a frame before its body


class Channel:
    def __init__(self, fd: int, output: int, token: bytes) -> None:
        self._writer = _writer(fd, output, token)
        self._marks = 0

    def send(self, **record: object) -> None:
        self._writer(record, None)

    def border(self) -> int:
        """Marks a border in the printed output; gives its number, which the next record carries."""
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(BaseException):  # the test may have closed or replaced it
                stream.flush()
        self._marks += 1
        self._writer(None, self._marks)
        return self._marks


def _writer(fd: int, output: int, token: bytes) -> Callable[[Message | None, int | None], None]:
    write, getpid, leave, frame, as_json, border = os.write, os.getpid, os._exit, encode, encode_json, mark
    owner = getpid()
    turn = _thread.allocate_lock()  # a tamper may be seen by any thread

    def push(target: int, data: bytes) -> None:
        while data:
            data = data[write(target, data) :]

    def speak(record: Message | None, number: int | None) -> None:
        if getpid() != owner:
            leave(70)
        if number is not None:
            with contextlib.suppress(OSError):  # the test closed it: its text is lost, its records are not
                push(output, border(token, number))
        if record is not None:
            data = frame(JSON, token + as_json(record)[HEAD:])
            with turn:
                push(fd, data)

    return speak


def leave_with(code: int) -> Callable[[], NoReturn]:
    """A way out that no `atexit` handler, thread or replaced `os._exit` can turn."""
    leave = os._exit

    def go() -> NoReturn:
        leave(code)

    return go

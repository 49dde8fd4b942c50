"""The attempt's side of the record pipe.

The only writer of records: the witness's pen, which marks each with a key that no Python object holds. It keeps its own
references to the few functions it needs, taken before any code of the candidate ran, and is silent in forks: a child
of a test that falls back into pytest says nothing and ends.
"""

import contextlib
import os
import sys
from collections.abc import Callable
from types import FunctionType
from typing import NoReturn, cast

from .frames import Message, encode_json
from .output import mark

HEAD = 5  # bytes of a frame before its body


class Channel:
    def __init__(self, pen: Callable[[bytes], None], output: int, token: bytes) -> None:
        self._writer = _writer(pen, output, token)
        self._marks = 0

    def sender(self) -> FunctionType:
        """The one function that calls the pen."""
        return cast(FunctionType, self._writer)

    def send(self, **record: object) -> None:
        self._writer(record, None)

    def send_at_border(self, record: Message) -> None:
        """Marks a border in the printed output; the record carries its number."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BaseException:  # noqa: BLE001, S112  the test may have closed or replaced it
                continue
        self._marks += 1
        record["mark"] = self._marks
        self._writer(record, self._marks)


def _writer(pen: Callable[[bytes], None], output: int, token: bytes) -> Callable[[Message, int | None], None]:
    write, getpid, leave, as_json, border = os.write, os.getpid, os._exit, encode_json, mark
    owner = getpid()

    def push(target: int, data: bytes) -> None:
        while data:
            data = data[write(target, data) :]

    def speak(record: Message, number: int | None) -> None:
        if getpid() != owner:
            leave(70)
        if number is not None:
            with contextlib.suppress(OSError):  # the test closed it: its text is lost, its records are not
                push(output, border(token, number))
        pen(as_json(record)[HEAD:])

    return speak


def leave_with(code: int) -> Callable[[], NoReturn]:
    """A way out that no `atexit` handler, thread or replaced `os._exit` can turn."""
    leave = os._exit

    def go() -> NoReturn:
        leave(code)

    return go

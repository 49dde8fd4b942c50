"""What an attempt prints: a pipe of bytes to the text of each phase.

The attempt writes a mark into the stream at every border between phases, so that text and records need not be read
in step. A mark carries a token; one who steals it can spoil the texts of its own attempt, nothing else. Memory is
bounded whatever is printed: only the tail of each phase is kept, and a case that prints far over its limit is
reported by `flooded`.
"""

import os
from collections import OrderedDict

from .frames import plain

TEXT = 4000  # characters of a phase's output that are kept
_TAIL = 4 * TEXT
_SEGMENTS = 20_000  # phases whose records are still to come; most are empty
_KEPT = 16 << 20  # bytes of their texts
_READ = 1 << 18


def mark(token: bytes, number: int) -> bytes:
    return b"\0\x1e%s:%d\0" % (token, number)


class Output:
    def __init__(self, fd: int, token: bytes, limit: int, factor: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.total = 0
        self.case = 0
        self._limit, self._factor = limit, factor
        self._prefix = b"\0\x1e" + token + b":"
        self._longest = len(self._prefix) + 21
        self._pending = b""  # the open phase: at most its tail, and perhaps half a mark at its end
        self._closed: OrderedDict[int, bytes] = OrderedDict()
        self._kept = 0

    @property
    def flooded(self) -> bool:
        return self.case > self._limit * self._factor

    def begin_case(self) -> None:
        self.case = 0

    def drain(self) -> bool:
        """Reads what is there, a bounded amount; False at the end of the stream."""
        for _ in range(16):
            try:
                data = os.read(self.fd, _READ)
            except BlockingIOError:
                return True
            if not data:
                return False
            self.feed(data)
            if self.flooded:
                return True
        return True

    def feed(self, data: bytes) -> None:
        self.total += len(data)
        self.case += len(data)
        data = self._pending + data
        while (at := data.find(self._prefix)) >= 0:
            end = data.find(b"\0", at + len(self._prefix), at + self._longest)
            number = data[at + len(self._prefix) : end]
            if end < 0:
                if len(data) - at < self._longest:
                    break  # the rest of the mark is still to come
                data = data[at + len(self._prefix) :]
            elif number.isdigit():
                self.total -= end + 1 - at
                self.case = max(0, self.case - (end + 1 - at))
                self._close(int(number), data[:at][-_TAIL:])
                data = data[end + 1 :]
            else:
                data = data[at + len(self._prefix) :]
        self._pending = data[-(_TAIL + self._longest) :]

    def _close(self, number: int, text: bytes) -> None:
        self._kept += len(text) - len(self._closed.pop(number, b""))
        self._closed[number] = text
        while len(self._closed) > _SEGMENTS or self._kept > _KEPT:
            self._kept -= len(self._closed.popitem(last=False)[1])

    def take(self, number: int) -> str:
        """The text before mark `number`; for a number that never came, what is open now."""
        text = self._closed.pop(number, None)
        if text is None:
            return self.rest()
        self._kept -= len(text)
        return self._render(text)

    def rest(self) -> str:
        text, self._pending = self._pending, b""
        return self._render(text)

    def _render(self, raw: bytes) -> str:
        text = plain(raw.decode("utf-8", "replace"))[-TEXT:]
        if self.case > self._limit:
            return f"[output cut: more than {self._limit} bytes]\n{text}"[: TEXT + 60]
        return text

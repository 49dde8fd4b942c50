"""What an attempt prints: a pipe of bytes to the text of each phase.

The attempt writes a mark into the stream at every border between phases, so that text and records need not be read
in step. A mark carries a token; one who steals it can spoil the texts of its own attempt, nothing else. Memory is
bounded whatever is printed: only the tail of each phase is kept, and a case that prints far over its limit is
reported by `flooded`.
"""

import os
from collections import OrderedDict
from dataclasses import dataclass

from .frames import plain

TEXT = 4000  # characters of a phase's output that are kept
_TAIL = 4 * TEXT
_SEGMENTS = 20_000  # phases whose records are still to come; most are empty
_KEPT = 16 << 20  # bytes of their texts
_READ = 1 << 18


def mark(token: bytes, number: int) -> bytes:
    return b"\0\x1e%s:%d\0" % (token, number)


@dataclass(frozen=True)
class Segment:
    """What was printed between two marks: its tail, and how much had been printed in all by its end."""

    tail: bytes
    until: int


class Output:
    def __init__(self, fd: int, token: bytes, limit: int, factor: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.total = 0
        self._limit, self._factor = limit, factor
        self._case = 0  # how much had been printed when the present case began
        self._prefix = b"\0\x1e" + token + b":"
        self._longest = len(self._prefix) + 21
        self._pending = b""  # the open phase: at most its tail, and perhaps half a mark at its end
        self._closed: OrderedDict[int, Segment] = OrderedDict()
        self._kept = 0

    @property
    def flooded(self) -> bool:
        return self.total - self._case > self._limit * self._factor

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
        data = self._pending + data
        begin = look = 0  # of the open phase, and where the next mark may be
        while (at := data.find(self._prefix, look)) >= 0:
            end = data.find(b"\0", at + len(self._prefix), at + self._longest)
            number = data[at + len(self._prefix) : end]
            if end < 0 and len(data) - at < self._longest:
                break  # the rest of the mark is still to come
            if end >= 0 and number.isdigit():
                self.total -= end + 1 - at
                tail = data[max(begin, at - _TAIL) : at]
                begin = look = end + 1
                self._close(int(number), Segment(tail, self.total - (len(data) - begin)))
            else:
                begin = look = at + len(self._prefix)  # it only looks like one
        self._pending = data[max(begin, len(data) - _TAIL - self._longest) :]

    def _close(self, number: int, segment: Segment) -> None:
        self._forget(number)
        self._closed[number] = segment
        self._kept += len(segment.tail)
        while len(self._closed) > _SEGMENTS or self._kept > _KEPT:
            self._forget(next(iter(self._closed)))

    def _forget(self, number: int) -> Segment | None:
        segment = self._closed.pop(number, None)
        self._kept -= len(segment.tail) if segment is not None else 0
        return segment

    def begin(self, number: int) -> None:
        """A case begins at mark `number`; what was printed before it is nobody's."""
        segment = self._forget(number)
        self._case = segment.until if segment is not None else self.total

    def take(self, number: int) -> str:
        """The text before mark `number`; for a number that never came, what is open now."""
        segment = self._forget(number)
        return self.rest() if segment is None else self._render(segment.tail, segment.until)

    def rest(self) -> str:
        text, self._pending = self._pending, b""
        return self._render(text, self.total)

    def _render(self, raw: bytes, until: int) -> str:
        text = plain(raw.decode("utf-8", "replace"))[-TEXT:]
        if until - self._case > self._limit:
            return f"[output cut: more than {self._limit} bytes]\n{text}"
        return text

"""The recorded listings of all cassettes, in one file that the pin library maps: `/run/tribunal/listings`.

Written by PID 1 before the first attempt and never after it; the pin page says which table is on. The layout is in
PROTOCOL.md.
"""

import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .orders import BadOrder

MOST = 1024  # directories of one cassette: each has one byte in the pages of counts
BYTES = 16 << 20  # of all tables


@dataclass(frozen=True)
class Table:
    """Where a cassette's listings are in the file, and whose they are, by number."""

    offset: int
    length: int
    directories: tuple[str, ...]


class Listings:
    def __init__(self, path: str) -> None:
        self._path = path
        self._size = 0

    def add(self, fs: Mapping[str, Sequence[str]]) -> Table:
        if len(fs) > MOST:
            raise BadOrder("a cassette of too many directories")
        parts = [struct.pack("<I", len(fs))]
        for directory, names in fs.items():
            for text in (directory, None, *names):
                raw = None if text is None else os.fsencode(text)
                parts += [struct.pack("<I", len(names))] if raw is None else [struct.pack("<I", len(raw)), raw]
        table = b"".join(parts)
        table += bytes(-len(table) % 8)
        if self._size + len(table) > BYTES:
            raise BadOrder("too many recorded listings")
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            os.fchmod(fd, 0o644)
            view = memoryview(table)
            while view:
                view = view[os.write(fd, view) :]
        finally:
            os.close(fd)
        placed = Table(self._size, len(table), tuple(fs))
        self._size += len(table)
        return placed

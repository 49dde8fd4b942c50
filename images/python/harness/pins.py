"""The pin page: what the preloaded library reads at every call.

Written by PID 1 alone, between attempts and around cases that have a cassette, under a sequence number that is odd
while a write is under way. The layout is in PROTOCOL.md.
"""

import hashlib
import mmap
import os
import struct

from .listings import Table
from .orders import Instant

MAGIC = b"TRBPINS1"
SIZE = 4096
CLOCK, ENTROPY, LISTING, RECORDED, REVERSED = 1, 2, 4, 8, 16

_SEQUENCE = struct.Struct("<I")
# From offset 12: flags, seconds, nanoseconds, CPU count, entropy key, the table of recorded listings.
_BODY = struct.Struct("<IqII32sII")


def entropy_key(seed: int, place: str = "") -> bytes:
    """The same key for every attempt under one seed: pins make runs repeat. A place within an attempt has its own."""
    named = f"tribunal-entropy:{seed}:{place}" if place else f"tribunal-entropy:{seed}"
    return hashlib.sha256(named.encode("utf-8", "surrogateescape")).digest()


class PinPage:
    def __init__(self, path: str) -> None:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.ftruncate(fd, SIZE)
            os.fchmod(fd, 0o644)
            self._page = mmap.mmap(fd, SIZE)
        finally:
            os.close(fd)
        self._sequence = 0
        self._cpus = self._order = 0
        self._page[12:SIZE] = bytes(SIZE - 12)
        self._page[0:8] = MAGIC

    def write(self, clock: Instant, seed: int, cpus: int, backwards: bool = False) -> None:
        self._cpus, self._order = cpus, REVERSED if backwards else 0
        self.change(clock, None, entropy_key(seed))

    def change(self, clock: Instant, table: Table | None, key: bytes) -> None:
        """What a single case sees, with the listings that are on record for it."""
        flags, place = CLOCK | ENTROPY | LISTING | self._order, (0, 0)
        if table is not None:
            flags, place = flags | RECORDED, (table.offset, table.length)
        self._publish(_BODY.pack(flags, clock.seconds, clock.nanoseconds, self._cpus, key, *place))

    def _publish(self, body: bytes) -> None:
        self._step()
        self._page[12 : 12 + len(body)] = body
        self._step()

    def _step(self) -> None:
        self._sequence = (self._sequence + 1) % 2**32
        self._page[8:12] = _SEQUENCE.pack(self._sequence)

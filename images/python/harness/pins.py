"""The pin page: what the preloaded library reads at every call.

Written by PID 1 alone, between attempts, under a sequence number that is odd while a write is under way. The layout
is in PROTOCOL.md.
"""

import hashlib
import mmap
import os
import struct

from .orders import Instant

MAGIC = b"TRBPINS1"
SIZE = 4096
CLOCK, ENTROPY, LISTING = 1, 2, 4

_SEQUENCE = struct.Struct("<I")
_BODY = struct.Struct("<IqII32s")  # from offset 12: flags, seconds, nanoseconds, CPU count, entropy key


def entropy_key(seed: int) -> bytes:
    """The same key for every attempt under one seed: pins make runs repeat."""
    return hashlib.sha256(b"tribunal-entropy:%d" % seed).digest()


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
        self._page[12:SIZE] = bytes(SIZE - 12)
        self._page[0:8] = MAGIC

    def write(self, clock: Instant, seed: int, cpus: int) -> None:
        flags = CLOCK | ENTROPY | LISTING
        self._publish(_BODY.pack(flags, clock.seconds, clock.nanoseconds, cpus, entropy_key(seed)))

    def _publish(self, body: bytes) -> None:
        self._step()
        self._page[12 : 12 + len(body)] = body
        self._step()

    def _step(self) -> None:
        self._sequence = (self._sequence + 1) % 2**32
        self._page[8:12] = _SEQUENCE.pack(self._sequence)

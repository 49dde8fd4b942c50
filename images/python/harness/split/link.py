"""One socket pair's end: bounded frames, strictly in turn.

Whoever is to speak sends one frame and waits for one. More than was asked for, or a frame over the limit, is
`LinkBroken`; the end of the stream is `LinkGone`. Time-outs are PID 1's.
"""

from __future__ import annotations

import _thread
import socket
import struct
from typing import Any

from .codec import MAX_BYTES
from .space import Space

_pack, _unpack = struct.Struct("<I").pack, struct.Struct("<I").unpack_from
_CHUNK = 1 << 13  # holds all of most frames


class LinkGone(Exception):
    """The other end is closed."""


class LinkBroken(Exception):
    """What came is not one frame."""


class Link:
    def __init__(self, fd: int, first: int) -> None:
        self._socket = socket.socket(fileno=fd)
        self._socket.setblocking(True)
        # Held here, where no test that replaces functions of `socket` looks.
        self._send, self._receive = self._socket.sendall, self._socket.recv
        self.space = Space(first)
        self.broken = False
        self.changed: list[Any] = []  # what the other end changed since it was asked
        self.turn = _thread.RLock()  # a thread's that shares its link with others, for as long as it asks
        self.busy = False  # a frame is being made or waited for: nobody may speak in between, no finalizer either

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, body: bytes) -> None:
        try:
            self._send(_pack(len(body)) + body)
        except OSError as error:
            raise LinkGone(str(error)) from None

    def receive(self) -> bytes:
        try:
            data = self._receive(_CHUNK)
        except OSError as error:
            raise LinkGone(str(error)) from None
        if len(data) > 4 and _unpack(data)[0] + 4 == len(data):  # nearly always
            self.busy = False
            return data[4:]
        if not data:
            raise LinkGone("closed")
        while len(data) < 4:
            data += self._some()
        length = _unpack(data)[0] + 4
        if length > MAX_BYTES + 4:
            raise LinkBroken(f"a frame of {length} bytes")
        if len(data) < length:
            parts, have = [data], len(data)
            while have < length:
                parts.append(self._some(length - have))
                have += len(parts[-1])
            data = b"".join(parts)
        if len(data) != length:
            raise LinkBroken("more than one frame")
        self.busy = False
        return data[4:]

    def _some(self, most: int = _CHUNK) -> bytes:
        try:
            data = self._receive(min(most, 1 << 20))
        except OSError as error:
            raise LinkGone(str(error)) from None
        if not data:
            raise LinkGone("closed")
        return data

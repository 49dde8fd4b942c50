"""Frames: bytes on a stream to messages and back.

`u32 length (big-endian, of what follows) | u8 kind | body`, used between server and PID 1, and between PID 1 and
its children. It never guesses: a frame that is too long, empty, of an unknown kind or not a JSON object raises
`FrameError`, and the conversation is over.
"""

import contextlib
import hmac
import json
import os
import re
import struct
from collections.abc import Callable
from typing import Any

MAX_FRAME = 1_048_576
JSON = 0x4A
TAR = 0x54
MARK = 32

_HEAD = struct.Struct(">IB")
_SURROGATE = re.compile("[\ud800-\udfff]")

Message = dict[str, Any]


def _encoder() -> Callable[[Message], str]:
    """An encoder of our own: code that changes `json` in its own process does not change what is said here."""
    encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    make: Any = vars(json.encoder).get("c_make_encoder")
    quote, join = json.encoder.encode_basestring, "".join
    if make is None:
        return encoder.encode
    chunks = make(None, encoder.default, quote, None, ":", ",", False, False, False)
    return lambda message: join(chunks(message, 0))


_encode = _encoder()
_decoder: Any = json.JSONDecoder()
_decode = _decoder.scan_once


class FrameError(ValueError):
    """What arrived is not a frame."""


def plain(text: str) -> str:
    """Text that every JSON reader takes: lone surrogates become U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def encode(kind: int, body: bytes) -> bytes:
    if len(body) + 1 > MAX_FRAME:
        raise FrameError(f"a frame of {len(body) + 1} bytes is too long")
    return _HEAD.pack(len(body) + 1, kind) + body


def encode_json(message: Message) -> bytes:
    text = _encode(message)
    try:
        body = text.encode()
    except UnicodeEncodeError:
        body = plain(text).encode()
    return encode(JSON, body)


def decode_json(body: bytes) -> Message:
    try:
        message = _whole(str(body, "utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise FrameError("a frame is not JSON") from error
    if not isinstance(message, dict):
        raise FrameError("a frame is not a JSON object")
    return message


def _whole(text: str) -> object:
    with contextlib.suppress(StopIteration):
        value, end = _decode(text, 0)
        if end == len(text):
            return value
    return json.loads(text)  # white space around it, or what is wrong with it


class FrameBuffer:
    """Collects bytes as they come and yields whole frames."""

    def __init__(self, kinds: tuple[int, ...] = (JSON, TAR), limit: int = MAX_FRAME) -> None:
        self._kinds = kinds
        self._limit = limit
        self._data = bytearray()
        self._at = 0

    def __len__(self) -> int:
        return len(self._data) - self._at

    def feed(self, data: bytes) -> None:
        self._data += data

    def take(self) -> tuple[int, bytes] | None:
        """The next whole frame, or None until more bytes have come."""
        if len(self) < _HEAD.size:
            return None
        length, kind = _HEAD.unpack_from(self._data, self._at)
        if not 1 <= length <= self._limit or kind not in self._kinds:
            raise FrameError(f"a frame of kind {kind} with {length} bytes")
        start, end = self._at + _HEAD.size, self._at + 4 + length
        if len(self._data) < end:
            return None
        body = bytes(self._data[start:end])
        self._at = end
        if self._at > 65_536:
            del self._data[: self._at]
            self._at = 0
        return kind, body


class MarkedFrames(FrameBuffer):
    """Frames whose bodies begin with half an HMAC-SHA256 in hex, over their number and the rest."""

    def __init__(self, kinds: tuple[int, ...], key: bytes, limit: int) -> None:
        super().__init__(kinds, limit=limit)
        self._begun = hmac.new(key, digestmod="sha256")
        self._number = 0

    def take(self) -> tuple[int, bytes] | None:
        frame = super().take()
        if frame is None:
            return None
        kind, body = frame
        mark, text = body[:MARK], body[MARK:]
        wanted = self._begun.copy()
        wanted.update(self._number.to_bytes(8, "big") + text)
        if not hmac.compare_digest(mark, wanted.hexdigest()[:MARK].encode()):
            raise FrameError("a frame without its mark")
        self._number += 1
        return kind, text


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def read_message(fd: int, buffer: FrameBuffer) -> Message | None:
    """Blocks for one JSON message; None at the end of the stream."""
    while True:
        frame = buffer.take()
        if frame is not None:
            return decode_json(frame[1])
        data = os.read(fd, 65_536)
        if not data:
            return None
        buffer.feed(data)

"""Frames: what is taken, and that nothing else is."""

import hashlib
import hmac
import json
import os

import pytest

from harness.frames import (
    JSON,
    MAX_FRAME,
    TAR,
    FrameBuffer,
    FrameError,
    MarkedFrames,
    decode_json,
    encode,
    encode_json,
    read_message,
)


def frames_of(data: bytes, step: int, **options) -> list[tuple[int, bytes]]:
    buffer, out = FrameBuffer(**options), []
    for at in range(0, len(data), step):
        buffer.feed(data[at : at + step])
        while (frame := buffer.take()) is not None:
            out.append(frame)
    assert len(buffer) == 0
    return out


@pytest.mark.parametrize("step", [1, 3, 7, 10_000_000])
def test_frames_come_out_as_they_went_in(step):
    bodies = [(JSON, b"{}"), (TAR, b""), (TAR, bytes(range(256)) * 300), (JSON, b'{"a":1}')]
    data = b"".join(encode(kind, body) for kind, body in bodies)
    assert frames_of(data, step) == bodies


def test_the_largest_frame_passes_and_one_more_byte_does_not():
    body = b"x" * (MAX_FRAME - 1)
    assert frames_of(encode(TAR, body), 1 << 20) == [(TAR, body)]
    with pytest.raises(FrameError):
        encode(TAR, body + b"x")


@pytest.mark.parametrize(
    "data",
    [b"\0\0\0\0J", b"\xff\xff\xff\xffJ", b"\0\x10\0\x01J", b"\0\0\0\x02Zx", b"\0\0\0\x02\0x", b"GET / HTTP/1.1\r\n"],
)
def test_what_is_no_frame(data):
    buffer = FrameBuffer()
    buffer.feed(data)
    with pytest.raises(FrameError):
        buffer.take()


def test_a_kind_that_is_not_expected_here():
    buffer = FrameBuffer((JSON,))
    buffer.feed(encode(TAR, b""))
    with pytest.raises(FrameError):
        buffer.take()


def test_a_body_without_its_mark():
    key = bytes(32)
    good = MarkedFrames((JSON,), key, MAX_FRAME)
    first = hmac.new(key, bytes(8) + b"{}", hashlib.sha256).hexdigest()[:32].encode()
    second = hmac.new(key, bytes(7) + b"\1" + b"{}", hashlib.sha256).hexdigest()[:32].encode()
    good.feed(encode(JSON, first + b"{}") + encode(JSON, second + b"{}"))
    assert [good.take(), good.take()] == [(JSON, b"{}")] * 2
    good.feed(encode(JSON, first + b"{}"))  # said once already
    with pytest.raises(FrameError):
        good.take()
    for body in (second + b"{}", first + b"[]", b"{}", first):
        bad = MarkedFrames((JSON,), key, MAX_FRAME)
        bad.feed(encode(JSON, body))
        with pytest.raises(FrameError):
            bad.take()


@pytest.mark.parametrize("body", [b"", b"[]", b"1", b"nul", b"{", b"\xff", b'{"a":', b"[" * 200_000])
def test_what_is_no_json_object(body):
    with pytest.raises(FrameError):
        decode_json(body)


@pytest.mark.parametrize("text", ["plain", "caf\u00e9 \U0001f600", "\ud800", "a\udfffb\ud83d", "\0\x1b[31m", "\u2028"])
def test_text_of_any_kind_is_valid_utf8_and_keeps_what_it_can(text):
    body = encode_json({"text": text})[5:]
    shown = json.loads(body.decode())["text"]
    assert len(shown) == len(text)
    assert all(a == b or b == "\ufffd" for a, b in zip(text, shown, strict=True))
    assert "\\ud" not in body.decode()


def test_numbers_that_json_has_not_are_refused():
    with pytest.raises(ValueError, match="JSON"):
        encode_json({"x": float("nan")})


def test_reading_ends_with_the_stream():
    reader, writer = os.pipe()
    os.write(writer, encode_json({"a": 1}) + encode_json({"b": 2}) + b"\0\0")
    os.close(writer)
    buffer = FrameBuffer()
    assert read_message(reader, buffer) == {"a": 1}
    assert read_message(reader, buffer) == {"b": 2}
    assert read_message(reader, buffer) is None
    os.close(reader)

"""Printed output: cut into phases by marks, bounded, counted."""

import os

import pytest

from harness.output import TEXT, Output, mark

TOKEN = b"0123456789abcdef"


def output(limit: int = 1000, factor: int = 10) -> Output:
    reader, writer = os.pipe()
    os.close(writer)
    return Output(reader, TOKEN, limit, factor)


@pytest.mark.parametrize("step", [1, 2, 5, 19, 1000])
def test_each_phase_has_its_own_text(step):
    out = output()
    data = (
        b"before" + mark(TOKEN, 1) + b"setup" + mark(TOKEN, 2) + mark(TOKEN, 3) + b"call\n" + mark(TOKEN, 4) + b"open"
    )
    for at in range(0, len(data), step):
        out.feed(data[at : at + step])
    assert [out.take(number) for number in (1, 2, 3, 4)] == ["before", "setup", "", "call\n"]
    assert out.rest() == "open"
    assert out.total == len(b"beforesetupcall\nopen")


def test_many_phases_in_one_reading():
    out = output(limit=10**9)
    texts = [b"x" * (n % 7) for n in range(5000)]
    out.feed(b"".join(text + mark(TOKEN, number) for number, text in enumerate(texts)))
    assert [out.take(number).encode() for number in range(5000)] == texts
    assert out.total == sum(map(len, texts))


def test_a_mark_that_never_came_gives_what_is_open():
    out = output()
    out.feed(b"text")
    assert out.take(7) == "text"
    assert out.rest() == ""


@pytest.mark.parametrize(
    "fake",
    [
        b"\0\x1e" + TOKEN,
        b"\0\x1e" + TOKEN + b":",
        b"\0\x1e" + TOKEN + b":x\0",
        b"\0\x1eother:1\0",
        b"\0\x1e" + TOKEN + b":" + b"9" * 50,
    ],
)
def test_what_only_looks_like_a_mark(fake):
    out = output()
    out.feed(fake + b"after" + mark(TOKEN, 1))
    assert out.take(1).endswith("after")


def test_only_the_tail_is_kept():
    out = output(limit=10**9)
    for _ in range(100):
        out.feed(b"x" * 100_000)
        assert len(out._pending) < 20_000
    out.feed(b"end" + mark(TOKEN, 1))
    text = out.take(1)
    assert len(text) == TEXT
    assert text.endswith("xend")
    assert out.total == 10_000_003


def test_marks_nobody_asked_for_do_not_pile_up():
    out = output(limit=10**9)
    for number in range(30_000):
        out.feed(b"x" * 2000 + mark(TOKEN, number))
    assert len(out._closed) < 9_000
    assert sum(len(segment.tail) for segment in out._closed.values()) == out._kept <= 16 << 20
    assert out.take(29_999) == "x" * 2000
    out.feed(b"again" + mark(TOKEN, 29_998))
    assert sum(len(segment.tail) for segment in out._closed.values()) == out._kept


def test_a_case_over_its_limit_is_cut_with_a_mark_and_far_over_it_floods():
    out = output(limit=1000, factor=10)
    # All of it has come before the first record is read: the marks say what belongs where.
    out.feed(b"x" * 900 + mark(TOKEN, 1) + b"y" * 900 + mark(TOKEN, 2) + b"y" * 101 + mark(TOKEN, 3) + mark(TOKEN, 4))
    out.begin(1)
    assert out.take(2) == "y" * 900
    assert out.take(3) == "[output cut: more than 1000 bytes]\n" + "y" * 101
    assert not out.flooded
    out.feed(b"x" * 9000)
    assert out.flooded
    out.begin(4)
    assert not out.flooded
    out.feed(b"x" * 1000)
    assert not out.flooded
    out.feed(b"x")
    assert out.flooded


def test_bytes_that_are_no_text():
    out = output()
    out.feed(b"\xff\xed\xa0\x80ok" + mark(TOKEN, 1))
    assert out.take(1).encode().endswith(b"ok")


def test_draining_reads_what_is_there_and_sees_the_end():
    reader, writer = os.pipe()
    out = Output(reader, TOKEN, 1000, 10)
    assert out.drain()
    os.write(writer, b"hello")
    assert out.drain()
    os.close(writer)
    assert not out.drain()
    assert out.rest() == "hello"
    os.close(reader)

"""A product that speaks the protocol itself gets nothing out of the oracle, and every try is told."""

import os
import signal
import struct
from unittest import mock

import pytest

from harness.split import asks, mirror
from harness.split.connect import ProductBroken

SECRET = "expected value"


class Double:
    """A test double, as a sealed file defines them."""

    limit = 3

    def __init__(self):
        self.name = "double"
        self._hidden = SECRET

    def reply(self, x):
        return x + self.limit


def callback(x):
    return x


FORBIDDEN = [
    (callback, name)
    for name in ("__globals__", "__code__", "__closure__", "__builtins__", "__get__", "__class__", "__init__", "__reduce_ex__")
] + [
    (Double(), name) for name in ("_hidden", "__class__", "__reduce__", "__init__", "__module__x", "__init_subclass__")
]  # fmt: skip


@pytest.mark.parametrize(
    ("target", "name"), FORBIDDEN, ids=lambda value: value if isinstance(value, str) else type(value).__name__
)
def test_insides_are_refused(hostile, target, name):
    with pytest.raises(Exception) as caught:
        hostile.product.ask_raw(asks.GETATTR, (target, name))
    assert SECRET not in str(caught.value)
    assert hasattr(target, name) == bool(hostile.tampers), hostile.tampers


def frame():
    import sys

    return sys._getframe()


@pytest.mark.parametrize(
    "target", [frame(), callback.__code__, (n for n in [1]), pytest, type("Pair", (), {})],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
@pytest.mark.parametrize(
    "name", ["f_globals", "co_consts", "system", "FunctionType", "return_value", "gi_frame", "Item", "mro"]
)
def test_no_object_lends_its_insides(hostile, target, name):
    with pytest.raises(Exception):
        hostile.product.ask_raw(asks.GETATTR, (target, name))


def test_what_a_test_double_offers_is_given(hostile):
    double = Double()
    assert hostile.product.read_attribute(double, "name") == "double"
    assert hostile.product.apply(double.reply, 2) == 5
    hostile.product.set_attribute(double, "limit", 10)
    assert double.limit == 10 and hostile.tampers == []


def test_the_dictionary_of_a_test_double_shows_its_public_names_alone(hostile):
    seen = hostile.product.ask_raw(asks.GETATTR, (Double(), "__dict__"))
    assert sorted(seen) == ["name"] and SECRET not in repr(dict(seen))


def test_a_mocks_verdict_cannot_be_set(hostile):
    double = mock.Mock()
    for name in ("assert_called_once", "call_count", "return_value", "side_effect"):
        with pytest.raises(AttributeError):
            hostile.product.set_attribute(double, name, 1)
    assert len(hostile.tampers) == 4


@pytest.mark.parametrize(
    "op", [asks.SUBCLASS, asks.IMPORT, asks.FIND, asks.RELOAD, asks.DUMP, asks.LOAD, asks.INSIDE, 200]
)
def test_what_only_the_oracle_asks_is_refused(hostile, op):
    with pytest.raises(Exception):
        hostile.product.ask_raw(op, ("os", ()))


def test_universal_equality_is_told(hostile):
    for _ in range(8):
        assert hostile.product.Any_() == 5
    assert {kind for kind, _ in hostile.tampers} == {"universal-equality"}


def test_a_class_that_holds_everything_is_told(hostile):
    for _ in range(8):
        assert 5 in hostile.product.Holds
    assert {kind for kind, _ in hostile.tampers} == {"universal-equality"}


def test_equality_with_every_number_is_told(hostile):
    for _ in range(8):
        assert hostile.product.Chameleon() == 12.5
    assert {kind for kind, _ in hostile.tampers} == {"universal-equality"}


def test_an_equality_that_is_no_bool_is_told(hostile):
    assert hostile.product.Liar() == 5
    assert ("lied", "Liar.__eq__ gave a int") in hostile.tampers


FRAMES = {
    "garbage": b"\x05\0\0\0garbl", "unknown kind": b"\x03\0\0\0\x09\0\0", "no such object": b"\x0c\0\0\0\x02\0\0h\xff\0\0\0\0\0\0\0",
    "a class by name": b"\x1d\0\0\0\x02\0\0Gs\x0a\0\0\0subprocesss\x05\0\0\0Popen",
    "too long": b"\xff\xff\xff\xff\x02\0\0N", "two frames": b"\x04\0\0\0\x02\0\0N" * 2,
    "too deep": (lambda body: len(body).to_bytes(4, "little") + body)(b"\x02\0\0" + b"t\x01\0\0\0" * 3000 + b"N"),
    "too many": b"\x08\0\0\0\x02\0\0t\xff\xff\xff\xff",
}  # fmt: skip


@pytest.mark.parametrize("name", FRAMES)
def test_malformed_frames_end_the_conversation_and_are_told(hostile, name):
    with pytest.raises(ProductBroken):
        hostile.product.send_raw(FRAMES[name])
        hostile.product.echo(1)
    assert hostile.tampers[0][0] == "protocol"
    with pytest.raises(ProductBroken):
        hostile.product.echo(1)


@pytest.mark.parametrize("kind", [2, 3])
def test_an_exception_crosses_as_one_or_not_at_all(hostile, kind):
    """An object whose class is an exception would be raised without a mark of whose it is."""
    kept = hostile.product.Bad  # a mirror that nobody holds is made anew, and asked for
    body = bytes((kind, 0, 0)) + b"H\0" + struct.pack("<QQ", 1 << 40, mirror.number_of(kept))
    with pytest.raises(ProductBroken):
        hostile.product.send_raw_alone(struct.pack("<I", len(body)) + body)
    assert ("protocol", "CodecError: an exception that does not cross as one") in hostile.tampers


def test_death_is_seen_at_once(hostile):
    from conftest import Gone

    with pytest.raises(Gone):
        hostile.product.leave(0)
    with pytest.raises(Gone):
        hostile.product.echo(1)


def test_a_hang_can_be_ended_from_outside(hostile):
    from conftest import Gone

    signal.signal(signal.SIGALRM, lambda *_: os.kill(hostile.pid, signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    with pytest.raises(Gone):
        hostile.product.loop_forever()


def test_a_value_nested_too_deep_is_an_error_and_no_more(pair):
    with pytest.raises(Exception, match="nested"):
        pair.product.nest(5000)
    assert pair.product.echo(1) == 1


def test_recursion_across_both_ends_is_an_error_and_no_more(pair):
    def again(n):
        return pair.product.apply(again, n + 1)

    with pytest.raises(RecursionError):
        again(0)
    assert pair.product.echo(1) == 1

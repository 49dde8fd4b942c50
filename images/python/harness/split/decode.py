"""Bytes to values, for an end that trusts none of them.

Makes exact built-in values, and leaves handles to the hooks of the end that reads. Never runs code that the bytes
choose; fails with `CodecError`, and with what a hook raises.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

from . import arrays, scalars
from .codec import FACTORIES, MAX_DEPTH, MAX_NODES, CodecError, Incoming
from .space import Space

_C128 = struct.Struct("<dd")
_HANDLE = struct.Struct("<BQQ")
_unpack_u32 = struct.Struct("<I").unpack_from
_unpack_i64 = struct.Struct("<q").unpack_from
_unpack_f64 = struct.Struct("<d").unpack_from


class Decoder:
    """Bytes to values."""

    __slots__ = ("_data", "_nodes", "_pos", "depth", "end", "space")

    def __init__(self, data: bytes, end: Incoming, space: Space, begin: int = 0) -> None:
        self._data = data
        self._pos = begin
        self.end = end
        self.space = space
        self.depth = 0
        self._nodes = 0

    def at_end(self) -> bool:
        return self._pos == len(self._data)

    def take(self, count: int) -> bytes:
        """The next bytes."""
        begin = self._pos
        end = begin + count
        if end > len(self._data):
            raise CodecError("the bytes end in the middle of a value")
        self._pos = end
        return self._data[begin:end]

    def u32(self) -> int:
        try:
            (number,) = _unpack_u32(self._data, self._pos)
        except struct.error:
            raise CodecError("the bytes end in the middle of a number") from None
        self._pos += 4
        return number  # type: ignore[no-any-return]

    def i64(self) -> int:
        try:
            (number,) = _unpack_i64(self._data, self._pos)
        except struct.error:
            raise CodecError("the bytes end in the middle of a number") from None
        self._pos += 8
        return number  # type: ignore[no-any-return]

    def count(self) -> int:
        """A count of values to come; each takes a byte at least."""
        count = self.u32()
        self._nodes += count
        if count > len(self._data) - self._pos or self._nodes > 2 * MAX_NODES:
            raise CodecError("more values are announced than there are bytes, or than there may be")
        return count

    def value(self) -> Any:
        """The next value."""
        try:
            read = _READERS[self._data[self._pos]]
        except (KeyError, IndexError):
            raise CodecError("no value begins here") from None
        self._pos += 1
        return read(self)

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > 2 * MAX_DEPTH:
            raise CodecError("nested too deep")

    def inner(self) -> Any:
        """A value inside of another."""
        self.deeper()
        value = self.value()
        self.depth -= 1
        return value

    def values(self) -> list[Any]:
        """A count and that many values, inside of another."""
        self.deeper()
        values = [self.value() for _ in range(self.count())]
        self.depth -= 1
        return values

    def new(self, number: int, container: Any) -> Any:
        """A container takes its number before its content is read. 0xffffffff: it is known already."""
        try:
            self.space.add(number, container)
        except ValueError as error:
            raise CodecError(str(error)) from None
        return container

    def content(self) -> Any:
        """A container's content under no number."""
        tag = self.take(1)
        if tag == b"A":
            return arrays.read_content(self)
        read = _CONTAINERS.get(tag)
        if read is None:
            raise CodecError("a container is wanted")
        return read(self, lambda container: container)


def _fill(dec: Decoder, out: Any) -> Any:
    for _ in range(dec.count()):
        key = _hashable(dec.value())
        dec_value = dec.value()
        try:
            if type(out) is OrderedDict:
                OrderedDict.__setitem__(out, key, dec_value)
            else:
                dict.__setitem__(out, key, dec_value)
        except CodecError:
            raise
        except Exception as error:
            raise CodecError("a key that cannot be one") from error
    return out


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except Exception as error:
        raise CodecError("a key or set element that cannot be hashed") from error
    return value


Keep = Callable[[Any], Any]


def _read_list(dec: Decoder, keep: Keep) -> Any:
    out: list[Any] = keep([])
    for _ in range(dec.count()):
        out.append(dec.value())
    return out


def _read_set(dec: Decoder, keep: Keep) -> Any:
    out: set[Any] = keep(set())
    for _ in range(dec.count()):
        out.add(_hashable(dec.value()))
    return out


def _read_bytearray(dec: Decoder, keep: Keep) -> Any:
    return keep(bytearray(dec.take(dec.u32())))


def _read_default(dec: Decoder, keep: Keep) -> Any:
    name = dec.take(dec.take(1)[0]).decode("ascii", "replace")
    if name and name not in FACTORIES:
        raise CodecError("unknown default factory")
    return _fill(dec, keep(defaultdict(FACTORIES.get(name))))


def _read_deque(dec: Decoder, keep: Keep) -> Any:
    limit = dec.i64()
    if not -1 <= limit < 1 << 62:
        raise CodecError("a deque of impossible length")
    out: deque[Any] = keep(deque(maxlen=None if limit < 0 else limit))
    for _ in range(dec.count()):
        out.append(dec.value())
    return out


_CONTAINERS: dict[bytes, Callable[[Decoder, Keep], Any]] = {
    b"l": _read_list, b"S": _read_set, b"B": _read_bytearray, b"f": _read_default, b"q": _read_deque,
    b"D": lambda dec, keep: _fill(dec, keep({})),
    b"O": lambda dec, keep: _fill(dec, keep(OrderedDict())),
    b"C": lambda dec, keep: _fill(dec, keep(Counter())),
}  # fmt: skip


def _read_text(dec: Decoder) -> str:
    try:
        return dec.take(dec.u32()).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise CodecError("text is not UTF-8") from error


def _read_three(dec: Decoder) -> list[Any]:
    parts = dec.values()
    if len(parts) != 3:
        raise CodecError("a slice or range has three parts")
    return parts


def _read_range(dec: Decoder) -> range:
    try:
        return range(*_read_three(dec))
    except (TypeError, ValueError) as error:
        raise CodecError("an impossible range") from error


def _read_scalar(dec: Decoder) -> Any:
    code = dec.take(1)[0]
    if code >= len(scalars.TABLE):
        raise CodecError("unknown scalar type")
    kind, _, make = scalars.TABLE[code]
    parts = dec.inner()
    if type(parts) is not tuple:
        raise CodecError("a scalar without its parts")
    try:
        return make(*parts)
    except Exception as error:
        raise CodecError(f"an impossible {kind.__name__}") from error


def _read_ref(dec: Decoder) -> Any:
    number = dec.u32()
    try:
        return dec.space.objects[number]
    except KeyError:
        raise CodecError("a reference to what was not sent") from None


def _read_handle(dec: Decoder) -> Any:
    return dec.end.theirs(*_handle(dec))


def _handle(dec: Decoder) -> tuple[int, int, int]:
    kind, number, group = _HANDLE.unpack(dec.take(_HANDLE.size))
    if number >> 62 or group >> 62:
        raise CodecError("a handle out of range")
    return kind, number, group


def _read_named(dec: Decoder) -> Any:
    module, name = dec.inner(), dec.inner()
    if type(module) is not str or type(name) is not str:
        raise CodecError("a name is text")
    return dec.end.named(module, name)


def _read_mirrored(dec: Decoder) -> Any:
    _, number, group = _handle(dec)
    return dec.end.mirrored(number, group, dec.inner())


def _read_view(make: Callable[[list[Any]], Any]) -> Callable[[Decoder], Any]:
    def read(dec: Decoder) -> Any:
        parts = dec.values()
        try:
            return make(parts)
        except Exception as error:
            raise CodecError("an impossible view of a dict") from error

    return read


_READERS: dict[int, Callable[[Decoder], Any]] = {
    ord(tag): read
    for tag, read in {
        "N": lambda dec: None, "T": lambda dec: True, "F": lambda dec: False, ".": lambda dec: Ellipsis,
        "!": lambda dec: NotImplemented, "i": Decoder.i64,
        "I": lambda dec: int.from_bytes(dec.take(dec.u32()), "little", signed=True),
        "d": lambda dec: _unpack_f64(dec.take(8))[0], "c": lambda dec: complex(*_C128.unpack(dec.take(16))),
        "s": _read_text, "b": lambda dec: dec.take(dec.u32()), "v": lambda dec: memoryview(dec.take(dec.u32())),
        "t": lambda dec: tuple(dec.values()), "Z": lambda dec: frozenset([_hashable(v) for v in dec.values()]),
        "/": lambda dec: slice(*_read_three(dec)), "r": _read_range, "x": _read_scalar, "R": _read_ref,
        "H": _read_handle, "h": lambda dec: dec.end.ours(dec.i64()), "G": _read_named, "M": _read_mirrored,
        "X": lambda dec: dec.end.raised(dec.inner()),
        "k": _read_view(lambda parts: dict.fromkeys(parts).keys()),
        "w": _read_view(lambda parts: dict(enumerate(parts)).values()),
        "y": _read_view(lambda parts: dict(parts).items()),
    }.items()
}  # fmt: skip


def _numbered(read: Callable[[Decoder, Keep], Any]) -> Callable[[Decoder], Any]:
    def numbered(dec: Decoder) -> Any:
        number = dec.u32()
        dec.deeper()
        value = read(dec, lambda container: dec.new(number, container))
        dec.depth -= 1
        return value

    return numbered


_READERS.update({ord(tag): _numbered(read) for tag, read in _CONTAINERS.items()})
_READERS.update(arrays.READERS)

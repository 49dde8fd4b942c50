"""Values to bytes, by exact type. What no rule here covers is left to the end that sends: it makes a handle of it.

Runs no method of what it writes, but for what the table of scalars takes of the standard library's own types. Fails
with `CodecError` where a value is nested too deep, has too many parts or is too large.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any

from . import arrays, scalars
from .codec import FACTORIES, MAX_BYTES, MAX_DEPTH, MAX_NODES, CodecError, Outgoing
from .space import Space

_pack_u32 = struct.Struct("<I").pack
_pack_i64 = struct.Struct("<q").pack
_pack_c128 = struct.Struct("<dd").pack
_tagged_u32 = struct.Struct("<cI").pack  # a tag and a length or number, in one
_tagged_i64 = struct.Struct("<cq").pack
_tagged_f64 = struct.Struct("<cd").pack
_tagged_handle = struct.Struct("<cBQQ").pack
_TOO_LARGE = struct.error

_FACTORY_NAMES: dict[Any, str] = {factory: name for name, factory in FACTORIES.items()}


class Encoder:
    """One value to bytes."""

    __slots__ = ("_depth", "_nodes", "_other", "blind", "chain", "out", "space")

    def __init__(self, end: Outgoing, space: Space) -> None:
        self.chain = 0  # how far into a chain of exceptions
        self.blind: dict[int, int] | None = None  # the numbers of what is only compared, where this is a comparison
        self._other = end.other
        self.space = space
        self.out: list[bytes] = []
        self._depth = 0
        self._nodes = 0

    def value(self, value: Any) -> None:
        """Append a value."""
        kind = type(value)
        write = _WRITERS.get(kind)
        if write is None:
            write = arrays.writer(kind)
            if write is None:
                self._other(self, value)
                return
            _WRITERS[kind] = write
            _PLAIN.add(kind)
        write(self, value)

    def begin(self, count: int) -> None:
        """One level deeper, with so many values to come."""
        self._depth += 1
        self._nodes += count
        if self._depth > MAX_DEPTH or self._nodes > MAX_NODES:
            raise CodecError(f"a value nested more than {MAX_DEPTH} deep, or of more than {MAX_NODES} parts")

    def end(self) -> None:
        self._depth -= 1

    def items(self, head: bytes, values: Iterable[Any], count: int) -> None:
        """A head, a count, and that many values."""
        self.begin(count)
        out = self.out
        out.append(head + _pack_u32(count))
        writers = _WRITERS
        for value in values:
            write = writers.get(type(value))
            if write is None:
                self.value(value)
            else:
                write(self, value)
        self._depth -= 1

    def pairs(self, head: bytes, mapping: Any) -> None:
        """A head, a count, and that many keys and values."""
        entries = list(dict.items(mapping))
        self.begin(len(entries) * 2)
        self.out.append(head + _pack_u32(len(entries)))
        for key, value in entries:
            self.value(key)
            self.value(value)
        self._depth -= 1

    def content(self, value: Any) -> None:
        """A container's content under no number: for an end that has it already."""
        put = _CONTENT.get(type(value))
        if put is not None:
            put(self, value, b"")
        else:
            self.out.append(b"A")
            arrays.content(self, value)

    def handle(self, kind: int, number: int, group: int) -> None:
        """An object of ours."""
        self.out.append(_tagged_handle(b"H", kind, number, group))

    def back(self, number: int) -> None:
        """An object of the other end's."""
        self.out.append(_tagged_i64(b"h", number))

    def named(self, module: str, name: str) -> None:
        self.out.append(b"G")
        _str(self, module)
        _str(self, name)

    def mirrored(self, number: int, group: int, value: Any) -> None:
        self.out.append(_tagged_handle(b"M", 0, number, group))
        self.value(value)

    def raised(self, parts: tuple[Any, ...]) -> None:
        self.out.append(b"X")
        self.value(parts)

    def finish(self) -> bytes:
        data = b"".join(self.out)
        if len(data) > MAX_BYTES:
            raise CodecError(f"a value of {len(data)} bytes is more than {MAX_BYTES}")
        return data


def _int(enc: Encoder, value: int) -> None:
    try:
        enc.out.append(_tagged_i64(b"i", value))
    except _TOO_LARGE:
        body = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        enc.out.append(_tagged_u32(b"I", len(body)) + body)


def _bool(enc: Encoder, value: bool) -> None:
    enc.out.append(b"T" if value else b"F")


def _str(enc: Encoder, value: str) -> None:
    body = value.encode("utf-8", "surrogatepass")
    enc.out.append(_tagged_u32(b"s", len(body)) + body)


def _memoryview(enc: Encoder, value: memoryview) -> None:
    body = value.tobytes()
    enc.out.append(_tagged_u32(b"v", len(body)) + body)


def _put_list(enc: Encoder, value: Any, number: bytes) -> None:
    enc.items(b"l" + number, list(value), len(value))


def _put_set(enc: Encoder, value: Any, number: bytes) -> None:
    enc.items(b"S" + number, list(value), len(value))


def _put_bytearray(enc: Encoder, value: Any, number: bytes) -> None:
    enc.out.append(b"B" + number + _pack_u32(len(value)) + bytes(value))


def _put_dict(enc: Encoder, value: Any, number: bytes) -> None:
    enc.pairs(b"D" + number, value)


def _put_ordered(enc: Encoder, value: Any, number: bytes) -> None:
    enc.pairs(b"O" + number, value)


def _put_counter(enc: Encoder, value: Any, number: bytes) -> None:
    enc.pairs(b"C" + number, value)


def _put_default(enc: Encoder, value: Any, number: bytes) -> None:
    factory = value.default_factory
    name = _FACTORY_NAMES.get(factory, "").encode()
    enc.pairs(b"f" + number + bytes([len(name)]) + name, value)


def _put_deque(enc: Encoder, value: Any, number: bytes) -> None:
    limit = -1 if value.maxlen is None else value.maxlen
    enc.items(b"q" + number + _pack_i64(limit), list(value), len(value))


_CONTENT: dict[type, Callable[[Encoder, Any, bytes], None]] = {
    list: _put_list, set: _put_set, bytearray: _put_bytearray, dict: _put_dict, OrderedDict: _put_ordered,
    Counter: _put_counter, defaultdict: _put_default, deque: _put_deque,
}  # fmt: skip


def _numbered(put: Callable[[Encoder, Any, bytes], None]) -> Callable[[Encoder, Any], None]:
    def write(enc: Encoder, value: Any) -> None:
        number, known = enc.space.number(value)
        if known:
            enc.out.append(_tagged_u32(b"R", number))
        else:
            put(enc, value, _pack_u32(number))

    return write


def _default_or_handle(enc: Encoder, value: Any) -> None:
    if value.default_factory is not None and _FACTORY_NAMES.get(value.default_factory) is None:
        enc._other(enc, value)
    else:
        _write_default(enc, value)


_write_default = _numbered(_put_default)


def _scalar(code: int, take: Callable[[Any], tuple[Any, ...]]) -> Callable[[Encoder, Any], None]:
    head = b"x" + bytes([code]) + b"t"

    def write(enc: Encoder, value: Any) -> None:
        parts = take(value)
        enc.items(head, parts, len(parts))

    return write


def _constant(tag: bytes) -> Callable[[Encoder, Any], None]:
    return lambda enc, _value: enc.out.append(tag)


_WRITERS: dict[type, Callable[[Encoder, Any], None]] = {
    type(None): _constant(b"N"), bool: _bool, int: _int, str: _str,
    float: lambda enc, value: enc.out.append(_tagged_f64(b"d", value)),
    complex: lambda enc, value: enc.out.append(b"c" + _pack_c128(value.real, value.imag)),
    bytes: lambda enc, value: enc.out.append(_tagged_u32(b"b", len(value)) + value),
    tuple: lambda enc, value: enc.items(b"t", value, len(value)),
    frozenset: lambda enc, value: enc.items(b"Z", value, len(value)),
    slice: lambda enc, value: enc.items(b"/", (value.start, value.stop, value.step), 3),
    range: lambda enc, value: enc.items(b"r", (value.start, value.stop, value.step), 3),
    memoryview: _memoryview, type(Ellipsis): _constant(b"."), type(NotImplemented): _constant(b"!"),
    type({}.keys()): lambda enc, value: enc.items(b"k", list(value), len(value)),
    type({}.values()): lambda enc, value: enc.items(b"w", list(value), len(value)),
    type({}.items()): lambda enc, value: enc.items(b"y", list(value), len(value)),
}  # fmt: skip
for _type, _put in _CONTENT.items():
    _WRITERS[_type] = _numbered(_put)
_WRITERS[defaultdict] = _default_or_handle
for _code, (_type, _take, _make) in enumerate(scalars.TABLE):
    _WRITERS[_type] = _scalar(_code, _take)
del _type, _put, _code, _take, _make


BY_VALUE: frozenset[type] = frozenset(_WRITERS)
_PLAIN: set[type] = set(BY_VALUE)


def is_plain(value: Any) -> bool:
    """Whether values of exactly this type cross by value."""
    return type(value) in _PLAIN


def always(kind: type, write: Callable[[Encoder, Any], None]) -> None:
    """From now on values of exactly this type, which are no plain ones, are written like this."""
    _WRITERS[kind] = write

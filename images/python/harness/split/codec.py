"""Values to bytes and back, for two processes of which one is hostile.

Encodes by *exact* type, so that a subclass never passes for its base; decodes into exact built-in types, and into what
the hooks make of handles. Never runs code that the bytes choose, never imports a name, never builds a class. Fails
with `CodecError` alone, whatever the bytes are.

Layout: one tag byte, then a fixed-size or length-prefixed body, little-endian. A container carries its number in the
`Space` of the link; `R` refers back to one, so that shared and cyclic structures survive.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from . import arrays, scalars
from .space import Space

MAX_DEPTH = 150
MAX_NODES = 4_000_000
MAX_BYTES = 64 * 1024 * 1024

_U32 = struct.Struct("<I")
_I64 = struct.Struct("<q")
_F64 = struct.Struct("<d")
_C128 = struct.Struct("<dd")
_HANDLE = struct.Struct("<BQQ")

_pack_u32, _unpack_u32 = _U32.pack, _U32.unpack_from
_pack_i64, _unpack_i64 = _I64.pack, _I64.unpack_from
_pack_f64, _unpack_f64 = _F64.pack, _F64.unpack_from

# Default factories a defaultdict may carry by value: built-ins without effects.
_FACTORIES: dict[str, Any] = {kind.__name__: kind for kind in (list, dict, set, int, str, float, tuple, bool)}
_FACTORY_NAMES: dict[Any, str] = {factory: name for name, factory in _FACTORIES.items()}


class CodecError(ValueError):
    """The value or the bytes do not fit: too deep, too many, too large, malformed."""


class Outgoing(Protocol):
    """What an end does with values that no rule here covers."""

    def other(self, enc: Encoder, value: Any) -> None: ...


class Incoming(Protocol):
    """What an end makes of handles. Each may refuse with `CodecError`."""

    def theirs(self, kind: int, number: int, group: int) -> Any:
        """An object of the sender's."""

    def ours(self, number: int) -> Any:
        """An object of the receiver's own, come back."""

    def named(self, module: str, name: str) -> Any:
        """A thing that both ends have."""

    def mirrored(self, number: int, group: int, value: Any) -> Any:
        """An immutable value of a class of the sender's."""

    def raised(self, parts: Any) -> Any:
        """An exception object."""


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
        self.out.append(b"H" + _HANDLE.pack(kind, number, group))

    def back(self, number: int) -> None:
        """An object of the other end's."""
        self.out.append(b"h" + _pack_i64(number))

    def named(self, module: str, name: str) -> None:
        self.out.append(b"G")
        _str(self, module)
        _str(self, name)

    def mirrored(self, number: int, group: int, value: Any) -> None:
        self.out.append(b"M" + _HANDLE.pack(0, number, group))
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
    if -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF:
        enc.out.append(b"i" + _pack_i64(value))
    else:
        body = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        enc.out.append(b"I" + _pack_u32(len(body)) + body)


def _bool(enc: Encoder, value: bool) -> None:
    enc.out.append(b"T" if value else b"F")


def _str(enc: Encoder, value: str) -> None:
    body = value.encode("utf-8", "surrogatepass")
    enc.out.append(b"s" + _pack_u32(len(body)) + body)


def _memoryview(enc: Encoder, value: memoryview) -> None:
    body = value.tobytes()
    enc.out.append(b"v" + _pack_u32(len(body)) + body)


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
            enc.out.append(b"R" + _pack_u32(number))
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
    float: lambda enc, value: enc.out.append(b"d" + _pack_f64(value)),
    complex: lambda enc, value: enc.out.append(b"c" + _C128.pack(value.real, value.imag)),
    bytes: lambda enc, value: enc.out.append(b"b" + _pack_u32(len(value)) + value),
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


def is_plain(value: Any) -> bool:
    """Whether values of exactly this type cross by value."""
    return type(value) in _WRITERS


class Decoder:
    """Bytes to values."""

    __slots__ = ("_data", "_depth", "_nodes", "_pos", "end", "space")

    def __init__(self, data: bytes, end: Incoming, space: Space, begin: int = 0) -> None:
        self._data = data
        self._pos = begin
        self.end = end
        self.space = space
        self._depth = 0
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
        (number,) = _unpack_u32(self.take(4))
        return int(number)

    def i64(self) -> int:
        (number,) = _unpack_i64(self.take(8))
        return int(number)

    def count(self) -> int:
        """A count of values to come; each takes a byte at least."""
        count = self.u32()
        if count > len(self._data) - self._pos:
            raise CodecError("more values are announced than there are bytes")
        return count

    def value(self) -> Any:
        """The next value."""
        try:
            read = _READERS[self._data[self._pos]]
        except (KeyError, IndexError):
            raise CodecError("no value begins here") from None
        self._pos += 1
        self._nodes += 1
        self._depth += 1
        if self._depth > 2 * MAX_DEPTH or self._nodes > 2 * MAX_NODES:
            raise CodecError("too many values, or nested too deep")
        value = read(self)
        self._depth -= 1
        return value

    def values(self) -> list[Any]:
        return [self.value() for _ in range(self.count())]

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
    if name and name not in _FACTORIES:
        raise CodecError("unknown default factory")
    return _fill(dec, keep(defaultdict(_FACTORIES.get(name))))


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
    parts = dec.value()
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
    module, name = dec.value(), dec.value()
    if type(module) is not str or type(name) is not str:
        raise CodecError("a name is text")
    return dec.end.named(module, name)


def _read_mirrored(dec: Decoder) -> Any:
    _, number, group = _handle(dec)
    return dec.end.mirrored(number, group, dec.value())


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
        "X": lambda dec: dec.end.raised(dec.value()),
        "k": _read_view(lambda parts: dict.fromkeys(parts).keys()),
        "w": _read_view(lambda parts: dict(enumerate(parts)).values()),
        "y": _read_view(lambda parts: dict(parts).items()),
    }.items()
}  # fmt: skip


def _numbered_reader(read: Callable[[Decoder, Keep], Any]) -> Callable[[Decoder], Any]:
    def numbered(dec: Decoder) -> Any:
        number = dec.u32()
        return read(dec, lambda container: dec.new(number, container))

    return numbered


for _tag, _read in _CONTAINERS.items():
    _READERS[ord(_tag)] = _numbered_reader(_read)
del _tag, _read
_READERS.update(arrays.READERS)

"""numpy arrays and scalars, pandas frames: by value, where a process has loaded the library.

Arrays of objects are rebuilt from plain values. Nothing is imported here: a process that never loaded numpy never does.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .codec import CodecError

if TYPE_CHECKING:
    from .decode import Decoder
    from .encode import Encoder

_ITEMS = 1 << 26


def writer(kind: type) -> Callable[[Encoder, Any], None] | None:
    """How values of exactly this type are written, if they are an array library's."""
    numpy = sys.modules.get("numpy")
    module = kind.__module__
    if numpy is not None and module == "numpy":
        if kind is numpy.ndarray:
            return _array
        if issubclass(kind, numpy.generic):
            return _scalar
        if issubclass(kind, numpy.dtype):
            return _dtype
    # Since 3.0 its classes say `pandas` alone.
    if type(module) is str and module.partition(".")[0] == "pandas" and type(kind) is type:
        return _FRAMES.get(kind.__name__)
    return None


def _library(name: str) -> Any:
    """One of the two libraries, by our own name: the decoder imports nothing that bytes name."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise CodecError(f"a value of {name}, which is not installed") from None


def _numpy() -> Any:
    return _library("numpy")


def _array(enc: Encoder, value: Any) -> None:
    number, known = enc.space.number(value)
    if known:
        enc.out.append(b"R" + number.to_bytes(4, "little"))
        return
    enc.out.append(b"A" + number.to_bytes(4, "little"))
    content(enc, value)


def content(enc: Encoder, value: Any) -> None:
    numpy = _numpy()
    if value.dtype == numpy.dtype(object):
        enc.value((None, tuple(value.shape), tuple(value.ravel().tolist())))
    else:
        enc.value((_descriptor(value.dtype), tuple(value.shape), numpy.ascontiguousarray(value).tobytes()))


def _descriptor(dtype: Any) -> Any:
    return dtype.str if dtype.names is None else tuple(tuple(part) for part in dtype.descr)


def _scalar(enc: Encoder, value: Any) -> None:
    enc.out.append(b"a")
    enc.value((_descriptor(value.dtype), value.tobytes()))


def _dtype(enc: Encoder, value: Any) -> None:
    enc.out.append(b"e")
    enc.value(_descriptor(value))


def _frame(enc: Encoder, value: Any) -> None:
    columns = tuple((name, value.iloc[:, at].to_numpy()) for at, name in enumerate(value.columns))
    enc.out.append(b"P")
    enc.value(("frame", columns, value.index))


def _series(enc: Encoder, value: Any) -> None:
    enc.out.append(b"P")
    enc.value(("series", value.name, value.to_numpy(), value.index))


def _index(enc: Encoder, value: Any) -> None:
    enc.out.append(b"P")
    enc.value(("index", value.name, value.to_numpy()))


def _range_index(enc: Encoder, value: Any) -> None:
    enc.out.append(b"P")
    enc.value(("range", value.name, value.start, value.stop, value.step))


def _timestamp(enc: Encoder, value: Any) -> None:
    enc.out.append(b"P")
    enc.value(("timestamp", value.isoformat()))


_FRAMES: dict[str, Callable[[Encoder, Any], None]] = {
    "DataFrame": _frame, "Series": _series, "Index": _index, "RangeIndex": _range_index, "DatetimeIndex": _index,
    "Timestamp": _timestamp,
}  # fmt: skip


def _read_array(dec: Decoder) -> Any:
    number = dec.u32()
    return dec.new(number, read_content(dec))


def read_content(dec: Decoder) -> Any:
    numpy = _numpy()
    parts = dec.inner()
    try:
        kind, shape, data = parts
        count = math.prod(shape)
        if not 0 <= count <= _ITEMS or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError("an impossible shape")
        if kind is None:
            out = numpy.empty(count, dtype=object)
            if len(data) != count:
                raise ValueError("an array without all its items")
            for at, item in enumerate(data):
                out[at] = item
            return out.reshape(shape)
        return numpy.frombuffer(data, dtype=_plain_dtype(numpy, kind), count=count).reshape(shape).copy()
    except Exception as error:
        raise CodecError("an impossible array") from error


def _plain_dtype(numpy: Any, kind: Any) -> Any:
    dtype = numpy.dtype(kind if type(kind) is str else [tuple(part) for part in kind])
    if dtype.hasobject:
        raise ValueError("objects are not read from bytes")
    return dtype


def _read_scalar(dec: Decoder) -> Any:
    numpy, parts = _numpy(), dec.inner()
    try:
        kind, data = parts
        return numpy.frombuffer(data, dtype=_plain_dtype(numpy, kind), count=1)[0]
    except Exception as error:
        raise CodecError("an impossible scalar") from error


def _read_dtype(dec: Decoder) -> Any:
    numpy, parts = _numpy(), dec.inner()
    try:
        return _plain_dtype(numpy, parts)
    except Exception as error:
        raise CodecError("an impossible dtype") from error


def _read_pandas(dec: Decoder) -> Any:
    parts = dec.inner()
    pandas = _library("pandas")
    try:
        kind, *rest = parts
        if kind == "frame":
            columns, index = rest
            made = pandas.DataFrame({at: column for at, (_, column) in enumerate(columns)}, index=index)
            made.columns = [name for name, _ in columns]
            return made
        if kind == "series":
            return pandas.Series(rest[1], index=rest[2], name=rest[0])
        if kind == "index":
            return pandas.Index(rest[1], name=rest[0])
        if kind == "timestamp":
            return pandas.Timestamp(rest[0])
        return pandas.RangeIndex(rest[1], rest[2], rest[3], name=rest[0])
    except Exception as error:
        raise CodecError("an impossible frame") from error


READERS = {ord("A"): _read_array, ord("a"): _read_scalar, ord("e"): _read_dtype, ord("P"): _read_pandas}


def is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) is numpy.ndarray

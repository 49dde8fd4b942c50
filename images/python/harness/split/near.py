"""Values that differ from a given one by as little as can be: what an equality that only knows the neighbourhood
takes for it.

A twin far away is told apart by whoever knows about how large an answer is; these are not. Where in a container the
difference is, nobody can foresee. None where no such neighbour is known: objects of the product's own classes, mostly.
"""

from __future__ import annotations

import copy
import datetime
import enum
import ipaddress
import pathlib
import re
import sys
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from .mirror import MirrorMeta
from .twins import Coin

_LETTERS = "qzxjkvw"
_DEPTH = 8


def near(coin: Coin, value: Any, depth: int = 0) -> Any:
    """Another value of the same type, or None."""
    kind = type(value)
    make = _MAKERS.get(kind)
    try:
        if make is not None:
            return make(coin, value)
        container = _CONTAINERS.get(kind)
        if container is not None:
            return container(coin, value, depth + 1) if depth < _DEPTH else None
        if isinstance(value, enum.Enum):
            return next((member for member in kind if member is not value), None)
        if isinstance(value, type):
            others = [other for other in _TYPES if other is not value]
            return others[coin.byte() % len(others)] if value in _TYPES else None
        if isinstance(value, tuple) and type(names := getattr(kind, "_fields", None)) is tuple and depth < _DEPTH:
            return _record(coin, value, names, depth + 1)
        numpy = sys.modules.get("numpy")
        if numpy is not None and kind is numpy.ndarray:
            return _array(coin, value)
        return _object(coin, value, depth + 1) if depth < _DEPTH else None
    except (OverflowError, ValueError, ArithmeticError, TypeError, AttributeError):
        return None


def far(coin: Coin, value: Any) -> Any:
    """A value of the same type that no container of honest size holds along with it, or None."""
    kind = type(value)
    noise = 1 + int.from_bytes(bytes(coin.byte() for _ in range(6)))
    if kind in (int, float, Decimal, Fraction):
        return value + kind(noise * 10**9) if value == value and abs(value) < 10**9 else None  # noqa: PLR0124  not a number
    if kind is str:
        return f"{_LETTERS[coin.byte() % len(_LETTERS)]}{noise}"
    return str(noise).encode() if kind is bytes else None


def _sign(coin: Coin) -> int:
    return 1 if coin.flip() else -1


def _float(coin: Coin, value: float) -> float | None:
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124  not a number
        return None
    if value == int(value) and abs(value) < 1e15:
        return value + _sign(coin)
    text = Decimal(repr(value))
    other = float(text + Decimal((0, (1,), int(text.as_tuple().exponent))) * _sign(coin))
    return other if other != value else None


def _decimal(coin: Coin, value: Decimal) -> Decimal | None:
    exponent = value.as_tuple().exponent
    return value + Decimal((0, (1,), exponent)) * _sign(coin) if type(exponent) is int else None


def _text(coin: Coin, value: str) -> str:
    """One letter or digit is another one; not its case, nor a mark that an honest class may take for another."""
    places = [at for at, char in enumerate(value[:10_000]) if char.isalnum()]
    if not places:
        return value + "x"
    at = places[int.from_bytes((coin.byte(), coin.byte())) % len(places)]
    char = value[at]
    if char.isdigit() and char.isascii():
        other = str((int(char) + 1 + coin.byte() % 8) % 10)
    else:
        choices = [letter for letter in _LETTERS if letter != char.lower()]
        other = choices[coin.byte() % len(choices)]
        other = other.upper() if char.isupper() else other
    return value[:at] + other + value[at + 1 :]


def _bytes(coin: Coin, value: bytes) -> bytes:
    if not value:
        return b"\0"
    at = int.from_bytes((coin.byte(), coin.byte())) % len(value)
    return value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]


def _moment(coin: Coin, value: Any) -> Any:
    if value.microsecond:
        return value.replace(microsecond=value.microsecond ^ 1)
    if value.second:
        return value.replace(second=value.second ^ 1)
    return value.replace(minute=value.minute ^ 1)


def _network(coin: Coin, value: Any) -> Any:
    if not value.prefixlen:
        return None
    return type(value)((int(value.network_address) ^ (1 << (value.max_prefixlen - value.prefixlen)), value.prefixlen))


def _minute(coin: Coin) -> datetime.timedelta:
    return datetime.timedelta(minutes=_sign(coin))


def _pattern(coin: Coin, value: Any) -> Any:
    return re.compile(value.pattern + ("x" if type(value.pattern) is str else b"x"), value.flags)


def _address(coin: Coin, value: Any) -> Any:
    return type(value)(int(value) ^ 1)


_MAKERS: dict[type, Callable[[Coin, Any], Any]] = {
    type(None): lambda coin, value: 0, bool: lambda coin, value: not value,
    int: lambda coin, value: value + _sign(coin), float: _float, Decimal: _decimal,
    complex: lambda coin, value: complex(value.real + _sign(coin), value.imag),
    Fraction: lambda coin, value: value + Fraction(_sign(coin), value.denominator),
    str: _text, bytes: _bytes, bytearray: lambda coin, value: bytearray(_bytes(coin, bytes(value))),
    datetime.date: lambda coin, value: value + datetime.timedelta(_sign(coin)),
    datetime.datetime: _moment, datetime.time: _moment,
    datetime.timedelta: lambda coin,
    value: value + datetime.timedelta(microseconds=1 if value.microseconds else 1_000_000),
    uuid.UUID: lambda coin, value: uuid.UUID(int=value.int ^ 1),
    pathlib.PosixPath: lambda coin, value: value.with_name(_text(coin, value.name)) if value.name else value / "x",
    pathlib.PurePosixPath: lambda coin, value: value.with_name(_text(coin, value.name)) if value.name else value / "x",
    range: lambda coin, value: range(value.start, value.stop + value.step, value.step) if value else range(1),
    ipaddress.IPv4Address: _address, ipaddress.IPv6Address: _address,
    ipaddress.IPv4Network: _network, ipaddress.IPv6Network: _network,
    datetime.timezone: lambda coin, value: datetime.timezone(value.utcoffset(None) + _minute(coin)),
    slice: lambda coin, value: slice(value.start, (value.stop or 0) + _sign(coin), value.step),
    re.Pattern: _pattern,
}  # fmt: skip


_TYPES = (int, float, str, bytes, bool, list, dict, set, tuple, complex, type(None))


def _record(coin: Coin, value: Any, names: tuple[str, ...], depth: int) -> Any:
    """A named tuple with another content under one name."""
    begin = coin.byte()
    for step in range(len(names)):
        name = names[(begin + step) % len(names)]
        other = near(coin, getattr(value, name), depth)
        if other is not None:
            return value._replace(**{name: other})
    return None


def _replaced(coin: Coin, items: list[Any], depth: int) -> list[Any]:
    """One item is another; where none has a neighbour, one is gone."""
    if not items:
        return [0]
    begin = int.from_bytes((coin.byte(), coin.byte()))
    for step in range(min(len(items), 16)):
        at = (begin + step) % len(items)
        other = near(coin, items[at], depth)
        if other is not None or items[at] is None:
            return [*items[:at], other, *items[at + 1 :]]
    return items[:-1]


def _pairs(coin: Coin, value: Any, depth: int) -> Any:
    out = copy.copy(value)
    keys = list(value)
    if not keys:
        out["x"] = 0
        return out
    changed = _replaced(coin, [value[key] for key in keys], depth)
    if len(changed) == len(keys):
        for key, item in zip(keys, changed, strict=True):
            out[key] = item
    else:
        del out[keys[-1]]
    return out


_CONTAINERS: dict[type, Callable[[Coin, Any, int], Any]] = {
    list: _replaced,
    tuple: lambda coin, value, depth: tuple(_replaced(coin, list(value), depth)),
    deque: lambda coin, value, depth: deque(_replaced(coin, list(value), depth), value.maxlen),
    set: lambda coin, value, depth: _other_set(set(_replaced(coin, list(value), depth)), value),
    frozenset: lambda coin, value, depth: _other_set(frozenset(_replaced(coin, list(value), depth)), value),
    dict: _pairs, OrderedDict: _pairs, Counter: _pairs, defaultdict: _pairs,
}  # fmt: skip


def _other_set(made: Any, value: Any) -> Any:
    return made if made != value else None


def _array(coin: Coin, value: Any) -> Any:
    if not value.size or value.dtype.kind not in "biufc":
        return None
    out = value.copy()
    at = int.from_bytes((coin.byte(), coin.byte())) % value.size
    out.flat[at] = not out.flat[at] if value.dtype.kind == "b" else out.flat[at] + 1
    return out if (out != value).any() else None


def _object(coin: Coin, value: Any, depth: int) -> Any:
    """An object of a test's own, or pytest's `approx`: a copy that holds something else in one attribute."""
    if isinstance(type(value), MirrorMeta):
        return None
    if isinstance(value, (type, BaseException)) or callable(value):
        return None
    held = _held(value)
    names = ["expected"] if "expected" in held else list(held)
    for name in names:
        other = near(coin, held[name], depth)
        if other is not None:
            made = object.__new__(type(value))
            for each, content in {**held, name: other}.items():
                object.__setattr__(made, each, content)
            return made
    return None


def _held(value: Any) -> dict[str, Any]:
    """What an object holds in its dictionary and its slots."""
    held = getattr(value, "__dict__", None)
    own = dict(held) if type(held) is dict else {}
    for part in type(value).__mro__:
        slots = vars(part).get("__slots__", ())
        for name in (slots,) if type(slots) is str else slots:
            if name not in ("__dict__", "__weakref__") and not name.startswith("__") and hasattr(value, name):
                own[name] = getattr(value, name)
    return own

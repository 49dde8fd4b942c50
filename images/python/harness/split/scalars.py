"""Immutable values of the standard library that cross by value: each as a tuple of plainer ones.

Every row is (exact type, parts of a value, value of parts). Makers may raise anything on impossible parts; the codec
turns it into its own error. Never a type whose making runs code that the parts choose.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import re
import time
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import PosixPath, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from .real import REAL

Row = tuple[type, Callable[[Any], tuple[Any, ...]], Callable[..., Any]]


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError("text is wanted")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError("a whole number is wanted")
    return value


def _zone(value: Any) -> Any:
    # One of the other end's own is an object that forwards: it tells offsets, not times.
    if value is not None and not issubclass(type(value), datetime.tzinfo):
        raise TypeError("a time zone is wanted")
    return value


def _fraction(numerator: Any, denominator: Any) -> Fraction:
    return Fraction(_whole(numerator), _whole(denominator))


def _pattern(pattern: Any, flags: Any) -> re.Pattern[Any]:
    if type(pattern) not in (str, bytes) or len(pattern) > 100_000:
        raise TypeError("a pattern is text or bytes")
    return re.compile(pattern, _whole(flags) & ~re.DEBUG)


def _datetime(*parts: Any) -> Any:
    *numbers, zone, fold = parts
    return REAL.datetime(*[_whole(n) for n in numbers], tzinfo=_zone(zone), fold=_whole(fold))


def _time(*parts: Any) -> Any:
    *numbers, zone, fold = parts
    return REAL.time(*[_whole(n) for n in numbers], tzinfo=_zone(zone), fold=_whole(fold))


def _moment(*parts: Any) -> time.struct_time:
    *numbers, zone, offset = parts
    whole = tuple(_whole(n) for n in numbers)
    return time.struct_time(
        (*whole, zone if zone is None else _text(zone), offset if offset is None else _whole(offset))
    )


TABLE: list[Row] = [
    (time.struct_time, lambda v: (*v, v.tm_zone, v.tm_gmtoff), _moment),
    (os.terminal_size, tuple, lambda *n: os.terminal_size(tuple(_whole(x) for x in n))),
    (Decimal, lambda v: (str(v),), lambda text: Decimal(_text(text))),
    (Fraction, lambda v: (v.numerator, v.denominator), _fraction),
    (UUID, lambda v: (v.int,), lambda number: UUID(int=_whole(number))),
    (PosixPath, lambda v: (str(v),), lambda text: PosixPath(_text(text))),
    (PurePosixPath, lambda v: (str(v),), lambda text: PurePosixPath(_text(text))),
    (PureWindowsPath, lambda v: (str(v),), lambda text: PureWindowsPath(_text(text))),
    (datetime.date, lambda v: (v.year, v.month, v.day), lambda *n: REAL.date(*[_whole(x) for x in n])),
    (
        datetime.datetime,
        lambda v: (v.year, v.month, v.day, v.hour, v.minute, v.second, v.microsecond, v.tzinfo, v.fold),
        _datetime,
    ),
    (datetime.time, lambda v: (v.hour, v.minute, v.second, v.microsecond, v.tzinfo, v.fold), _time),
    (
        datetime.timedelta,
        lambda v: (v.days, v.seconds, v.microseconds),
        lambda *n: datetime.timedelta(*[_whole(x) for x in n]),
    ),
    (
        datetime.timezone,
        lambda v: v.__getinitargs__(),
        lambda offset, *name: (
            datetime.UTC
            if offset == datetime.timedelta(0) and not name
            else datetime.timezone(offset, *map(_text, name))
        ),
    ),
    (ZoneInfo, lambda v: (v.key,), lambda key: ZoneInfo(_text(key))),
    (re.Pattern, lambda v: (v.pattern, v.flags), _pattern),
    (ipaddress.IPv4Address, lambda v: (int(v),), lambda n: ipaddress.IPv4Address(_whole(n))),
    (
        ipaddress.IPv6Address,
        lambda v: (int(v), v.scope_id),
        lambda n, s: (
            ipaddress.IPv6Address(_whole(n))
            if s is None
            else ipaddress.IPv6Address(f"{ipaddress.IPv6Address(_whole(n))}%{_text(s)}")
        ),
    ),
    (ipaddress.IPv4Network, lambda v: (str(v),), lambda text: ipaddress.IPv4Network(_text(text))),
    (ipaddress.IPv6Network, lambda v: (str(v),), lambda text: ipaddress.IPv6Network(_text(text))),
    (ipaddress.IPv4Interface, lambda v: (str(v),), lambda text: ipaddress.IPv4Interface(_text(text))),
    (ipaddress.IPv6Interface, lambda v: (str(v),), lambda text: ipaddress.IPv6Interface(_text(text))),
]

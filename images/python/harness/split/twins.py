"""Values that differ from a given one by a little: what an honest equality tells apart.

Made in the oracle, by a coin that the product cannot foresee, so that it does not know which of two comparisons counts.
"""

from __future__ import annotations

import datetime
import hashlib
import os
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from fractions import Fraction
from typing import Any


class Coin:
    """A stream of bits from a secret; the pinned entropy of the room is no secret."""

    def __init__(self, secret: bytes) -> None:
        self._key = secret or os.urandom(16)
        self._count = 0
        self._bits = b""

    def byte(self) -> int:
        if not self._bits:
            self._count += 1
            self._bits = hashlib.sha256(self._key + self._count.to_bytes(8, "big")).digest()
        value = self._bits[0]
        self._bits = self._bits[1:]
        return value

    def flip(self) -> bool:
        return bool(self.byte() & 1)


class Fresh:
    """An object that nothing else is equal to."""


def twin(coin: Coin, value: Any) -> Any:
    """Another value of the same type."""
    kind = type(value)
    near = coin.flip()
    step = 1 + coin.byte() % 7 if near else 1000 + coin.byte() * 7919
    if kind is bool:
        return Fresh()
    if kind in (int, float, Decimal, Fraction, complex):
        return value + step if value == value else Fresh()
    if kind is str:
        mark = "qzxjk~"[coin.byte() % 6]
        return value + mark if near or not value else mark + str(step)
    if kind is bytes:
        return value + bytes([coin.byte()])
    if kind is datetime.timedelta:
        return value + datetime.timedelta(seconds=step) if value.days < 10**8 else value - datetime.timedelta(seconds=step)
    if kind is datetime.date or kind is datetime.datetime:
        return value.replace(year=value.year + 1 if value.year < 9000 else value.year - 1, day=min(value.day, 28))
    if kind is list or kind is tuple:
        return _sequence(coin, value)
    if kind in (dict, OrderedDict, Counter, defaultdict):
        return {**value, f"~{step}": step} if near or not value else {f"~{step}": step}
    if kind in (set, frozenset):
        return kind([*value, f"~{step}"])
    if kind is deque:
        return deque([*value, step])
    return Fresh()


def _sequence(coin: Coin, value: Any) -> Any:
    items = list(value)
    if items and coin.flip():
        at = coin.byte() % len(items)
        items[at] = twin(coin, items[at])
    else:
        items.append(coin.byte())
    return tuple(items) if type(value) is tuple else items

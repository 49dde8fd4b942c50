"""Whether what the product says of numbers and contents holds together: questions beside the tests' own.

A test that never asks for equality, `abs(got - want) < eps` say, is answered by an object that is near to everything.
So differences and quotients are asked for a second number too, in an order that the product cannot foresee, and what
an object holds is compared from one look to the next. Nothing here knows what is right; an honest object passes
because it is one object.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

from .codec import is_plain
from .twins import Coin

ARITHMETIC = frozenset(("__sub__", "__rsub__", "__truediv__", "__rtruediv__"))
REDUCING = frozenset(("__abs__", "__float__", "__int__", "__round__", "__neg__", "__pos__", "__trunc__"))
# These look at an object, and do not change what it holds.
LOOKS = frozenset(("__iter__", "__len__", "__contains__", "__bool__", "__repr__", "__str__", "__hash__"))
MOST = 256
_EXACT = (int, Fraction)
_NUMBERS = (int, float, Decimal, Fraction)


def is_number(value: Any) -> bool:
    return type(value) in _NUMBERS


def neighbour(coin: Coin, value: Any) -> Any:
    """Another number of the same type and of about the same size: nothing tells which of both a test asked for."""
    kind = type(value)
    step = kind(1 + coin.byte()) if kind in _EXACT else kind(1 + coin.byte()) / kind(8)
    try:
        other = value + step if coin.flip() else value - step
    except ArithmeticError:
        return None
    return other if other and abs(other - value) > 0 else None


def follows(name: str, one: Any, answer: Any, two: Any, second: Any) -> bool:
    """Whether both answers can be of one number: `x - one`, `x - two` and so on for the same x."""
    a, answer, b, second = (Fraction(part) for part in (one, answer, two, second))
    if name == "__sub__":
        left, right = answer + a, second + b
    elif name == "__rsub__":
        left, right = a - answer, b - second
    elif name == "__truediv__":
        left, right = answer * a, second * b
    elif not answer or not second:
        return True
    else:
        left, right = a / answer, b / second
    size = max(abs(left), abs(right), abs(a), abs(b), 1)
    return abs(left - right) <= size / 10**6


def differ(one: tuple[Any, ...], two: tuple[Any, ...]) -> bool:
    """Whether two looks at one object's content showed different plain values."""
    if len(one) != len(two):
        return True
    return any(
        is_plain(a) and is_plain(b) and a != b and (a == a or b == b)  # noqa: PLR0124  what is no number is not itself
        for a, b in zip(one, two, strict=True)
    )


class Look:
    """An iterator over an object of the product's that tells what it showed once it has shown all of it."""

    def __init__(self, connection: Any, value: Any, items: Any) -> None:
        self._connection, self._value, self._rest = connection, value, iter(items)
        self._shown: list[Any] = []

    def __iter__(self) -> Look:
        return self

    def __next__(self) -> Any:
        try:
            item = next(self._rest)
        except StopIteration:
            self._connection.looked(self._value, tuple(self._shown))
            raise
        if len(self._shown) < MOST:
            self._shown.append(item)
        return item

"""Whether what the product says of numbers and contents holds together: questions beside the tests' own.

A test that never asks for equality, `abs(got - want) < eps` say, is answered by an object that is near to everything.
So differences and quotients are asked for a number below and one above too, and what an object holds is compared from
one look to the next. Nothing here knows what is right; an honest object passes because it is one object.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from .encode import is_plain
from .twins import Coin

ARITHMETIC = frozenset(("__sub__", "__rsub__", "__truediv__", "__rtruediv__", "__mul__", "__rmul__"))
WHOLE = frozenset(
    f"__{side}{name}__" for side in ("", "r") for name in ("mod", "and", "or", "xor", "floordiv", "lshift", "rshift")
)
REDUCING = frozenset(("__abs__", "__float__", "__int__", "__round__", "__neg__", "__pos__", "__trunc__"))
# These look at an object, and do not change what it holds.
LOOKS = frozenset(("__iter__", "__len__", "__contains__", "__bool__", "__repr__", "__str__", "__hash__"))
MOST = 256
_NUMBERS = (int, float, Decimal, Fraction)
# What is reckoned with and has no sides: answers are the same or they are not.
_SIDELESS = (complex, datetime.date, datetime.datetime, datetime.timedelta)


def is_number(value: Any) -> bool:
    return type(value) in _NUMBERS


def is_reckoned(value: Any) -> bool:
    """Whether differences of such values are looked into."""
    return type(value) in _NUMBERS or type(value) in _SIDELESS


def away(coin: Coin, value: Any, neighbour: Any) -> Any:
    """A number of the same type and about the same size, on the other side of `value` than its neighbour; or None."""
    kind = type(value)
    try:
        step = (
            1 + coin.byte() + abs(value) // 16
            if kind is int
            else kind(1 + coin.byte()) / kind(8) + abs(value) / kind(16)
        )
        other = value - step if neighbour > value else value + step
    except (ArithmeticError, TypeError):
        return None
    return other if other != value and other == other else None  # noqa: PLR0124  not a number


def ignores(name: str, operands: tuple[Any, ...], answers: tuple[Any, ...]) -> bool:
    """Whether the answer does not depend on the operand, below it and above it alike.

    An object that is near to everything is; an honest one is not, though it saturates or wraps on one side.
    """
    if not all(is_number(part) for part in (*operands, *answers)):
        first = answers[0]
        return all(type(part) is type(first) and part == first for part in answers)
    try:
        given, told = [Fraction(part) for part in operands], [Fraction(part) for part in answers]
    except (OverflowError, ValueError):
        return False  # infinities, and what is no number
    spread = max(told) - min(told)
    if name.endswith("sub__"):
        return spread <= (max(given) - min(given)) / 16
    size = max(abs(part) for part in told)
    return size > 0 and spread <= size / 10**6


def same(one: Any, two: Any, step: Any) -> bool:
    """Whether two differences are one, though what they are differences from lies this far apart."""
    try:
        return is_reckoned(two) and bool(abs(one - two) * 1000 < step)
    except (TypeError, ArithmeticError):
        return False


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
        self._connection, self._value, self._rest = connection, value, items
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

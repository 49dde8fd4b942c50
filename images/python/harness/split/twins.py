"""Values that differ from a given one by a little: what an honest equality tells apart.

Made in the oracle, by a coin that the product cannot foresee, so that it does not know which of two comparisons counts.
"""

from __future__ import annotations

import copy
import datetime
import enum
import hashlib
import os
import pathlib
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
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


class Questions:
    """A coin for each question that a test's own bring along.

    How it falls depends on the secret, the case, what is compared and how often that was before; not on what else was
    asked. So base, asked under the same secret, hears what head heard, though it may be asked in another order.

    A secret that begins with a byte of 0 puts each question of a test's own first: what is asked along with it may
    leave its traces in an object, and hide a mistake that plain pytest sees.
    """

    def __init__(self) -> None:
        self.know(os.urandom(16))

    def know(self, secret: bytes) -> None:
        self._secret, self._own_first = secret, secret[:1] == b"\0"
        self._key = b""
        self._asked: dict[tuple[Any, ...], int] = {}
        self.border("")

    def border(self, case: str) -> None:
        self._key = hashlib.sha256(self._secret + case.encode("utf-8", "surrogatepass")).digest()
        self._asked.clear()

    def about(self, name: str, left: Any, right: Any) -> Coin:
        kind = type(right)
        value = hash(right) if kind in _SCALARS and right == right else 0  # noqa: PLR0124  not a number: by its address
        words = name, type(left).__qualname__, kind.__qualname__, value
        if len(self._asked) > _MANY:
            self._asked.clear()
        number = self._asked[words] = self._asked.get(words, 0) + 1
        return Coin(hashlib.sha256(self._key + repr((words, number)).encode()).digest())

    def others(self, coin: Coin, value: Any) -> Coin:
        """A coin for what `value` is asked along with: the same for all questions of an attempt about one plain value.

        Drawn anew for each, only the test's own value would come again and again, and whoever remembers what was asked
        would know it from the rest.
        """
        settled = _settled(value)
        if settled is None:
            return coin
        return Coin(hashlib.sha256(self._secret + b"others" + settled.encode("utf-8", "surrogatepass")).digest())

    def among(
        self, coin: Coin, others: Sequence[Any], ask: Callable[[Any], Any], own: Callable[[], Any]
    ) -> tuple[Any, list[Any]]:
        """The answer to the test's own question, put among the others, and theirs. All are asked, whatever it is: an
        object that only denies would know the last for the test's."""
        drawn = coin.byte() % (len(others) + 1)
        before = 0 if self._own_first else drawn
        told = [ask(other) for other in others[:before]]
        answer = own()
        return answer, told + [ask(other) for other in others[before:]]


def _settled(value: Any, depth: int = 0) -> str | None:
    """Words for a plain value, the same for equal ones of one type; None for what is not plain, or too large."""
    kind = type(value)
    if kind in _SCALARS or kind in _NAMED:
        text = repr(value)
        return f"{kind.__name__} {text}" if len(text) < _LONG else None
    if kind.__module__ == "_pytest.python_api" and "expected" in vars(value):
        return _settled(vars(value)["expected"], depth)
    if kind not in (list, tuple, dict) or depth > 3 or len(value) > 64:
        return None
    parts = [_settled(part, depth + 1) for part in (value.items() if kind is dict else value)]
    return None if None in parts else f"{kind.__name__} {parts}"


_LONG = 4096
_NAMED = frozenset(
    (Decimal, datetime.date, datetime.datetime, datetime.time, datetime.timedelta, uuid.UUID, pathlib.PosixPath,
     pathlib.PurePosixPath, range)
)  # fmt: skip
_SCALARS = frozenset((int, float, complex, str, bytes, bool, type(None), Fraction))
_MANY = 50_000


class Fresh:
    """An object that nothing else is equal to."""


_IMPOSTORS: dict[type, type] = {}


def _impostor(kind: type) -> Any:
    """A fresh object that looks like one of this class: the name of its class must not give a probe away."""
    if kind.__module__ == "builtins":
        return Fresh()
    made = _IMPOSTORS.get(kind)
    if made is None:
        made = type(kind.__name__, (), {"__module__": kind.__module__, "__qualname__": kind.__qualname__})
        _IMPOSTORS[kind] = made
    return made()


def fresh(value: Any) -> Any:
    """A new object that is equal to nothing, of a class that looks like the one of `value`."""
    kind = type(value)
    made: Any = type(kind.__name__, (Fresh,), {"__module__": kind.__module__, "__qualname__": kind.__qualname__})
    return made()


def beyond(name: str, value: Any) -> Any:
    """What is on the other side of `value`: nothing is below the one and above the other."""
    kind = type(value)
    if kind in (list, tuple):
        if name in ("__lt__", "__le__"):
            return kind((*value, 0))
        return value[:-1] if value else None
    step = _STEPS.get(type(value))
    if step is None or value != value:  # noqa: PLR0124  not a number
        return None
    try:
        other = value + step if name in ("__lt__", "__le__") else value - step
    except (OverflowError, ArithmeticError):
        return None
    return other if other != value else None


def twin(coin: Coin, value: Any) -> Any:
    """Another value of the same type, far enough from it that no tolerance excuses taking it for the same."""
    kind: Any = type(value)
    step = (1 + coin.byte()) * 10 ** (3 + coin.byte() % 12)
    make = _MAKERS.get(kind)
    try:
        if make is not None:
            return make(coin, value, step)
        if isinstance(value, enum.Enum) and len(kind) > 1:
            others = [member for member in kind if member is not value]
            return others[coin.byte() % len(others)]
        if isinstance(value, tuple) and type(names := getattr(kind, "_fields", None)) is tuple and names:
            name = names[coin.byte() % len(names)]
            return value._replace(**{name: twin(coin, getattr(value, name))})  # type: ignore[attr-defined]
        if kind.__module__ == "_pytest.python_api" and "expected" in vars(value):
            other = copy.copy(value)
            other.expected = _far(value.expected, step)
            return other
    except Exception:  # noqa: BLE001  a value of which there is no other
        return Fresh()
    return _impostor(kind)


def _far(value: Any, step: int) -> Any:
    """What `approx` expects, each number of it moved far away: tolerances are wide for large numbers."""
    if isinstance(value, dict):
        return {key: _far(item, step) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_far(item, step) for item in value)
    other = value + step
    return other if other != value else -step


def _number(coin: Coin, value: Any, step: int) -> Any:
    if coin.flip():
        # About as large: what only looks right is taken for right by an equality that goes by looks.
        step = (7 + coin.byte()) * (1 if coin.flip() else -1)
    other = value + step
    return other if other != value else -step  # infinities and what is not a number


def _text(coin: Coin, value: str, step: int) -> str:
    places = [at for at, sign in enumerate(value) if sign.isascii() and sign.isalnum()]
    if places and coin.flip():
        at = places[coin.byte() % len(places)]
        signs = next(signs for signs in _SIGNS if value[at] in signs)
        turn = 1 + coin.byte() % (len(signs) - 1)
        other = signs[(signs.index(value[at]) + turn) % len(signs)]
        return value[:at] + other + value[at + 1 :]
    return "qzxjk~"[coin.byte() % 6] + str(step)


_SIGNS = ("0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def _moment(coin: Coin, value: Any, step: int) -> Any:
    return value.replace(year=value.year + 1 if value.year < 9000 else value.year - 1, day=min(value.day, 28))


def _table(coin: Coin, value: Any, step: int) -> Any:
    if value and coin.flip():
        key = list(value)[coin.byte() % len(value)]
        other = copy.copy(value)
        other[key] = twin(coin, value[key])
        return other
    return {f"~{step}": step} if coin.flip() else {**value, f"~{step}": step}


_MAKERS: dict[type, Callable[[Coin, Any, int], Any]] = {
    int: _number, float: _number, complex: _number, Decimal: _number, Fraction: _number, str: _text,
    bool: lambda coin, value, step: not value, uuid.UUID: lambda coin, value, step: uuid.UUID(int=value.int ^ step),
    range: lambda coin, value, step: range(value.start, value.stop + value.step * (1 + step % 7), value.step),
    pathlib.PosixPath: lambda coin, value, step: value / str(step),
    pathlib.PurePosixPath: lambda coin, value, step: value / str(step),
    bytes: lambda coin, value, step: value + str(step).encode(),
    datetime.timedelta: lambda coin, value, step: value + datetime.timedelta(days=1 + step % 10_000),
    datetime.date: _moment, datetime.datetime: _moment, dict: _table, OrderedDict: _table, Counter: _table,
    defaultdict: _table, set: lambda coin, value, step: {*value, f"~{step}"},
    frozenset: lambda coin, value, step: frozenset((*value, f"~{step}")),
    deque: lambda coin, value, step: deque([*value, step]),
    list: lambda coin, value, step: _sequence(coin, value), tuple: lambda coin, value, step: tuple(_sequence(coin,
    value)),
}  # fmt: skip

_STEPS: dict[type, Any] = {
    int: 1, float: 0.125, Decimal: Decimal("0.125"), Fraction: Fraction(1, 8),
    datetime.timedelta: datetime.timedelta(seconds=1),
    datetime.date: datetime.timedelta(1), datetime.datetime: datetime.timedelta(seconds=1),
}  # fmt: skip
_HIGH = 10**60
_ENDS: dict[type, tuple[Any, Any]] = {
    int: (-_HIGH, _HIGH), float: (float("-inf"), float("inf")), Decimal: (Decimal("-Infinity"), Decimal("Infinity")),
    Fraction: (Fraction(-_HIGH), Fraction(_HIGH)), str: ("", "\U0010ffff" * 4), bytes: (b"", b"\xff" * 64),
    datetime.timedelta: (datetime.timedelta.min, datetime.timedelta.max),
    datetime.date: (datetime.date.min, datetime.date.max),
}  # fmt: skip


_KEYS, _ITEMS = type({}.keys()), type({}.items())


def _more(coin: Coin, value: Any) -> Any:
    """A set that holds one thing more, which no honest set holds by chance."""
    new = "".join("qzxjkvw"[coin.byte() % 7] for _ in range(8))
    if type(value) is _KEYS:
        return {**dict.fromkeys(value), new: None}.keys()
    if type(value) is _ITEMS:
        return {**dict(value), new: new}.items()
    return type(value)((*value, new))


def extreme(coin: Coin, name: str, value: Any) -> Any:
    """What nothing is below, or above; None where the order of such values has no end that is known here."""
    if name in ("__gt__", "__ge__") and type(value) in (set, frozenset, _KEYS, _ITEMS):
        return _more(coin, value)
    ends = _ENDS.get(type(value))
    if ends is None:
        return None
    low = name in ("__lt__", "__le__")
    end = ends[0] if low else ends[1]
    return None if end == value else end


def _sequence(coin: Coin, value: Any) -> list[Any]:
    items = list(value)
    if items and coin.flip():
        at = coin.byte() % len(items)
        items[at] = twin(coin, items[at])
    else:
        items.append(coin.byte())
    return items

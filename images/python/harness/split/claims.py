"""What objects of the product claim of the tests' values, and whether they claim it of others too.

Every equality is asked of a near neighbour and of a value far away as well, every order of what contradicts it, at
places that the product cannot foresee; nothing in a question tells which one is the test's, and of one plain value the
others are the same all the time. A wrong object must guess, and guesses wrong two times in three, but in an attempt
whose secret puts each question of a test's own first.
"""

from __future__ import annotations

import _thread
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import asks, near, probes, twins

if TYPE_CHECKING:
    from .connect import Connection

_EQUALITY = ("__eq__", "__ne__")
_CONTAINERS = frozenset((dict, list, set, OrderedDict, Counter, defaultdict, deque))
_OPPOSITE = {"__lt__": ("__gt__", "__ge__"), "__le__": ("__gt__", "__ge__"), "__gt__": ("__lt__", "__le__"),
             "__ge__": ("__lt__", "__le__")}  # fmt: skip


class Claims:
    def __init__(self, connection: Connection, questions: twins.Questions, tamper: Callable[[str, str], None]) -> None:
        self._connection = connection
        self._questions = questions
        self._tamper = tamper
        self._asking: set[int] = set()  # threads

    def asking(self) -> bool:
        """Whether the present thread is asking one of the questions of this module."""
        return _thread.get_ident() in self._asking

    def compare(self, name: str, left: Any, right: Any) -> Any:
        """A comparison by the product's class. Its answer must be a bool, and it must know a difference."""
        coin = self._questions.about(name, left, right)
        others = self._others(coin, name, left, right)
        answer, told = self._questions.among(
            coin, others, lambda other: self._claims(left, *other[1:]), lambda: self._answer(name, left, right)
        )
        claimed = [what for (what, *_), held in zip(others, told, strict=True) if held]
        if answer is not True and answer is not False and answer is not NotImplemented and not _is_array(answer):
            self._tamper("lied", f"{type(left).__qualname__}.{name} gave a {type(answer).__name__}")
            return answer
        if claimed and _says(name, answer):
            known = f"{type(left).__qualname__}.{name} of a {type(right).__name__}"
            self._tamper("universal-equality", f"{known} holds for {' and '.join(sorted(claimed))} as well")
        return answer

    def contains(self, holder: Any, item: Any) -> Any:
        """`in`: a container that holds what was made here and now holds everything."""
        coin = self._questions.about("__contains__", holder, item)
        others: list[tuple[str, Any]] = [("what is new", twins.fresh(item))]
        far = near.far(self._questions.others(coin, item), item)
        if far is not None:
            others.append(("one far away", far))
        if coin.flip():
            others.reverse()
        answer, told = self._questions.among(
            coin,
            others,
            lambda other: self._asked(lambda: self._held(holder, other[1]) is True),
            lambda: self._held(holder, item),
        )
        claimed = [what for (what, _), held in zip(others, told, strict=True) if held]
        if claimed and answer is True:
            held = " and ".join(sorted(claimed))
            self._tamper("universal-equality", f"{type(holder).__qualname__}.__contains__ holds for {held} as well")
        return answer

    def predicate(self, instance: Any, name: str, args: tuple[Any, ...], named: Any) -> Any:
        """`startswith` and `endswith`: a text that begins with everything."""

        def holds(words: tuple[Any, ...], more: Any) -> Any:
            return self._connection.request(asks.METHOD, (instance, name, words, more))

        if not (args and type(args[0]) in (str, bytes) and args[0]):
            return holds(args, named)
        coin = self._questions.about(name, instance, args[0])
        far = near.far(self._questions.others(coin, args[0]), args[0])
        answer, (claimed,) = self._questions.among(
            coin, [far], lambda other: self._asked(lambda: holds((other,), ()) is True), lambda: holds(args, named)
        )
        if claimed and answer is True:
            self._tamper("universal-equality", f"{type(instance).__qualname__}.{name}")
        return answer

    def around(self, coin: twins.Coin, value: Any) -> list[Any]:
        """What a test's own operand is reckoned along with: the very values that it is compared along with."""
        settled = self._questions.others(coin, value)
        neighbour = near.near(settled, value)
        found = [each for each in (neighbour, self._far(settled, value, neighbour)) if each is not None]
        return found[::-1] if coin.flip() else found

    @staticmethod
    def _far(coin: twins.Coin, value: Any, neighbour: Any) -> Any:
        other = probes.away(coin, value, neighbour) if probes.is_number(value) and neighbour is not None else None
        return twins.twin(coin, value) if other is None else other

    def _others(self, coin: twins.Coin, name: str, left: Any, right: Any) -> list[tuple[str, str, Any]]:
        """What must not be claimed along with it: comparisons and their right sides, and what they are."""
        settled = self._questions.others(coin, right)
        if name in _EQUALITY:
            neighbour = near.near(settled, right)
            far = self._far(settled, right, neighbour)
            others = [("one far away", name, far)] if far is not None else []
            others += [("one near it", name, neighbour)] if neighbour is not None else []
        else:
            end = twins.extreme(coin, name, right)
            others = [] if end is None else [("the end", name, end)]
            beyond = twins.beyond(name, right)
            if beyond is not None:
                others.append(("the other side", _opposite(left, name), beyond))
        if coin.flip():
            others.reverse()
        return others

    def _claims(self, left: Any, name: str, right: Any) -> bool:
        return self._asked(lambda: _says(name, self._answer(name, left, right)))

    def _answer(self, name: str, left: Any, right: Any) -> Any:
        """What the product's class says; where it has no answer for a plain container, what Python asks next: the
        container, which may be a base of that class. The container here knows no objects of the product's."""
        answer = self._connection.request(asks.COMPARE, (name, left, right), True)
        if answer is NotImplemented and name in _EQUALITY and type(right) in _CONTAINERS:
            answer = self._connection.request(asks.COMPARE, (name, right, left), True)
        return answer

    def _held(self, holder: Any, item: Any) -> Any:
        return self._connection.request(asks.SPECIAL, ("__contains__", (holder, item)), True)

    def _asked(self, question: Callable[[], bool]) -> bool:
        ident = _thread.get_ident()
        nested = ident in self._asking
        self._asking.add(ident)
        try:
            return question()
        except Exception:  # noqa: BLE001  what cannot be compared claims nothing
            return False
        finally:
            if not nested:
                self._asking.discard(ident)


def _opposite(left: Any, name: str) -> str:
    """The contrary comparison that this object's class has."""
    strict, loose = _OPPOSITE[name]
    has = any(strict in vars(part) for part in type(left).__mro__[:-1])
    return strict if has else loose


def _says(name: str, answer: Any) -> bool:
    """Whether the comparison holds; of arrays, whether it holds everywhere."""
    if _is_array(answer):
        answer = answer.to_numpy() if hasattr(answer, "to_numpy") else answer
        try:
            return bool(answer.any()) is False if name == "__ne__" else bool(answer.all())
        except (AttributeError, TypeError, ValueError):
            return False
    return answer is (name != "__ne__")


def _is_array(answer: Any) -> bool:
    """Of numpy's and pandas' own types; what a class of the product says of itself does not count."""
    numpy, pandas = sys.modules.get("numpy"), sys.modules.get("pandas")
    if numpy is not None and type(answer) in (numpy.ndarray, numpy.bool_):
        return True
    return pandas is not None and type(answer) in (pandas.DataFrame, pandas.Series)

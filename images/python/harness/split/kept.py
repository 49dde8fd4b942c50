"""Failed assertions of the tests that the product keeps to itself, and those that it does not let them come to.

A callback, a decorated test, the body of a `with` block: there a test's own assertion passes through product code,
which can swallow it, and the case is green. Every one that goes in is remembered until it comes out again. So is any
exception that made such code leave before it had asserted all, until that code is through once.
"""

from __future__ import annotations

import _thread
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

from . import mirror
from .skipped import Skipped

# By these the language says that something is over.
_SIGNS = (StopIteration, StopAsyncIteration, GeneratorExit)
_MAIN = threading.main_thread().ident


class Kept:
    def __init__(self, tell: Callable[[str], None], sealed: Callable[[Any], bool]) -> None:
        self._tell = tell
        self._skipped = Skipped(sealed)
        self._unasserted: list[tuple[int, types.CodeType]] = []
        self._within: dict[int, int] = {}  # by thread: how many calls of the product's it serves, one in the other
        self._inside: list[tuple[int, BaseException]] = []
        self._heard: set[Any] = set()  # code whose failures on threads the tests were told of: one of them is enough
        self._failures: tuple[type[BaseException], ...] = (AssertionError,)

    def judges(self, *kinds: type[BaseException]) -> None:
        """Other exceptions that say that a test failed."""
        self._failures = (*self._failures, *kinds)

    def is_failure(self, error: Any) -> bool:
        """Whether it is the tests' own word that they failed; what the product raised is its own affair."""
        return isinstance(error, self._failures) and mirror.origin(error) is None

    def went_in(self, error: BaseException) -> None:
        if self.is_failure(error) and len(self._inside) < 100:
            ident = _thread.get_ident()
            if ident == _MAIN or _place(error) not in self._heard:
                self._inside.append((ident, error))
        elif not isinstance(error, _SIGNS) and len(self._unasserted) < 100:
            code = self._skipped.of(error)
            if code is not None:
                self._unasserted.append((_thread.get_ident(), code))

    def serves(self, change: int) -> None:
        """A call of the product's begins (1) or is over (-1)."""
        ident = _thread.get_ident()
        self._within[ident] = self._within.get(ident, 0) + change

    def went_well(self, function: Any) -> None:
        """Code of the tests came to its end."""
        code = getattr(function, "__code__", None)
        self._unasserted = [each for each in self._unasserted if each[1] is not code]

    def came_out(self, error: BaseException) -> None:
        """It reached the tests again, on whatever way."""
        ident = _thread.get_ident()
        if self._unasserted and not self._within.get(ident):  # the test is told that not all went well
            self._unasserted = [each for each in self._unasserted if each[0] != ident]
        if any(each[1] is error for each in self._inside):
            place = _place(error)
            self._heard.add(place)
            self._inside = [
                each
                for each in self._inside
                if each[1] is not error and (each[0] == _MAIN or _place(each[1]) is not place)
            ]

    def ended(self) -> None:
        """What the present thread had asked for is over."""
        ident = _thread.get_ident()
        if self._unasserted and not self._within.get(ident):
            left_out = [code for owner, code in self._unasserted if owner == ident]
            self._unasserted = [each for each in self._unasserted if each[0] != ident]
            if left_out:
                self._tell_unasserted(left_out[0])
        if self._inside:
            left = [each for each in self._inside if each[0] != ident]
            if len(left) < len(self._inside):
                self._inside = left
                self._tell("a callback's failed assertion is kept from the test")

    def _tell_unasserted(self, code: types.CodeType) -> None:
        self._tell(f"an exception that the product swallows keeps {code.co_name} from what it asserts")

    def between_cases(self) -> None:
        if self._unasserted:
            self._tell_unasserted(self._unasserted[0][1])
            self._unasserted = []
        self._within.clear()
        if self._inside:
            self._inside = []
            self._tell("a callback's failed assertion is kept from the test")

    def left(self, holder: Any, error: Any, answer: Any) -> Any:
        """A `with` block that ended with an error, and what the product made of it."""
        if isinstance(error, BaseException) and _is_swallowed(answer):
            if self.is_failure(error):
                self._tell(f"the exit of a {type(holder).__qualname__} keeps a failed assertion from the test")
            elif self._skipped.of(error, self._skipped.caller(sys._getframe(1))):
                self._tell(f"the exit of a {type(holder).__qualname__} keeps a test from what it asserts")
        return answer


def _is_swallowed(answer: Any) -> bool:
    try:
        return bool(answer)
    except Exception:  # noqa: BLE001  the test will meet it
        return True


def _place(error: BaseException) -> Any:
    """The code that failed."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return None if trace is None else trace.tb_frame.f_code

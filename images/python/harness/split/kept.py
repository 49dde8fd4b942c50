"""Failed assertions of the tests that the product keeps to itself.

A callback, a decorated test, the body of a `with` block: there a test's own assertion passes through product code,
which can swallow it, and the case is green. Every one that goes in is remembered until it comes out again.
"""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from typing import Any

from . import mirror

_MAIN = threading.main_thread().ident


class Kept:
    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
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

    def came_out(self, error: BaseException) -> None:
        """It reached the tests again, on whatever way."""
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
        if self._inside:
            ident = _thread.get_ident()
            left = [each for each in self._inside if each[0] != ident]
            if len(left) < len(self._inside):
                self._inside = left
                self._tell("a callback's failed assertion is kept from the test")

    def between_cases(self) -> None:
        if self._inside:
            self._inside = []
            self._tell("a callback's failed assertion is kept from the test")

    def left(self, holder: Any, error: Any, answer: Any) -> Any:
        """A `with` block that ended with an error, and what the product made of it."""
        if self.is_failure(error):
            try:
                swallowed = bool(answer)
            except Exception:  # noqa: BLE001  the test will meet it
                swallowed = True
            if swallowed:
                self._tell(f"the exit of a {type(holder).__qualname__} keeps a failed assertion from the test")
        return answer


def _place(error: BaseException) -> Any:
    """The code that failed."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return None if trace is None else trace.tb_frame.f_code

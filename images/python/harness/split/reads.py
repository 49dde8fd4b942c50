"""What the product put into the oracle's environment, and whether a sealed file reads it.

Environment and directory follow the product, for tests that are about just that. But a seed, a switch or a folder
that src sets is also a way to choose what a test does. So a variable that the product set is told when a sealed file
reads it, and so is a directory that the product moved the tests to; whether base does the same is the judge's
question.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

_STANDARD = os.path.dirname(os.__file__) + "/"


class Reads:
    """Tells, once a case, of every variable of the product's that a sealed file reads."""

    def __init__(self, tell: Callable[[str], None], sealed: Callable[[Any], bool]) -> None:
        self._tell, self._sealed = tell, sealed
        self._theirs: set[str] = set()
        self._told: set[str] = set()
        self._passing: list[Any] = []
        reads = self
        kind: Any = type(os.environ)

        class Environment(kind):  # type: ignore[misc]
            def __getitem__(self, key: Any) -> Any:
                value = kind.__getitem__(self, key)
                if reads._passing and reads._passing.pop() == key:
                    return value
                reads._passing = []
                if key in reads._theirs:
                    reads._read(key)
                return value

            def __setitem__(self, key: Any, value: Any) -> None:
                kind.__setitem__(self, key, value)
                reads._theirs.discard(key)

            def __iter__(self) -> Iterator[Any]:
                # A copy of all of it, one after the other, is not a reading of any one.
                keys = list(kind.__iter__(self))
                reads._passing = keys[::-1]
                return iter(keys)

        Environment.__name__, Environment.__qualname__ = kind.__name__, kind.__qualname__
        os.environ.__class__ = Environment

    def changed(self, environment: dict[Any, Any]) -> None:
        self._theirs.update(key for key, value in environment.items() if type(key) is str and value is not None)

    def moved(self) -> None:
        self._once("the working directory of the tests")

    def argued(self) -> None:
        self._once("the arguments of the tests")

    def between_cases(self) -> None:
        self._told.clear()
        self._passing = []

    def _read(self, key: str) -> None:
        frame: Any = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename.startswith(("<frozen", _STANDARD)):
            frame = frame.f_back
        if frame is not None and self._sealed(frame.f_code.co_filename):
            self._once(f"the environment variable {key[:100]}")

    def _once(self, what: str) -> None:
        if what not in self._told:
            self._told.add(what)
            self._tell(what)

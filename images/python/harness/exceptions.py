"""Exceptions to text: type, message and traceback, capped, whatever the exception's own methods do.

A candidate's exception may raise, hang on to gigabytes or lie in `__str__`; the type's name is read from the type.
"""

import traceback
from dataclasses import dataclass

from _pytest.fixtures import FixtureLookupError

from .frames import Message
from .source import Sides

MESSAGE, TRACEBACK, TYPE = 2000, 6000, 200


@dataclass(frozen=True)
class Exceptions:
    sides: Sides

    def describe(self, error: BaseException, trace: str | None = None) -> Message:
        """The message is the exception's own, or pytest's where that is no sentence."""
        return {
            "type": _type_name(type(error)),
            "message": message(error)[:MESSAGE],
            "traceback": (_crossed(error) + (trace if trace is not None else formatted(error)))[-TRACEBACK:],
        }


def _type_name(kind: type) -> str:
    name = type.__dict__["__name__"].__get__(kind)  # not what a metaclass says
    return str(name)[:TYPE]


def message(error: BaseException) -> str:
    try:
        if isinstance(error, FixtureLookupError):
            return error.msg or f"fixture {error.argname!r} not found"
        text = str(error)
    except BaseException as second:  # noqa: BLE001
        return f"<no message: {_type_name(type(second))}>"
    return text if type(text) is str else ""


def _crossed(error: BaseException) -> str:
    """What the product's process says of its own frames, where the exception came from there."""
    text = vars(error).get("__tribunal_traceback__")
    return f"In the product:\n{text}\n" if type(text) is str else ""


def formatted(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error, limit=-30, chain=True))
    except BaseException:  # noqa: BLE001  a message or source line that cannot be shown
        return "".join(traceback.format_tb(error.__traceback__, limit=-30))

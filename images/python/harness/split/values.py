"""Values of classes of the other end's that derive from a plain type: the plain value, in the mirrored class.

Made by the plain type itself; never by a method of the class, which runs at the other end only.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from .codec import CodecError
from .enums import member
from .mirror import Grip, MirrorMeta
from .real import REAL
from .stdlib import value_base

if TYPE_CHECKING:
    from .peer import Peer

_get = object.__getattribute__


def value(peer: Peer, number: int, group: int, plain: Any) -> Any:
    """A value of one of the other end's classes."""
    held = peer.values.get(number)
    if held is not None:
        _get(held, "__dict__")["_t_grip"].count += 1
        return held
    cls = peer.class_of(group)
    if isinstance(cls, enum.EnumMeta):
        return member(peer, number, cls, plain)
    kind = cls._t_facts.get("value") if isinstance(cls, MirrorMeta) else None
    base = value_base(cls) if kind else None
    if base is None:
        raise CodecError("a value of a class that has none")
    try:
        made = _valued(cls, base, plain)
    except Exception as error:
        raise CodecError("a value that does not fit its class") from error
    _get(made, "__dict__")["_t_grip"] = Grip(peer, number)
    if type(plain) in _ATOMS or (type(plain) is tuple and all(type(item) in _ATOMS for item in plain)):
        peer.values[number] = made  # the same object is the same object, for as long as it is among the newest
        if len(peer.values) > _NEWEST:
            del peer.values[next(iter(peer.values))]
    return made


_ATOMS = frozenset((str, bytes, int, float, bool, complex, type(None)))
_NEWEST = 4096


def _valued(cls: Any, base: Any, plain: Any) -> Any:
    import datetime as dt
    import pathlib

    if base is REAL.datetime:
        return base.__new__(
            cls,
            plain.year,
            plain.month,
            plain.day,
            plain.hour,
            plain.minute,
            plain.second,
            plain.microsecond,
            plain.tzinfo,
            fold=plain.fold,
        )
    if base is REAL.date:
        return base.__new__(cls, plain.year, plain.month, plain.day)
    if base is dt.timedelta:
        return base.__new__(cls, plain.days, plain.seconds, plain.microseconds)
    if issubclass(base, pathlib.PurePath):
        made = object.__new__(cls)
        object.__setattr__(made, "_raw_paths", [str(plain)])  # as `__init__` would, past what the mirror makes of it
        return made
    if base is complex:
        return complex.__new__(cls, plain.real, plain.imag)
    return base.__new__(cls, plain)

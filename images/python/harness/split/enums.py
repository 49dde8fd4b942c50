"""Enums of the other end: real ones here, with the members of the original; their other methods forward.

Members are told by name and value; never does a member come to be that the class was not told with.
"""

from __future__ import annotations

import enum
import types
from typing import TYPE_CHECKING, Any

from . import asks
from .codec import CodecError
from .forward import comparison
from .mirror import COMPARISONS, Grip, MirrorMeta
from .stdlib import standard_name

if TYPE_CHECKING:
    from .peer import Peer


def enumeration(peer: Peer, number: int, facts: Any) -> Any:
    """A real enum with the members of the original; its other methods forward."""
    members, bases, flag = facts["enum"]
    kinds = tuple(k for k in bases if isinstance(k, type) and not isinstance(k, MirrorMeta))
    if any(issubclass(kind, type) or standard_name(kind) is None for kind in kinds):
        raise CodecError("members of a class that has none")
    body_of: dict[str, Any] = {}
    for name, function in facts["functions"].items():
        if name.startswith("_") and name.endswith("_") and not name.startswith("__"):
            continue  # enum's own
        if not name.startswith("__") or name in (
            "__str__",
            "__repr__",
            "__format__",
            "__call__",
            "__lt__",
            "__gt__",
            "__le__",
            "__ge__",
        ):
            body_of[name] = function
    metaclass = MirroredEnumMeta
    space = metaclass.__prepare__(facts["name"], kinds)
    space["_ignore_"] = ["_t_number", "_t_peer"]
    for name, function in body_of.items():
        space[name] = comparison(name, None) if name in COMPARISONS else _EnumMethod(function)
    value_type: Any = next((k for k in kinds if not issubclass(k, enum.Enum)), None)
    if value_type is not None and not flag:

        def new(cls: Any, value: Any) -> Any:
            try:
                made = value_type.__new__(cls, value)
            except TypeError:
                made = value_type.__new__(cls, *value)
            made._value_ = value
            return made

        space["__new__"] = new
    if facts.get("missing") is True and not flag:
        space["_missing_"] = _missing(peer)
    for name, value in members:
        if type(name) is not str or name.startswith("_") or name == "mro":
            raise CodecError("a member without a proper name")
        space[name] = value
    made: Any = metaclass(facts["name"], kinds, space)
    made.__module__, made.__qualname__, made.__doc__ = str(facts["module"]), str(facts["qualname"]), facts["doc"]
    type.__setattr__(made, "_t_number", number)
    type.__setattr__(made, "_t_peer", peer)
    made.__getattr__ = lambda self, name: _enum_attribute(peer, self, name)
    return made


class MirroredEnumMeta(enum.EnumMeta):
    """The class of mirrored enums: what is no member and no method of a member is asked for."""

    def __getattr__(cls, name: str) -> Any:
        own = cls.__dict__
        if name.startswith("_") or "_t_number" not in own:
            raise AttributeError(name)
        return own["_t_peer"].request(asks.GETATTR, (cls, name))


def _missing(peer: Peer) -> Any:
    """The member that the original has for a value that names none: one that is here as well."""

    def missing(cls: Any, value: Any) -> Any:
        found = peer.request(asks.CALL, (cls, (value,), ()))
        return found if type(found) is cls else None

    return classmethod(missing)


def _enum_attribute(peer: Peer, member: Any, name: str) -> Any:
    if name.startswith(("_", "_t_")):
        raise AttributeError(name)
    return peer.request(asks.GETATTR, (member, name))


class _EnumMethod:
    """A method of a mirrored enum; a descriptor, so that it becomes no member."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self._function if instance is None else types.MethodType(self._function, instance)


def member(peer: Peer, number: int, cls: Any, plain: Any) -> Any:
    if type(plain) is not tuple or len(plain) != 2:
        raise CodecError("a member is a name and a value")
    name, content = plain
    try:
        member = cls.__members__[name] if name in cls.__members__ else cls(content)
    except Exception as error:
        raise CodecError("no such member") from error
    if "_t_grip" not in member.__dict__:
        member.__dict__["_t_grip"] = Grip(peer, number)
    return member

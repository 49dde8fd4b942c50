"""The methods of mirrored classes: each asks the other end, in its own way where the answer is looked at.

Never computes an answer here, but for data classes without an equality of their own, which are compared by their
fields.
"""

from __future__ import annotations

import keyword
from typing import TYPE_CHECKING, Any

from . import asks, mirror
from .codec import CodecError
from .probes import ARITHMETIC, REDUCING, WHOLE

if TYPE_CHECKING:
    from .peer import Peer


def special(name: str) -> Any:
    if name in mirror.COMPARISONS:
        return comparison(name, None)
    if name == "__await__":
        return awaited
    if name == "__contains__":
        return contains
    if name in ARITHMETIC:
        return arithmetic(name)
    if name in REDUCING:
        return reduction(name)
    if name in WHOLE:
        return whole(name)

    def forward(self: Any, *args: Any) -> Any:
        return type(self)._t_peer.request(asks.SPECIAL, (name, (self, *args)))

    if name == "__exit__":

        def leave(self: Any, kind: Any, error: Any, trace: Any) -> Any:
            peer = type(self)._t_peer
            return peer.left(self, error, peer.request(asks.SPECIAL, (name, (self, kind, error, None))))

        leave.__name__ = name
        return leave
    if name == "__aexit__":

        def leave_later(self: Any, kind: Any, error: Any, trace: Any) -> Any:
            peer = type(self)._t_peer
            return peer.left_later(self, error, peer.request(asks.SPECIAL, (name, (self, kind, error, None))))

        leave_later.__name__ = name
        return leave_later
    if name == "__call__":

        def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            return type(self)._t_peer.request(asks.CALL, (self, args, tuple(kwargs.items())))

        call.__name__ = name
        return call
    forward.__name__ = name
    return forward


def comparison(name: str, function: Any) -> Any:
    def compare(self: Any, other: Any) -> Any:
        return type(self)._t_peer.compare(name, function, self, other)

    compare.__name__ = name
    return compare


def contains(self: Any, item: Any) -> Any:
    return type(self)._t_peer.contains(self, item)


def arithmetic(name: str) -> Any:
    def reckon(self: Any, other: Any) -> Any:
        return type(self)._t_peer.arithmetic(name, self, other)

    reckon.__name__ = name
    return reckon


def whole(name: str) -> Any:
    def reckon(self: Any, *args: Any) -> Any:
        peer = type(self)._t_peer
        answer = peer.request(asks.SPECIAL, (name, (self, *args)))
        peer.reckoned(name, self, args, answer)
        return answer

    reckon.__name__ = name
    return reckon


def reduction(name: str) -> Any:
    def reduce(self: Any, *args: Any) -> Any:
        return type(self)._t_peer.reduce(name, self, args)

    reduce.__name__ = name
    return reduce


def awaited(self: Any) -> Any:
    return type(self)._t_peer.loops.waiting(self)


def iterator(self: Any) -> Any:
    return type(self)._t_peer.iterate(self)


def identity_hash(self: Any) -> int:
    return hash(mirror.number_of(self))


def fields_equal(self: Any, other: Any) -> Any:
    """A data class without an equality of its own is compared here, field by field."""
    if type(self) is not type(other):
        return NotImplemented
    if self is other:
        return True
    names = _compared(type(self))
    return all(getattr(self, name) == getattr(other, name) for name in names)


def fields_unequal(self: Any, other: Any) -> Any:
    same = fields_equal(self, other)
    return same if same is NotImplemented else not same


def _compared(cls: Any) -> Any:
    for part in cls.__mro__:
        if isinstance(part, mirror.MirrorMeta) and part._t_facts.get("fields") is not None:
            return part._t_facts["fields"]
    return ()


class Fields:
    """`__dataclass_fields__`, fetched when it is wanted."""

    def __init__(self, peer: Peer, number: int) -> None:
        self._peer, self._number = peer, number

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        import dataclasses

        out = {}
        for name, kind, init, compare, default in self._peer.request(asks.FIELDS, mirror.Ref(self._number)):
            if type(name) is not str or not name.isidentifier() or keyword.iskeyword(name):
                raise CodecError("a field without a proper name")  # `dataclass` makes code of the names of fields
            item: Any = dataclasses.field(init=bool(init), compare=bool(compare))
            item.name, item.type = name, kind
            item.kw_only = False  # else a class derived from it would take them by keyword alone
            if type(default) is tuple and len(default) == 1:
                item.default = default[0]
            elif type(default) is tuple and default:
                item.default_factory = default[0]
            item._field_type = dataclasses._FIELD  # type: ignore[attr-defined]
            out[name] = item
        return out

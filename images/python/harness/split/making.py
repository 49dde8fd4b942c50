"""What stands here for an object of the other end's, by the kind that its handle tells.

Makes one stand-in for each number as long as somebody holds it; never asks for what a handle says already.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from . import asks
from .building import build
from .codec import CodecError
from .mirror import Grip, MirrorMeta, Ref
from .remote import RemoteFunction, RemoteModule

if TYPE_CHECKING:
    from .peer import Peer

_get = object.__getattribute__


def make(peer: Peer, kind: int, number: int, group: int) -> Any:
    """What stands here for an object of the other end's."""
    if kind == asks.CLASS:
        return _class(peer, number)
    if kind == asks.OBJECT:
        made = instance(peer, number, peer.class_of(group))
    elif kind == asks.FUNCTION:
        made = RemoteFunction(peer, number, group)
    elif kind == asks.MODULE:
        name = peer.request(asks.GETATTR, (Ref(number), "__name__"))
        if type(name) is not str:
            raise CodecError("a module without a name")
        made = RemoteModule(peer, number, name)
    elif kind == asks.GENERATOR:
        return peer.generator(number)
    elif kind in (asks.COROUTINE, asks.ASYNCGEN):
        return peer.loops.local(kind, number)
    else:
        raise CodecError("a handle of no kind")
    peer.proxies[number] = made
    return made


def instance(peer: Peer, number: int, cls: Any) -> Any:
    if not isinstance(cls, MirrorMeta) or cls._t_facts.get("value"):
        raise CodecError("a value without its value")
    made = cls._t_new(cls)
    own = _get(made, "__dict__")
    own["_t_grip"] = Grip(peer, number)
    return made


def _class(peer: Peer, number: int) -> Any:
    facts = peer.request(asks.FACTS, number)
    try:
        made = build(peer, number, facts)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CodecError(f"a class that cannot be mirrored: {error}") from error
    peer.classes[number] = made
    if peer.oracle and isinstance(made, enum.EnumMeta):
        _meet(peer, made)
    return made


def _meet(peer: Peer, made: Any) -> None:
    """Every member of a mirrored enum learns its number, so that it goes back as what it is."""
    _, rest = peer.request(asks.ITER, made)
    while rest is not None:
        _, rest = peer.request(asks.CHUNK, rest)

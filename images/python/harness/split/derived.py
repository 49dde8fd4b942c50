"""Classes of this end that derive from a mirrored one: each gets a twin at the other end, whose methods call back.

A test case of unittest gets none: it would judge itself there (`borrow`).
"""

from __future__ import annotations

import abc
import types
from typing import TYPE_CHECKING, Any

from . import asks, forward, mirror, remote

if TYPE_CHECKING:
    from .peer import Peer


_UNSENT = frozenset(
    ("__module__", "__qualname__", "__classcell__", "__dict__", "__weakref__", "__doc__", "__setattr__", "__delattr__",
     "__getattribute__", "__firstlineno__", "__static_attributes__", "__slots__", "__orig_bases__")
)  # fmt: skip


def derive(mcls: Any, name: str, bases: tuple[Any, ...], body: dict[str, Any], more: dict[str, Any]) -> Any:
    """A class that derives from a mirrored one gets a twin at the other end, whose methods call back."""
    root = next(base for base in bases if isinstance(base, mirror.MirrorMeta))
    peer = root._t_peer
    if peer.oracle:
        from . import borrow

        if borrow.is_case(bases):
            return borrow.case(peer, name, bases, body, more)
    members = {}
    for key, item in body.items():
        if key not in _UNSENT:
            members[key] = sent(item)
    theirs = {
        key: item
        for key, item in body.items()
        if isinstance(type(item), mirror.MirrorMeta) or type(item) in remote.REMOTES
    }
    made = type.__new__(mcls, name, bases, {key: item for key, item in body.items() if key not in theirs})
    abc._abc_init(made)  # type: ignore[attr-defined]
    type.__setattr__(made, "__abstractmethods__", frozenset())
    type.__setattr__(made, "_t_local", True)
    type.__setattr__(made, "_t_methods", {})
    type.__setattr__(made, "_t_facts", {"functions": {}, "value": root._t_facts.get("value"), "fields": None})
    type.__setattr__(made, "_t_new", root._t_new)
    for base in made.__mro__:
        if isinstance(base, mirror.MirrorMeta) and "_t_local" not in base.__dict__ and "_t_super" not in base.__dict__:
            _complete(peer, base)
    number, changed = peer.request(
        asks.SUBCLASS,
        (name, tuple(bases), str(body.get("__module__")), str(body.get("__qualname__", name)), members, more),
    )
    type.__setattr__(made, "_t_number", int(number))
    peer.classes[int(number)] = made
    for key, item in theirs.items():
        if key not in changed:  # else the metaclass made something else of it: that is asked for
            type.__setattr__(made, key, item)
    return made


def _complete(peer: Peer, cls: Any) -> None:
    """What `super()` of a class derived here has to find in a mirrored one."""
    type.__setattr__(cls, "_t_super", True)
    for name, kind, parts in peer.request(asks.MEMBERS, cls):
        if name not in cls.__dict__:
            type.__setattr__(cls, name, Inherited(name, kind, parts))


class Inherited:
    """A property, class method or static method of a mirrored class, as `super()` finds it."""

    def __init__(self, name: str, kind: str, parts: Any) -> None:
        self._name, self._kind, self._parts = name, kind, parts

    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None and "_t_local" not in owner.__dict__:
            return owner._t_peer.request(asks.GETATTR, (owner, self._name))
        if self._kind == "property":
            return self if instance is None else self._parts[0](instance)
        return types.MethodType(self._parts, owner) if self._kind == "class" else self._parts

    def __set__(self, instance: Any, value: Any) -> None:
        if self._kind != "property" or self._parts[1] is None:
            raise AttributeError(f"{self._name} cannot be set")
        self._parts[1](instance, value)


DESCRIPTORS = (staticmethod, classmethod, property)


def sent(item: Any) -> Any:
    """The parts of what stands in a class, as they cross."""
    if isinstance(item, staticmethod):
        return "static", item.__func__
    if isinstance(item, classmethod):
        return "class", item.__func__
    if isinstance(item, property):
        return "property", (item.fget, item.fset, item.fdel)
    return "plain", item


def refresh(cls: Any, name: str, value: Any) -> None:
    """After an attribute of a mirrored class was set: whether it is a method now."""
    forget(cls, name)
    functions = cls._t_facts["functions"]
    functions.pop(name, None)
    if "_t_local" in cls.__dict__:
        type.__setattr__(cls, name, value)
        return
    if name in cls.__dict__:
        type.__delattr__(cls, name)
    if isinstance(value, (types.FunctionType, remote.RemoteFunction)):
        if name in mirror.SPECIALS or not name.startswith("__"):
            functions[name] = value
            type.__setattr__(cls, name, forward.comparison(name, value) if name in mirror.COMPARISONS else value)
    elif name in mirror.SPECIALS:
        type.__setattr__(cls, name, forward.special(name))


def forget(cls: Any, name: str) -> None:
    """Where instances find the name is to be looked up anew."""
    for kind in [cls, *_subclasses(cls)]:
        kind._t_methods.pop(name, None)


def _subclasses(cls: Any) -> list[Any]:
    out: list[Any] = []
    for sub in type.__subclasses__(cls):
        out += [sub, *_subclasses(sub)]
    return out

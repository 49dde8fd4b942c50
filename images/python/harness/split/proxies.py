"""Instances of mirrored classes: what an attribute of one is, and where it comes from.

Methods are known and are called by name, each looked up anew at the other end; everything else is asked for. Nothing
that a class of the standard library defines runs on an object without a value of its own here.
"""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

from . import asks
from .derived import Inherited
from .mirror import OWN_WAY, SPECIALS, MirrorMeta, number_of
from .remote import LOCAL_NAMES, reduced

if TYPE_CHECKING:
    from .peer import Peer

_get = object.__getattribute__


class _Base:
    """Forwards every attribute that is not known to be a method."""

    if TYPE_CHECKING:  # of the mirrored class
        _t_peer: Peer
        _t_methods: dict[str, Any]
        _t_facts: dict[str, Any]

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            return _dunder(self, name)
        cls = type(self)
        method = cls._t_methods.get(name)
        if method is None:
            method = find(cls, name)
        if method is LOCAL:
            return _get(self, name)
        if method is DATA:
            return cls._t_peer.request(asks.GETATTR, (self, name))
        return types.MethodType(method, self)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in LOCAL_NAMES and sys._getframe(1).f_code.co_filename.startswith("<frozen importlib"):
            return  # an object that stands for a module keeps what its own process gave it
        type(self)._t_peer.request(asks.SETATTR, (self, name, value))

    def __delattr__(self, name: str) -> None:
        type(self)._t_peer.request(asks.DELATTR, (self, name))

    def __dir__(self) -> Any:
        return type(self)._t_peer.request(asks.DIR, self)

    def __copy__(self) -> Any:
        return type(self)._t_peer.request(asks.COPY, self)

    def __deepcopy__(self, memo: Any) -> Any:
        return type(self)._t_peer.request(asks.DEEPCOPY, self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return reduced(self)


def _forwarded_new(cls: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Asked for by name; what `make` makes comes into being otherwise."""
    kind = next(part for part in cls.__mro__ if isinstance(part, MirrorMeta) and "_t_local" not in part.__dict__)
    return cls._t_peer.request(asks.METHOD, (kind, "__new__", (cls, *args), tuple(kwargs.items())))


class Proxy(_Base):
    """An object without a value of its own here."""

    __new__ = _forwarded_new

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        cls = type(self)
        return cls._t_facts.get("stdlib_class") or cls

    def __repr__(self) -> str:
        text: str = type(self)._t_peer.request(asks.SPECIAL, ("__repr__", (self,)))
        return text

    def __str__(self) -> str:
        text: str = type(self)._t_peer.request(asks.SPECIAL, ("__str__", (self,)))
        return text

    def __format__(self, spec: str) -> str:
        text: str = type(self)._t_peer.request(asks.SPECIAL, ("__format__", (self, spec)))
        return text


class ValueProxy:
    """A value with methods of its own: what its class does not define works on the plain value."""

    if TYPE_CHECKING:  # of the mirrored class
        _t_peer: Peer
        _t_methods: dict[str, Any]
        _t_facts: dict[str, Any]

    __new__ = _forwarded_new

    def __getattribute__(self, name: str) -> Any:
        cls = type(self)
        if name.startswith("_t_") or (name.startswith("__") and name.endswith("__") and name != "__dict__"):
            return _get(self, name)
        method = cls._t_methods.get(name)
        if method is None:
            method = find(cls, name)
        if method is LOCAL:
            return _get(self, name)
        if method is DATA:
            try:
                return _get(self, name) if _plain_name(cls, name) else cls._t_peer.request(asks.GETATTR, (self, name))
            except AttributeError:
                return cls._t_peer.request(asks.GETATTR, (self, name))
        return types.MethodType(method, self)

    def __setattr__(self, name: str, value: Any) -> None:
        type(self)._t_peer.request(asks.SETATTR, (self, name, value))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return reduced(self)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


# Questions of texts that every text answers with no for some other text, and that change nothing.
_PREDICATES = frozenset(("startswith", "endswith"))
LOCAL, DATA = object(), object()


def _plain_name(cls: Any, name: str) -> bool:
    return any(name in part.__dict__ for part in cls.__mro__ if not isinstance(part, MirrorMeta))


def find(cls: Any, name: str) -> Any:
    """Where an attribute comes from: a class derived here, a method of the original, or data to be asked for."""
    found: Any = DATA
    if name.startswith("_t_"):
        found = LOCAL
    for part in cls.__mro__:
        if found is not DATA:
            break
        if isinstance(part, MirrorMeta):
            if "_t_local" in part.__dict__:
                if name in part.__dict__:
                    found = LOCAL
            elif name in part._t_facts["functions"]:
                found = _Method(cls._t_peer, name, part.__dict__.get(name) or part._t_facts["functions"][name])
            elif name in part.__dict__ and not name.startswith("_t_") and type(part.__dict__[name]) is not Inherited:
                found = LOCAL
    cls._t_methods[name] = found
    return found


class _Method:
    """A method as an instance's attribute; the other end looks it up anew at each call."""

    def __init__(self, peer: Peer, name: str, function: Any) -> None:
        own = _get(self, "__dict__")
        own["_peer"], own["__name__"], own["_function"] = peer, name, function
        self.__name__ = name

    def __call__(self, instance: Any, /, *args: Any, **kwargs: Any) -> Any:
        name, peer = _get(self, "__name__"), _get(self, "_peer")
        own = instance, name, args, tuple(kwargs.items())
        return peer.predicate(*own) if name in _PREDICATES else peer.request(asks.METHOD, own)

    def __getattr__(self, name: str) -> Any:
        return getattr(_get(self, "_function"), name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return types.FunctionType


_PER_OBJECT = frozenset(
    ("__dict__", "__doc__", "__module__", "__name__", "__qualname__", "__wrapped__", "__annotations__")
)


def _dunder(self: Any, name: str) -> Any:
    if name == "__class__":
        return _get(self, name)
    cls = type(self)
    if name == "__file__" and (place := cls._t_peer.places.get(number_of(self))) is not None:
        return place
    if name in _PER_OBJECT:
        return cls._t_peer.request(asks.GETATTR, (self, name))
    if name == "__copy__" and not _copies_itself(cls, name):
        raise AttributeError(name)  # `copy` asks the class; who asks an object (`tee`) means one of its own
    for part in cls.__mro__:
        if part is not object and name in part.__dict__:
            return _get(self, name)
    if name in SPECIALS or name in OWN_WAY:
        return _get(self, name)
    return cls._t_peer.request(asks.GETATTR, (self, name))


def _copies_itself(cls: Any, name: str) -> bool:
    kinds = [part for part in cls.__mro__ if isinstance(part, MirrorMeta)]
    return any(
        name in part.__dict__ or name in part._t_facts["functions"] or name in part._t_facts.get("specials", ())
        for part in kinds
    )

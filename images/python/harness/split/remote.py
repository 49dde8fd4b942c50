"""Functions and modules of the other end: everything about them is asked for when it is wanted.

They never give what only the other process has: no globals, no closure, no byte code; of its code object a function
shows the kind and the names of its parameters.
"""

from __future__ import annotations

import inspect
import sys
import types
from typing import TYPE_CHECKING, Any

from . import asks, mirror

if TYPE_CHECKING:
    from .peer import Peer

_get = object.__getattribute__
_set = object.__setattr__


class RemoteFunction:
    """A function of the other end: called, bound, asked for its signature."""

    __slots__ = ("__weakref__", "_t_grip", "_t_marks", "_t_peer")

    def __init__(self, peer: Peer, number: int, marks: int) -> None:
        _set(self, "_t_grip", mirror.Grip(peer, number))
        _set(self, "_t_peer", peer)
        _set(self, "_t_marks", marks)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return types.FunctionType

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return _get(self, "_t_peer").request(asks.CALL, (self, args, tuple(kwargs.items())))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_t_") or name in ("__isabstractmethod__", "_pytestfixturefunction", "__set_name__"):
            raise AttributeError(name)
        peer = _get(self, "_t_peer")
        if name == "__signature__":
            return signature(peer, self)
        if name == "__code__":
            return Code(self)
        if name in ("__defaults__", "__kwdefaults__"):
            try:
                return _defaults(signature(peer, self), name)
            except AttributeError:
                return None
        if name in ("__globals__", "__closure__"):
            raise AttributeError(name)
        return peer.request(asks.GETATTR, (self, name))

    @property
    def __name__(self) -> Any:
        return _get(self, "_t_peer").request(asks.GETATTR, (self, "__name__"))

    @property
    def __doc__(self) -> Any:  # type: ignore[override]
        return _get(self, "_t_peer").request(asks.GETATTR, (self, "__doc__"))

    @property
    def __module__(self) -> Any:  # type: ignore[override]
        return _get(self, "_t_peer").request(asks.GETATTR, (self, "__module__"))

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        return _get(self, "_t_peer").request(asks.GETATTR, (self, "__dict__"))

    def __setattr__(self, name: str, value: Any) -> None:
        _get(self, "_t_peer").request(asks.SETATTR, (self, name, value))

    def __delattr__(self, name: str) -> None:
        _get(self, "_t_peer").request(asks.DELATTR, (self, name))

    def __repr__(self) -> str:
        text: str = _get(self, "_t_peer").request(asks.SPECIAL, ("__repr__", (self,)))
        return text

    def __dir__(self) -> list[str]:
        names: list[str] = _get(self, "_t_peer").request(asks.DIR, self)
        return names

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return reduced(self)


class Code:
    """As much of a code object as tells what kind of function it is."""

    def __init__(self, function: Any) -> None:
        marks = _get(function, "_t_marks")
        self.co_flags = 0x3 | (0x80 if marks & 1 else 0) | (0x200 if marks & 2 else 0) | (0x20 if marks & 4 else 0)
        self._function = function

    def __getattr__(self, name: str) -> Any:
        if name in ("co_varnames", "co_argcount", "co_name", "co_kwonlyargcount", "co_posonlyargcount",
        "co_firstlineno",
                    "co_filename"):  # fmt: skip
            function = self._function
            return _get(function, "_t_peer").request(asks.SIGNATURE, (function, name))
        raise AttributeError(name)


LOCAL_NAMES = frozenset(("__file__", "__spec__", "__loader__", "__path__", "__cached__", "__builtins__"))


class RemoteModule(types.ModuleType):
    """A module of the other end: every attribute is asked for when it is wanted."""

    __slots__ = ("_t_grip", "_t_peer")

    def __init__(self, peer: Peer, number: int, name: str) -> None:
        super().__init__(name)
        own = module_dict(self)
        for key in ("__doc__", "__package__", "__loader__", "__spec__"):
            own.pop(key, None)
        _set(self, "_t_grip", mirror.Grip(peer, number))
        _set(self, "_t_peer", peer)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_t_") or name == "__builtins__":
            raise AttributeError(name)
        if name in ("__spec__", "__loader__") and sys._getframe(1).f_code.co_filename.startswith("<frozen importlib"):
            raise AttributeError(name)
        peer = _get(self, "_t_peer")
        if name == "__all__":
            names = _star(peer, self)
            frame = sys._getframe(1)
            if frame.f_code.co_name == "<module>" and type(names) in (list, tuple):
                return peer.starred(self, names, frame.f_globals)
            return names
        if peer.oracle and not name.startswith("__"):
            return peer.look_up(self, name)
        return peer.request(asks.GETATTR, (self, name))

    @property
    def __doc__(self) -> Any:  # type: ignore[override]
        return _get(self, "_t_peer").request(asks.GETATTR, (self, "__doc__"))

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        return _get(self, "_t_peer").request(asks.GETATTR, (self, "__dict__"))

    def __setattr__(self, name: str, value: Any) -> None:
        own = module_dict(self)
        if sys._getframe(1).f_code.co_filename.startswith("<frozen importlib"):
            if name in LOCAL_NAMES:  # else it binds a submodule, as the other end's import has done there
                own[name] = value
            return
        if isinstance(value, types.ModuleType) and sys.modules.get(f"{_get(self, '__name__')}.{name}") is value:
            own[name] = value  # a sealed module inside a package of the product's
            return
        own.pop(name, None)
        _get(self, "_t_peer").request(asks.SETATTR, (self, name, value))

    def __delattr__(self, name: str) -> None:
        module_dict(self).pop(name, None)
        _get(self, "_t_peer").request(asks.DELATTR, (self, name))

    def __dir__(self) -> list[str]:
        names: list[str] = _get(self, "_t_peer").request(asks.DIR, self)
        return names

    def __repr__(self) -> str:
        return f"<module {_get(self, '__name__')!r} of the product>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return reduced(self)


_MODULE_DICT: Any = vars(types.ModuleType)["__dict__"]


def module_dict(module: types.ModuleType) -> dict[str, Any]:
    found: dict[str, Any] = _MODULE_DICT.__get__(module)
    return found


def _star(peer: Peer, module: Any) -> Any:
    try:
        return peer.request(asks.GETATTR, (module, "__all__"))
    except AttributeError:
        return [name for name in peer.request(asks.DIR, module) if not name.startswith("_")]


def signature(peer: Peer, function: Any) -> Any:
    parts = peer.request(asks.SIGNATURE, (function, ""))
    if parts is None:
        raise AttributeError("__signature__")
    out = []
    for name, kind, has_default, default in parts:
        parameter = inspect.Parameter(name, inspect._ParameterKind(kind))
        out.append(parameter.replace(default=default) if has_default else parameter)
    return inspect.Signature(out)


def _defaults(signature: inspect.Signature, name: str) -> Any:
    only = inspect.Parameter.KEYWORD_ONLY
    given = [
        p
        for p in signature.parameters.values()
        if p.default is not p.empty and (p.kind is only) == (name == "__kwdefaults__")
    ]
    if name == "__defaults__":
        return tuple(p.default for p in given) or None
    return {p.name: p.default for p in given} or None


def reduced(value: Any) -> Any:
    return restore, (
        value._t_peer.request(asks.DUMP, value)
        if not isinstance(type(value), mirror.MirrorMeta)
        else type(value)._t_peer.request(asks.DUMP, value),
    )


def restore(data: Any) -> Any:
    return _LOADER[0].request(asks.LOAD, data)


_LOADER: list[Any] = []


def set_loader(peer: Peer) -> None:
    """Who makes objects of the other end out of what `pickle` and `copy` kept of them."""
    _LOADER[:] = [peer]


REMOTES: tuple[type, ...] = (RemoteFunction, RemoteModule)


def is_products(value: Any) -> bool:
    """Whether it is a module, function or class of the other end's, and nothing that was derived from one here."""
    return isinstance(value, REMOTES) or (isinstance(value, mirror.MirrorMeta) and "_t_local" not in value.__dict__)

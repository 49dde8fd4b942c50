"""Exceptions of the other end: real where Python looks, forwarding elsewhere.

They come with class, arguments, attributes, chain and a traceback as text; never with frames. None is made of a class
of the oracle's own that the product only names.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from . import asks
from .codec import CodecError
from .mirror import Grip, MirrorMeta
from .proxies import DATA, LOCAL, find
from .remote import reduced
from .stdlib import standard_name

if TYPE_CHECKING:
    from .peer import Peer

_get = object.__getattribute__
_set = object.__setattr__


class RaisedProxy:
    """An exception of one of the other end's classes; real where Python looks, forwarding elsewhere."""

    if TYPE_CHECKING:  # of the mirrored class
        _t_peer: Peer
        _t_methods: dict[str, Any]
        _t_facts: dict[str, Any]

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__") or name in ("args", "with_traceback", "add_note", "_t_grip"):
            return _get(self, name)
        cls = type(self)
        method = cls._t_methods.get(name)
        if method is None:
            method = find(cls, name)
        if method is LOCAL:
            return _get(self, name)
        if method is DATA:
            own = _get(self, "__dict__")
            return (
                own[name]
                if name in own and not name.startswith("_t_")
                else cls._t_peer.request(asks.GETATTR, (self, name))
            )
        return types.MethodType(method, self)

    def __setattr__(self, name: str, value: Any) -> None:
        _set(self, name, value)
        if not name.startswith("__"):
            type(self)._t_peer.request(asks.SETATTR, (self, name, value))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return reduced(self)


def exception(peer: Peer, parts: Any) -> BaseException:
    if type(parts) is not tuple or len(parts) != 9:
        raise CodecError("an exception has nine parts")
    number, cls, args, state, more, cause, context, suppress, trace = parts
    if type(number) is not int or not 0 <= number < 1 << 62:
        raise CodecError("an exception without its number")
    held = peer.proxies.get(number)
    if held is not None:
        return held  # type: ignore[no-any-return]
    if (
        not isinstance(cls, type)
        or not issubclass(cls, BaseException)
        or type(args) is not tuple
        or type(state) is not dict
    ):
        raise CodecError("an exception of no class")
    if peer.oracle and not isinstance(cls, MirrorMeta) and standard_name(cls) is None:
        raise CodecError("a new exception of a class of the oracle's own")
    made = _new_exception(cls, args, more)
    own = made.__dict__
    for key, item in state.items():
        if type(key) is str and not key.startswith(("_t_", "__tribunal")):
            own[key] = item
    own["_t_grip"] = Grip(peer, number)
    peer.crossed(made, trace)
    for name, link in (("__cause__", cause), ("__context__", context)):
        if link is not None and not isinstance(link, BaseException):
            raise CodecError("a chain of exceptions")
        _set(made, name, link)
    _set(made, "__suppress_context__", bool(suppress))
    return made


def _new_exception(cls: Any, args: tuple[Any, ...], more: Any) -> BaseException:
    try:
        if issubclass(cls, BaseExceptionGroup):
            made = BaseExceptionGroup.__new__(cls, more[0], list(more[1]))
        elif issubclass(cls, OSError):
            made = OSError.__new__(cls, *args)
            OSError.__init__(made, *args)
        else:
            made = (
                cls.__new__(cls, *args) if not isinstance(cls, MirrorMeta) else _base_exception(cls).__new__(cls, *args)
            )
            _set(made, "args", args)
            if issubclass(cls, (UnicodeError, SyntaxError)):
                next(k for k in cls.__mro__ if k.__module__ == "builtins").__init__(made, *args)
        if issubclass(cls, ImportError) and type(more) is tuple:
            ImportError.__dict__["name"].__set__(made, more[0])
            ImportError.__dict__["path"].__set__(made, more[1])
        elif issubclass(cls, OSError) and type(more) is tuple:
            for key, item in zip(("filename", "filename2"), more, strict=True):
                if item is not None:
                    OSError.__dict__[key].__set__(made, item)
        elif issubclass(cls, SystemExit):
            SystemExit.__dict__["code"].__set__(made, more)
        elif issubclass(cls, StopIteration):
            StopIteration.__dict__["value"].__set__(made, more)
    except CodecError:
        raise
    except Exception as error:
        raise CodecError(f"an exception that cannot be made: {error!r}"[:200]) from error
    return made  # type: ignore[no-any-return]


def _base_exception(cls: Any) -> Any:
    return next(kind for kind in cls.__mro__ if kind.__module__ == "builtins")

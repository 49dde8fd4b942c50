"""Classes of the other end, and who holds what of it by number.

A mirrored class is a real class, with the method resolution order of the original as far as both ends share it, so that
`isinstance`, `except` and subclassing work. Its instances hold nothing but a number; values (subclasses of str, tuple
and the like, enum members) hold their plain value. Never runs a method of a standard class on an object of the other
end's: `making`, `building` and `proxies` see to that.
"""

from __future__ import annotations

import abc
import enum
from typing import TYPE_CHECKING, Any

from . import asks, derived, remote

if TYPE_CHECKING:
    from .peer import Peer

_get = object.__getattribute__

# Special methods that a mirror may have; each is there only if the original's class has it.
SPECIALS = frozenset(
    f"__{name}__"
    for name in ["call", "len", "length_hint", "getitem", "setitem", "delitem", "contains", "iter", "next",
    "reversed", "missing", "bool", "str", "repr", "format", "bytes", "hash", "eq", "ne", "lt", "le", "gt", "ge",
    "add", "radd", "iadd", "sub", "rsub", "isub", "mul", "rmul", "imul", "truediv", "rtruediv", "itruediv",
    "floordiv", "rfloordiv", "ifloordiv", "mod", "rmod", "imod", "divmod", "rdivmod", "pow", "rpow", "ipow",
    "matmul", "rmatmul", "imatmul", "lshift", "rlshift", "ilshift", "rshift", "rrshift", "irshift", "and", "rand",
    "iand", "or", "ror", "ior", "xor", "rxor", "ixor", "neg", "pos", "abs", "invert", "int", "float", "complex",
    "index", "round", "trunc", "floor", "ceil", "enter", "exit", "aenter", "aexit", "aiter", "anext", "await", "get",
    "set", "delete", "set_name", "fspath", "dir", "sizeof", "copy", "deepcopy", "instancecheck", "subclasscheck",
    "array", "html", "json", "rich", "call_later", "buffer"]
)  # fmt: skip
COMPARISONS = frozenset(("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"))
# What a class has that nobody asks the other end for.
OWN_WAY = frozenset(
    ("__class__", "__new__", "__init__", "__init_subclass__", "__subclasshook__", "__getattribute__", "__getattr__",
     "__setattr__", "__delattr__", "__del__", "__reduce__", "__reduce_ex__", "__getstate__", "__dict__", "__doc__",
     "__module__", "__weakref__", "__slots__", "__abstractmethods__", "__class_getitem__", "__qualname__",
     "__dataclass_fields__", "__match_args__", "__annotations__", "__hash__", "__orig_bases__", "__parameters__",
     "__static_attributes__", "__firstlineno__", "__classcell__", "__setstate__", "__copy__", "__deepcopy__")
)  # fmt: skip


class Grip:
    """Holds the other end's object; tells when it is let go."""

    __slots__ = ("count", "number", "peer")

    def __init__(self, peer: Peer, number: int) -> None:
        self.peer, self.number, self.count = peer, number, 1

    def __del__(self) -> None:
        self.peer.let_go.append((self.number, self.count))


def grip_of(value: Any) -> Grip | None:
    """None for classes, which are never let go."""
    if isinstance(value, type):
        return None
    try:
        grip: Grip = _get(value, "_t_grip")
    except AttributeError:
        return None
    return grip


def number_of(value: Any) -> int:
    if isinstance(value, MirrorMeta):
        number: int = value.__dict__["_t_number"]
        return number
    return int(_get(value, "_t_grip").number)


def origin(value: Any) -> int | None:
    """The number of an object that came from the other end and is a real one here: exceptions, enum members."""
    if isinstance(value, (BaseException, enum.Enum)):
        grip = value.__dict__.get("_t_grip")
        return grip.number if grip is not None else None
    return None


def local_subclass(value: type) -> int | None:
    """The number of a mirrored enum."""
    number = value.__dict__.get("_t_number")
    return number if type(number) is int else None


class MirrorMeta(abc.ABCMeta):
    """The metaclass of mirrored classes, and of local classes that derived.derive from one."""

    def __new__(mcls, name: str, bases: tuple[type, ...], body: dict[str, Any], **more: Any) -> Any:
        mirror: Built | None = more.pop("_t_mirror", None)
        if mirror is None:
            return derived.derive(mcls, name, bases, body, more)
        made: Any = super().__new__(mcls, name, bases, body)
        made.__abstractmethods__ = frozenset()
        return made

    def __init__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any], **more: Any) -> None:
        type.__init__(cls, name, bases, body)

    @property
    def register(cls) -> Any:
        """A class method of the original's of that name; else what classes with abstract methods have."""
        for part in cls.__mro__:
            if isinstance(part, MirrorMeta) and "register" in part._t_facts.get("methods", ()):
                return cls._t_peer.request(asks.GETATTR, (cls, "register"))
        return super().register

    def __call__(cls, /, *args: Any, **kwargs: Any) -> Any:
        peer, number = cls._t_peer, cls.__dict__["_t_number"]
        if not peer.oracle and (own := cls._t_facts.get("stdlib_class")) is not None and "dependency" in cls._t_facts:
            return own(*args, **kwargs)  # a class of a dependency, which this process has as well
        return peer.request(asks.CALL, (Ref(number), args, tuple(kwargs.items())))

    def __getattr__(cls, name: str) -> Any:
        if name.startswith(("_t_", "_abc")) or name in (
            "__isabstractmethod__",
            "__wrapped__",
            "__set_name__",
            "__del__",
        ):
            raise AttributeError(name)
        if name == "__signature__":
            return remote.signature(cls._t_peer, cls)
        return cls._t_peer.request(asks.GETATTR, (cls, name))

    @property
    def __annotations__(cls) -> Any:
        own = cls.__dict__
        if "__annotations__" in own or "_t_number" not in own:
            return own.get("__annotations__", {})
        return cls._t_peer.request(asks.GETATTR, (cls, "__annotations__"))

    def __setattr__(cls, name: str, value: Any) -> None:
        if name.startswith(("_t_", "_abc", "__abstract")):
            type.__setattr__(cls, name, value)
            return
        if "_t_number" not in cls.__dict__:  # a base's `__init_subclass__`: the twin's does the same there
            type.__setattr__(cls, name, value)
            return
        peer = cls._t_peer
        if peer.oracle and "_t_local" not in cls.__dict__:
            if peer.patches.is_original(cls, name, value):
                peer.patches.restore(cls, name)
                derived.forget(cls, name)
                return
            peer.patches.touch(cls, name)
        if peer.oracle and type(value) in derived.DESCRIPTORS:
            peer.request(asks.PUT, (cls, name, derived.sent(value)))
        else:
            peer.request(asks.SETATTR, (cls, name, value))
        derived.refresh(cls, name, value)

    def __delattr__(cls, name: str) -> None:
        if cls._t_peer.oracle and "_t_local" not in cls.__dict__:
            cls._t_peer.patches.touch(cls, name)
        cls._t_peer.request(asks.DELATTR, (cls, name))
        if name in cls.__dict__:
            type.__delattr__(cls, name)
        derived.forget(cls, name)

    def __getitem__(cls, item: Any) -> Any:
        return cls._t_peer.request(asks.SPECIAL, ("__getitem__", (cls, item)))

    def __bool__(cls) -> bool:
        return True

    def __or__(cls, other: Any) -> Any:
        return type.__or__(cls, other)

    def __dir__(cls) -> list[str]:
        names: list[str] = cls._t_peer.request(asks.DIR, cls)
        return names

    def __instancecheck__(cls, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        return bool(_is_virtual(cls) and cls._t_peer.request(asks.INSTANCE, (instance, cls), True))

    def __subclasscheck__(cls, subclass: Any) -> bool:
        if super().__subclasscheck__(subclass):
            return True
        return bool(_is_virtual(cls) and cls._t_peer.request(asks.SUBCLASSCHECK, (subclass, cls), True))


class Holding(MirrorMeta):
    """The metaclass of mirrored classes that have contents: with the others `Iterable` would take any for iterable."""

    def __len__(cls) -> int:
        return int(_of_class(cls, "__len__"))

    def __iter__(cls) -> Any:
        return _of_class(cls, "__iter__")

    def __contains__(cls, item: Any) -> bool:
        return bool(cls._t_peer.contains(cls, item))  # what holds everything is found out, as with objects


def _of_class(cls: Any, name: str) -> Any:
    """What a class is asked as an object: its original's metaclass answers, as it does for classes that have none."""
    return cls._t_peer.request(asks.SPECIAL, (name, (cls,)))


def _is_virtual(cls: Any) -> bool:
    """Whether the original decides itself what is an instance. One that was only tried, or is being made, does not."""
    return bool(getattr(cls, "_t_facts", {}).get("virtual"))


class Built:
    """Marks a class that mirrors one, against one that is derived here."""


class Ref:
    """A number of the other end's, to be sent back as it is."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

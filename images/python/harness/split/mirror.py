"""What the other end's objects look like here: mirrored classes, and objects that forward everything.

A mirrored class is a real class, with the method resolution order of the original as far as both ends share it, so that
`isinstance`, `except` and subclassing work. Its instances hold nothing but a number; values (subclasses of str, tuple
and the like, enum members) hold their plain value. No method of a standard class runs on an object of the other end:
every special method of a base is replaced by one that forwards.
"""

from __future__ import annotations

import abc
import enum
import inspect
import keyword
import sys
import types
from typing import TYPE_CHECKING, Any

from . import asks
from .codec import CodecError
from .encode import BY_VALUE
from .probes import ARITHMETIC, REDUCING
from .real import REAL
from .stdlib import resolve, standard_name, value_base

if TYPE_CHECKING:
    from .peer import Peer

_get = object.__getattribute__
_set = object.__setattr__

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
_COMPARISONS = frozenset(("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"))
_OWN_WAY = frozenset(
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
    """The metaclass of mirrored classes, and of local classes that derive from one."""

    def __new__(mcls, name: str, bases: tuple[type, ...], body: dict[str, Any], **more: Any) -> Any:
        mirror: _Built | None = more.pop("_t_mirror", None)
        if mirror is None:
            return _derive(mcls, name, bases, body, more)
        made: Any = super().__new__(mcls, name, bases, body)
        made.__abstractmethods__ = frozenset()
        return made

    def __init__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any], **more: Any) -> None:
        type.__init__(cls, name, bases, body)

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
            return _signature(cls._t_peer, cls)
        return cls._t_peer.request(asks.GETATTR, (cls, name))

    def __setattr__(cls, name: str, value: Any) -> None:
        if name.startswith(("_t_", "_abc", "__abstract")):
            type.__setattr__(cls, name, value)
            return
        if "_t_number" not in cls.__dict__:  # a base's `__init_subclass__`: the twin's does the same there
            type.__setattr__(cls, name, value)
            return
        peer = cls._t_peer
        peer.request(asks.SETATTR, (cls, name, value))
        _refresh(cls, name, value)

    def __delattr__(cls, name: str) -> None:
        cls._t_peer.request(asks.DELATTR, (cls, name))
        if name in cls.__dict__:
            type.__delattr__(cls, name)
        cls._t_methods.pop(name, None)

    def __getitem__(cls, item: Any) -> Any:
        return cls._t_peer.request(asks.SPECIAL, ("__getitem__", (cls, item)))

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


def _is_virtual(cls: Any) -> bool:
    """Whether the original decides itself what is an instance. One that was only tried, or is being made, does not."""
    return bool(getattr(cls, "_t_facts", {}).get("virtual"))


class _Built:
    """Marks a class that mirrors one, against one that is derived here."""


class Ref:
    """A number of the other end's, to be sent back as it is."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class RemoteFunction:
    """A function of the other end: called, bound, asked for its signature."""

    __slots__ = ("__weakref__", "_t_grip", "_t_marks", "_t_peer")

    def __init__(self, peer: Peer, number: int, marks: int) -> None:
        _set(self, "_t_grip", Grip(peer, number))
        _set(self, "_t_peer", peer)
        _set(self, "_t_marks", marks)

    @property
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
            return _signature(peer, self)
        if name == "__code__":
            return Code(self)
        if name in ("__defaults__", "__kwdefaults__"):
            try:
                return _defaults(_signature(peer, self), name)
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
    def __dict__(self) -> Any:
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
        return _reduced(self)


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


_LOCAL_NAMES = frozenset(("__file__", "__spec__", "__loader__", "__path__", "__cached__", "__builtins__"))


class RemoteModule(types.ModuleType):
    """A module of the other end: every attribute is asked for when it is wanted."""

    __slots__ = ("_t_grip", "_t_peer")

    def __init__(self, peer: Peer, number: int, name: str) -> None:
        super().__init__(name)
        own = _module_dict(self)
        for key in ("__doc__", "__package__", "__loader__", "__spec__"):
            own.pop(key, None)
        _set(self, "_t_grip", Grip(peer, number))
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
                peer.starred(names, frame.f_globals)
            return names
        if peer.oracle and not name.startswith("__"):
            return peer.look_up(self, name)
        return peer.request(asks.GETATTR, (self, name))

    @property
    def __dict__(self) -> Any:
        return _get(self, "_t_peer").request(asks.GETATTR, (self, "__dict__"))

    def __setattr__(self, name: str, value: Any) -> None:
        own = _module_dict(self)
        if sys._getframe(1).f_code.co_filename.startswith("<frozen importlib"):
            if name in _LOCAL_NAMES:  # else it binds a submodule, as the other end's import has done there
                own[name] = value
            return
        if isinstance(value, types.ModuleType) and sys.modules.get(f"{_get(self, '__name__')}.{name}") is value:
            own[name] = value  # a sealed module inside a package of the product's
            return
        own.pop(name, None)
        _get(self, "_t_peer").request(asks.SETATTR, (self, name, value))

    def __delattr__(self, name: str) -> None:
        _module_dict(self).pop(name, None)
        _get(self, "_t_peer").request(asks.DELATTR, (self, name))

    def __dir__(self) -> list[str]:
        names: list[str] = _get(self, "_t_peer").request(asks.DIR, self)
        return names

    def __repr__(self) -> str:
        return f"<module {_get(self, '__name__')!r} of the product>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _reduced(self)


def _module_dict(module: types.ModuleType) -> dict[str, Any]:
    found: dict[str, Any] = types.ModuleType.__dict__["__dict__"].__get__(module)
    return found


def _star(peer: Peer, module: Any) -> Any:
    try:
        return peer.request(asks.GETATTR, (module, "__all__"))
    except AttributeError:
        return [name for name in peer.request(asks.DIR, module) if not name.startswith("_")]


REMOTES: tuple[type, ...] = (RemoteFunction, RemoteModule, Ref)


# -- making ---------------------------------------------------------------------------------------------------------


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


def build(peer: Peer, number: int, facts: Any) -> Any:
    """A local class for one of the other end's."""
    if type(facts) is not dict or type(facts["name"]) is not str:
        raise CodecError("facts of a class are a table")
    if facts.get("enum") is not None:
        return _enumeration(peer, number, facts)
    body: dict[str, Any] = {
        "_t_peer": peer, "_t_number": number, "_t_facts": facts, "_t_methods": {}, "__module__": str(facts["module"]),
        "__qualname__": str(facts["qualname"]), "__doc__": facts["doc"],
    }  # fmt: skip
    functions = facts["functions"]
    for name, function in functions.items():
        if type(name) is not str or name.startswith(("_t_", "_abc")):
            continue
        if name in (
            "__getattribute__",
            "__getattr__",
            "__setattr__",
            "__delattr__",
            "__del__",
            "__new__",
            "__init_subclass__",
        ):
            continue
        if (
            name.startswith("__")
            and name.endswith("__")
            and name not in SPECIALS
            and name not in ("__init__", "__post_init__")
        ):
            continue
        if name in _COMPARISONS:
            body[name] = _comparison(name, function)
        elif name == "__iter__":
            body[name] = _iterator
        elif name == "__await__":
            body[name] = _awaited
        elif name == "__contains__":
            body[name] = _contains
        elif name in ARITHMETIC:
            body[name] = _arithmetic(name)
        elif name in ("__exit__", "__aexit__", "__next__"):
            body[name] = _special(name)
        elif name in REDUCING:
            body[name] = _reduction(name)
        elif name not in ("__copy__", "__deepcopy__"):
            body[name] = function
    for name in facts["specials"]:
        if name in SPECIALS and name not in body and name not in ("__hash__", "__copy__", "__deepcopy__"):
            body[name] = _special(name)
    if facts["hash"] == "none":
        body["__hash__"] = None
    elif facts["hash"] == "own":
        body["__hash__"] = _special("__hash__")
    elif facts["hash"] == "identity":
        body["__hash__"] = _identity_hash
    if facts["eq"] == "fields":
        body["__eq__"], body["__ne__"] = _fields_equal, _fields_unequal
    if facts.get("fields") is not None:
        body["__dataclass_fields__"] = _Fields(peer, number)
        body["__match_args__"] = tuple(facts["match"])
    elif facts.get("match"):
        body["__match_args__"] = tuple(facts["match"])
    bases = _bases(peer, facts, body)
    made = MirrorMeta(facts["name"], bases, body, _t_mirror=_Built())
    made._t_new = _maker(made)
    if not facts.get("value") and not issubclass(made, BaseException) and not _makes(made):
        plain = tuple(base for base in bases if isinstance(base, MirrorMeta) or base is Proxy) or (Proxy,)
        made = MirrorMeta(facts["name"], plain, body, _t_mirror=_Built())
        made._t_new = object.__new__
    _shield(made)
    return made


def _makes(made: Any) -> bool:
    """Whether an instance can be made without the arguments that only the other end knows, and be kept track of."""
    if not made.__weakrefoffset__ or not made.__dictoffset__:
        return False
    try:
        made._t_new(made)
    except TypeError:
        made._t_new = object.__new__  # what a class gets that inherits from `Proxy` first
    else:
        return True
    try:
        made._t_new(made)
    except TypeError:
        return False
    return True


def _bases(peer: Peer, facts: Any, body: dict[str, Any]) -> tuple[Any, ...]:
    """Mirrors, real classes that both ends have where nothing of theirs can run, and `Proxy` for the forwarding."""
    out: list[Any] = []
    value = facts.get("value")
    for item in facts["bases"]:
        if isinstance(item, MirrorMeta) or _usable(item):
            out.append(item)
    if facts.get("namedtuple") is not None:
        out = [_named_tuple(facts["namedtuple"])]
    exception = any(isinstance(b, type) and issubclass(b, BaseException) for b in out)
    if not any(isinstance(b, MirrorMeta) for b in out):
        if value:
            out.insert(0, ValueProxy)
        elif exception:
            out.insert(0, RaisedProxy)
        else:
            out.insert(0, Proxy)
    facts.pop("stdlib_class", None)  # it is ours to say
    stdlib = facts.get("stdlib")
    if stdlib is not None and (real := _loaded(*stdlib)) is not None:
        facts["stdlib_class"] = real
        if _usable(real):
            out.append(real)
    elif stdlib is None and (own := peer.own_class(facts)) is not None:
        facts["stdlib_class"] = own
        if exception or _usable(own):
            out = [base for base in out if not issubclass(own, base)] + [own]
    return _consistent([base for base in out if base is not object])


def _loaded(module: Any, name: Any) -> Any:
    """A class of the standard library under its name, unless values of it cross by value."""
    try:
        found = resolve(str(module), str(name), False)
    except LookupError:
        return None
    return found if isinstance(found, type) and found not in BY_VALUE else None


def _consistent(bases: list[Any]) -> tuple[Any, ...]:
    """Drops bases from the end until Python accepts the order and the layouts."""
    kept = list(dict.fromkeys(bases))
    while kept:
        try:
            types.new_class("Trial", tuple(kept), {"metaclass": MirrorMeta, "_t_mirror": _Built()})
            return tuple(kept)
        except TypeError:
            kept.pop()
    return (Proxy,)


def _usable(kind: Any) -> bool:
    """Whether a class of the standard library may be a real base: nothing of its own happens when it is derived."""
    if not isinstance(kind, type) or type(kind) not in (type, abc.ABCMeta) or kind is object:
        return False
    hooks = ("__init_subclass__", "__del__", "__set_name__")
    return not any(hook in part.__dict__ for part in kind.__mro__[:-1] for hook in hooks)


def _shield(made: Any) -> None:
    """Every special method that a real base brings along is replaced by one that forwards."""
    if made._t_facts.get("value") or issubclass(made, BaseException):
        return
    for part in made.__mro__:
        if part is object or isinstance(part, MirrorMeta) or part in (Proxy, ValueProxy, RaisedProxy):
            continue
        for name in part.__dict__:
            if not name.startswith("__") or not name.endswith("__") or name in _OWN_WAY or name in made.__dict__:
                continue
            if not any(name in base.__dict__ for base in made.__mro__ if isinstance(base, MirrorMeta)):
                type.__setattr__(made, name, _iterator if name == "__iter__" else _special(name))


def _maker(made: Any) -> Any:
    for part in made.__mro__:
        if part is object or isinstance(part, MirrorMeta) or part in (Proxy, RaisedProxy):
            continue
        new = part.__dict__.get("__new__")
        if new is not None and isinstance(part.__new__, types.BuiltinFunctionType):
            return part.__new__
    return object.__new__


def _named_tuple(fields: Any) -> Any:
    import collections

    names, defaults = fields
    return collections.namedtuple("Fields", names, rename=True, defaults=defaults)  # type: ignore[misc]


def _enumeration(peer: Peer, number: int, facts: Any) -> Any:
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
    metaclass = enum.EnumMeta
    space = metaclass.__prepare__(facts["name"], kinds)
    space["_ignore_"] = ["_t_number", "_t_peer"]
    for name, function in body_of.items():
        space[name] = _comparison(name, None) if name in _COMPARISONS else _EnumMethod(function)
    value_type = next((k for k in kinds if not issubclass(k, enum.Enum)), None)
    if value_type is not None and not flag:

        def new(cls: Any, value: Any) -> Any:
            try:
                made = value_type.__new__(cls, value)
            except TypeError:
                made = value_type.__new__(cls, *value)
            made._value_ = value
            return made

        space["__new__"] = new
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


def value(peer: Peer, number: int, group: int, plain: Any) -> Any:
    """A value of one of the other end's classes."""
    held = peer.values.get(number)
    if held is not None:
        _get(held, "__dict__")["_t_grip"].count += 1
        return held
    cls = peer.class_of(group)
    if isinstance(cls, enum.EnumMeta):
        return _member(peer, number, cls, plain)
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
        pathlib.PurePath.__init__(made, str(plain))
        return made
    if base is complex:
        return complex.__new__(cls, plain.real, plain.imag)
    return base.__new__(cls, plain)


def _member(peer: Peer, number: int, cls: Any, plain: Any) -> Any:
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


# -- forwarding -----------------------------------------------------------------------------------------------------


def _special(name: str) -> Any:
    if name in _COMPARISONS:
        return _comparison(name, None)
    if name == "__await__":
        return _awaited
    if name == "__contains__":
        return _contains
    if name in ARITHMETIC:
        return _arithmetic(name)
    if name in REDUCING:
        return _reduction(name)

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


def _comparison(name: str, function: Any) -> Any:
    def compare(self: Any, other: Any) -> Any:
        return type(self)._t_peer.compare(name, function, self, other)

    compare.__name__ = name
    return compare


def _contains(self: Any, item: Any) -> Any:
    return type(self)._t_peer.contains(self, item)


def _arithmetic(name: str) -> Any:
    def reckon(self: Any, other: Any) -> Any:
        return type(self)._t_peer.arithmetic(name, self, other)

    reckon.__name__ = name
    return reckon


def _reduction(name: str) -> Any:
    def reduce(self: Any, *args: Any) -> Any:
        return type(self)._t_peer.reduce(name, self, args)

    reduce.__name__ = name
    return reduce


def _awaited(self: Any) -> Any:
    return type(self)._t_peer.loops.waiting(self)


def _iterator(self: Any) -> Any:
    return type(self)._t_peer.iterate(self)


def _identity_hash(self: Any) -> int:
    return hash(number_of(self))


def _fields_equal(self: Any, other: Any) -> Any:
    """A data class without an equality of its own is compared here, field by field."""
    if type(self) is not type(other):
        return NotImplemented
    if self is other:
        return True
    names = _compared(type(self))
    return all(getattr(self, name) == getattr(other, name) for name in names)


def _fields_unequal(self: Any, other: Any) -> Any:
    same = _fields_equal(self, other)
    return same if same is NotImplemented else not same


def _compared(cls: Any) -> Any:
    for part in cls.__mro__:
        if isinstance(part, MirrorMeta) and part._t_facts.get("fields") is not None:
            return part._t_facts["fields"]
    return ()


class _Fields:
    """`__dataclass_fields__`, fetched when it is wanted."""

    def __init__(self, peer: Peer, number: int) -> None:
        self._peer, self._number = peer, number

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        import dataclasses

        out = {}
        for name, kind, init, compare, default in self._peer.request(asks.FIELDS, Ref(self._number)):
            if type(name) is not str or not name.isidentifier() or keyword.iskeyword(name):
                raise CodecError("a field without a proper name")  # `dataclass` makes code of the names of fields
            item: Any = dataclasses.field(init=bool(init), compare=bool(compare))
            item.name, item.type = name, kind
            if type(default) is tuple and default:
                item.default = default[0]
            item._field_type = dataclasses._FIELD  # type: ignore[attr-defined]
            out[name] = item
        return out


class _Base:
    """Forwards every attribute that is not known to be a method."""

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            return _dunder(self, name)
        cls = type(self)
        method = cls._t_methods.get(name)
        if method is None:
            method = _find(cls, name)
        if method is _LOCAL:
            return _get(self, name)
        if method is _DATA:
            return cls._t_peer.request(asks.GETATTR, (self, name))
        return types.MethodType(method, self)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _LOCAL_NAMES and sys._getframe(1).f_code.co_filename.startswith("<frozen importlib"):
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
        return _reduced(self)


def _forwarded_new(cls: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Asked for by name; what `make` makes comes into being otherwise."""
    kind = next(part for part in cls.__mro__ if isinstance(part, MirrorMeta) and "_t_local" not in part.__dict__)
    return cls._t_peer.request(asks.METHOD, (kind, "__new__", (cls, *args), tuple(kwargs.items())))


class Proxy(_Base):
    """An object without a value of its own here."""

    __new__ = _forwarded_new

    @property
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

    __new__ = _forwarded_new

    def __getattribute__(self, name: str) -> Any:
        cls = type(self)
        if name.startswith("_t_") or (name.startswith("__") and name.endswith("__") and name != "__dict__"):
            return _get(self, name)
        method = cls._t_methods.get(name)
        if method is None:
            method = _find(cls, name)
        if method is _LOCAL:
            return _get(self, name)
        if method is _DATA:
            try:
                return _get(self, name) if _plain_name(cls, name) else cls._t_peer.request(asks.GETATTR, (self, name))
            except AttributeError:
                return cls._t_peer.request(asks.GETATTR, (self, name))
        return types.MethodType(method, self)

    def __setattr__(self, name: str, value: Any) -> None:
        type(self)._t_peer.request(asks.SETATTR, (self, name, value))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _reduced(self)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


class RaisedProxy:
    """An exception of one of the other end's classes; real where Python looks, forwarding elsewhere."""

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__") or name in ("args", "with_traceback", "add_note", "_t_grip"):
            return _get(self, name)
        cls = type(self)
        method = cls._t_methods.get(name)
        if method is None:
            method = _find(cls, name)
        if method is _LOCAL:
            return _get(self, name)
        if method is _DATA:
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
        return _reduced(self)


# Questions of texts that every text answers with no for some other text, and that change nothing.
_PREDICATES = frozenset(("startswith", "endswith"))
_LOCAL, _DATA = object(), object()


def _plain_name(cls: Any, name: str) -> bool:
    return any(name in part.__dict__ for part in cls.__mro__ if not isinstance(part, MirrorMeta))


def _find(cls: Any, name: str) -> Any:
    """Where an attribute comes from: a class derived here, a method of the original, or data to be asked for."""
    found: Any = _DATA
    if name.startswith("_t_"):
        found = _LOCAL
    for part in cls.__mro__:
        if found is not _DATA:
            break
        if isinstance(part, MirrorMeta):
            if "_t_local" in part.__dict__:
                if name in part.__dict__:
                    found = _LOCAL
            elif name in part._t_facts["functions"]:
                found = _Method(cls._t_peer, name, part.__dict__.get(name) or part._t_facts["functions"][name])
            elif name in part.__dict__ and not name.startswith("_t_") and type(part.__dict__[name]) is not _Inherited:
                found = _LOCAL
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
        answer = peer.request(asks.METHOD, (instance, name, args, tuple(kwargs.items())))
        if answer is True and name in _PREDICATES:
            peer.predicate(instance, name, args)
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(_get(self, "_function"), name)

    @property
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
    if name in SPECIALS or name in _OWN_WAY:
        return _get(self, name)
    return cls._t_peer.request(asks.GETATTR, (self, name))


def _copies_itself(cls: Any, name: str) -> bool:
    kinds = [part for part in cls.__mro__ if isinstance(part, MirrorMeta)]
    return any(
        name in part.__dict__ or name in part._t_facts["functions"] or name in part._t_facts.get("specials", ())
        for part in kinds
    )


def _reduced(value: Any) -> Any:
    return _restore, (
        value._t_peer.request(asks.DUMP, value)
        if not isinstance(value, _Base)
        else type(value)._t_peer.request(asks.DUMP, value),
    )


def _restore(data: Any) -> Any:
    return _LOADER[0].request(asks.LOAD, data)


_LOADER: list[Any] = []


def set_loader(peer: Peer) -> None:
    """Who makes objects of the other end out of what `pickle` and `copy` kept of them."""
    _LOADER[:] = [peer]


def _signature(peer: Peer, function: Any) -> Any:
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


def _refresh(cls: Any, name: str, value: Any) -> None:
    """After an attribute of a mirrored class was set: whether it is a method now."""
    for kind in [cls, *_subclasses(cls)]:
        kind._t_methods.pop(name, None)
    functions = cls._t_facts["functions"]
    functions.pop(name, None)
    if "_t_local" in cls.__dict__:
        type.__setattr__(cls, name, value)
        return
    if name in cls.__dict__:
        type.__delattr__(cls, name)
    if isinstance(value, (types.FunctionType, RemoteFunction)):
        if name in SPECIALS or not name.startswith("__"):
            functions[name] = value
            type.__setattr__(cls, name, _comparison(name, value) if name in _COMPARISONS else value)
    elif name in SPECIALS:
        type.__setattr__(cls, name, _special(name))


def _subclasses(cls: Any) -> list[Any]:
    out: list[Any] = []
    for sub in type.__subclasses__(cls):
        out += [sub, *_subclasses(sub)]
    return out


# -- classes derived here -------------------------------------------------------------------------------------------

_UNSENT = frozenset(
    ("__module__", "__qualname__", "__classcell__", "__dict__", "__weakref__", "__doc__", "__setattr__", "__delattr__",
     "__getattribute__", "__firstlineno__", "__static_attributes__", "__slots__", "__orig_bases__")
)  # fmt: skip


def _derive(mcls: Any, name: str, bases: tuple[Any, ...], body: dict[str, Any], more: dict[str, Any]) -> Any:
    """A class that derives from a mirrored one gets a twin at the other end, whose methods call back."""
    root = next(base for base in bases if isinstance(base, MirrorMeta))
    peer = root._t_peer
    if peer.oracle:
        from . import borrow

        if borrow.is_case(bases):
            return borrow.case(peer, name, bases, body, more)
    members = {}
    for key, item in body.items():
        if key not in _UNSENT:
            members[key] = _sent(item)
    theirs = {key: item for key, item in body.items() if isinstance(type(item), MirrorMeta) or type(item) in REMOTES}
    made = type.__new__(mcls, name, bases, {key: item for key, item in body.items() if key not in theirs})
    abc._abc_init(made)  # type: ignore[attr-defined]
    type.__setattr__(made, "__abstractmethods__", frozenset())
    type.__setattr__(made, "_t_local", True)
    type.__setattr__(made, "_t_methods", {})
    type.__setattr__(made, "_t_facts", {"functions": {}, "value": root._t_facts.get("value"), "fields": None})
    type.__setattr__(made, "_t_new", root._t_new)
    for base in made.__mro__:
        if isinstance(base, MirrorMeta) and "_t_local" not in base.__dict__ and "_t_super" not in base.__dict__:
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
            type.__setattr__(cls, name, _Inherited(name, kind, parts))


class _Inherited:
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


def _sent(item: Any) -> Any:
    if isinstance(item, staticmethod):
        return "static", item.__func__
    if isinstance(item, classmethod):
        return "class", item.__func__
    if isinstance(item, property):
        return "property", (item.fget, item.fset, item.fdel)
    return "plain", item

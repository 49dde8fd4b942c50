"""A local class for one of the other end's, out of the facts that it tells.

The facts are not trusted: what does not fit raises, and nothing of a standard class is left that could run on an
instance. Never builds a function or any code.
"""

from __future__ import annotations

import abc
import types
from typing import TYPE_CHECKING, Any

from .codec import CodecError
from .encode import BY_VALUE
from .enums import enumeration
from .forward import (
    Fields,
    arithmetic,
    awaited,
    comparison,
    contains,
    fields_equal,
    fields_unequal,
    identity_hash,
    iterator,
    reduction,
    special,
)  # fmt: skip
from .mirror import COMPARISONS, OWN_WAY, SPECIALS, Built, Holding, MirrorMeta
from .probes import ARITHMETIC, REDUCING, WHOLE
from .proxies import Proxy, ValueProxy
from .raised import RaisedProxy
from .stdlib import resolve

if TYPE_CHECKING:
    from .peer import Peer


# They mean nothing to Python any more: only a test that names them calls them.
_OF_OLD = ("__cmp__", "__nonzero__", "__unicode__", "__div__", "__rdiv__", "__idiv__", "__coerce__", "__long__")


def build(peer: Peer, number: int, facts: Any) -> Any:
    """A local class for one of the other end's."""
    if type(facts) is not dict or type(facts["name"]) is not str:
        raise CodecError("facts of a class are a table")
    if facts.get("enum") is not None:
        return enumeration(peer, number, facts)
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
            and name not in ("__init__", "__post_init__", *_OF_OLD)
        ):
            continue
        if name in COMPARISONS:
            body[name] = comparison(name, function)
        elif name == "__iter__":
            body[name] = iterator
        elif name == "__await__":
            body[name] = awaited
        elif name == "__contains__":
            body[name] = contains
        elif name in ARITHMETIC:
            body[name] = arithmetic(name)
        elif name in ("__exit__", "__aexit__", "__next__"):
            body[name] = special(name)
        elif name in REDUCING:
            body[name] = reduction(name)
        elif name in WHOLE:
            body[name] = special(name)
        elif name not in ("__copy__", "__deepcopy__"):
            body[name] = function
    for name in facts["specials"]:
        if name in SPECIALS and name not in body and name not in ("__hash__", "__copy__", "__deepcopy__"):
            body[name] = special(name)
    if facts["hash"] == "none":
        body["__hash__"] = None
    elif facts["hash"] == "own":
        body["__hash__"] = special("__hash__")
    elif facts["hash"] == "identity":
        body["__hash__"] = identity_hash
    if facts["eq"] == "fields":
        body["__eq__"], body["__ne__"] = fields_equal, fields_unequal
    if facts.get("fields") is not None:
        body["__dataclass_fields__"] = Fields(peer, number)
        body["__match_args__"] = tuple(facts["match"])
    elif facts.get("match"):
        body["__match_args__"] = tuple(facts["match"])
    bases = _bases(peer, facts, body)
    kind: Any = Holding if facts.get("holds") else MirrorMeta
    made = kind(facts["name"], bases, body, _t_mirror=Built())
    made._t_new = _maker(made)
    if not facts.get("value") and not issubclass(made, BaseException) and not _makes(made):
        plain = tuple(base for base in bases if isinstance(base, MirrorMeta) or base is Proxy) or (Proxy,)
        made = kind(facts["name"], plain, body, _t_mirror=Built())
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
            types.new_class("Trial", tuple(kept), {"metaclass": MirrorMeta, "_t_mirror": Built()})
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
            if not name.startswith("__") or not name.endswith("__") or name in OWN_WAY or name in made.__dict__:
                continue
            if not any(name in base.__dict__ for base in made.__mro__ if isinstance(base, MirrorMeta)):
                type.__setattr__(made, name, iterator if name == "__iter__" else special(name))


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
    return collections.namedtuple("Fields", names, rename=True, defaults=defaults)

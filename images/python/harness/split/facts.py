"""A class of ours, described for the end that will mirror it."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import types
from typing import Any

from .mirror import SPECIALS
from .stdlib import SAFE, standard_name, value_base

_SAFE_CLASSES = {id(value) for value in SAFE.values() if isinstance(value, type)}


def describe(kind: type) -> dict[str, Any]:
    """Everything a mirror is built from."""
    own = vars(kind)
    stdlib = standard_name(kind)
    foreign = stdlib is not None or kind.__module__ == "builtins" or not _python_class(kind)
    functions = {} if foreign else {n: v for n, v in own.items() if type(v) is types.FunctionType and type(n) is str}
    names = {name for part in kind.__mro__[:-1] for name in vars(part)} if foreign else set(own)
    facts: dict[str, Any] = {
        "name": kind.__name__, "qualname": kind.__qualname__, "module": kind.__module__,
        "doc": kind.__doc__ if type(kind.__doc__) is str else None,
        "bases": tuple(kind.__bases__) if not foreign else _foreign_bases(kind),
        "functions": functions,
        "specials": tuple(sorted(n for n in names if n in SPECIALS and n not in functions and n != "__class__")),
        "hash": _hash(kind), "eq": _equality(kind), "stdlib": stdlib if foreign else None,
        "virtual": type(kind).__instancecheck__ is not type.__instancecheck__ and not foreign,
    }  # fmt: skip
    if not foreign and isinstance(own.get("register"), (classmethod, staticmethod)):
        facts["methods"] = ("register",)  # the one name by which a metaclass of the standard library hides them
    if not foreign and any(hasattr(type(kind), name) for name in ("__iter__", "__len__", "__contains__")):
        facts["holds"] = True
    base = value_base(kind)
    if base is not None and not foreign:
        facts["value"] = base.__name__
    fields = own.get("__dataclass_fields__")
    if type(fields) is dict:
        facts["fields"] = tuple(n for n, f in fields.items() if f._field_type is dataclasses._FIELD and f.compare)  # type: ignore[attr-defined]
    match = own.get("__match_args__", ())
    facts["match"] = tuple(m for m in match if type(m) is str) if type(match) is tuple else ()
    if issubclass(kind, enum.Enum):
        facts["enum"] = _members(kind)
        facts["missing"] = any("_missing_" in vars(part) for part in kind.__mro__ if part.__module__ != "enum")
    elif issubclass(kind, tuple) and type(own.get("_fields")) is tuple:
        facts["namedtuple"] = (tuple(str(n) for n in own["_fields"]), tuple(own.get("_field_defaults", {}).values()))
    return facts


def members(kind: Any) -> tuple[Any, ...]:
    """What a class derived from this one reaches through `super()` besides plain methods."""
    out: list[Any] = []
    for name, item in vars(kind).items():
        if isinstance(item, property):
            out.append((name, "property", (item.fget, item.fset, item.fdel)))
        elif isinstance(item, (classmethod, staticmethod)) and not name.startswith("__"):
            out.append((name, "class" if isinstance(item, classmethod) else "static", item.__func__))
    return tuple(out)


def _python_class(kind: type) -> bool:
    """Whether the class was made by a `class` statement or the like, against one of an extension module."""
    return bool(kind.__flags__ & (1 << 9))


def _foreign_bases(kind: type) -> tuple[Any, ...]:
    return tuple(part for part in kind.__mro__[1:-1] if id(part) in _SAFE_CLASSES)[:1]


def _hash(kind: type) -> str:
    for part in kind.__mro__:
        if "__hash__" in vars(part):
            if part is object:
                return "identity"
            return "none" if vars(part)["__hash__"] is None else "own"
    return "identity"


def _equality(kind: type) -> str:
    for part in kind.__mro__:
        method = vars(part).get("__eq__")
        if method is None:
            continue
        if part is object:
            return "identity"
        made = type(method) is types.FunctionType and method.__code__.co_filename == "<string>"
        return "fields" if made and "__dataclass_fields__" in vars(part) and part is kind else "own"
    return "identity"


def _members(kind: type[enum.Enum]) -> tuple[Any, ...]:
    bases = tuple(base for base in kind.__mro__[1:-1] if base is not enum.ReprEnum and not _is_product_enum(base))
    chosen: list[type] = []
    for base in bases:
        if not any(issubclass(other, base) for other in chosen):
            chosen.append(base)
    plain = [base for base in chosen if not issubclass(base, enum.Enum) and id(base) in _SAFE_CLASSES]
    enums = [base for base in chosen if issubclass(base, enum.Enum)]
    return (
        tuple((name, member._value_) for name, member in kind.__members__.items()),
        (*plain, *enums),
        issubclass(kind, enum.Flag),
    )


def _is_product_enum(base: type) -> bool:
    return issubclass(base, enum.Enum) and base.__module__ != "enum"


def fields(kind: Any) -> tuple[Any, ...]:
    """What `__dataclass_fields__` tells: name, type, in `__init__`, compared, and the default in a tuple of one, or
    what makes it in one of two."""
    out = []
    for field in dataclasses.fields(kind):
        default: tuple[Any, ...] = () if field.default is dataclasses.MISSING else (field.default,)
        if field.default_factory is not dataclasses.MISSING:
            default = (field.default_factory, True)
        out.append((field.name, field.type, bool(field.init), bool(field.compare), default))
    return tuple(out)


def signature(function: Any, name: str) -> Any:
    """Parameters as (name, kind, has a default, default), or one attribute of the code object."""
    if name:
        code = inspect.unwrap(function).__code__ if not hasattr(function, "__code__") else function.__code__
        return getattr(code, name) if name.startswith("co_") else None
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    empty = inspect.Parameter.empty
    return tuple(
        (p.name, int(p.kind), p.default is not empty, None if p.default is empty else p.default)
        for p in found.parameters.values()
    )

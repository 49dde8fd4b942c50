"""What of the standard library crosses by name, and which classes of it hold a plain value.

The oracle sends names freely: both ends have the same standard library. What the product names must be on the short
list here, because a sealed test may call it.
"""

from __future__ import annotations

import abc
import builtins
import collections
import collections.abc
import contextlib
import datetime
import decimal
import enum
import fractions
import importlib
import math
import numbers
import operator
import os
import pathlib
import re
import sys
import types
import uuid
from typing import Any

from .real import REAL

_NEVER_LOADED = {"antigravity", "this", "idlelib", "test", "turtledemo", "turtle", "tkinter", "lib2to3", "__main__"}
VALUES = object()  # "no plain part"

_PURE = [
    "abs",
    "all",
    "any",
    "ascii",
    "bin",
    "bool",
    "bytearray",
    "bytes",
    "callable",
    "chr",
    "complex",
    "dict",
    "divmod",
    "enumerate",
    "filter",
    "float",
    "format",
    "frozenset",
    "hash",
    "hex",
    "id",
    "int",
    "isinstance",
    "issubclass",
    "iter",
    "len",
    "list",
    "map",
    "max",
    "memoryview",
    "min",
    "next",
    "object",
    "oct",
    "ord",
    "pow",
    "print",
    "range",
    "repr",
    "reversed",
    "round",
    "set",
    "slice",
    "sorted",
    "str",
    "sum",
    "tuple",
    "zip",
]

_CLASSES: tuple[type, ...] = (
    collections.OrderedDict, collections.Counter, collections.defaultdict, collections.deque, collections.ChainMap,
    collections.UserDict, collections.UserList, collections.UserString, datetime.date, datetime.datetime, datetime.time,
    datetime.timedelta, datetime.timezone, datetime.tzinfo, decimal.Decimal, fractions.Fraction, uuid.UUID,
    pathlib.PurePath, pathlib.PurePosixPath, pathlib.PureWindowsPath, pathlib.Path, pathlib.PosixPath, re.Pattern,
    re.Match,
    enum.Enum, enum.IntEnum, enum.Flag, enum.IntFlag, enum.StrEnum, abc.ABC, types.SimpleNamespace, types.NoneType,
    types.EllipsisType, types.NotImplementedType, types.MappingProxyType, types.GeneratorType, types.CoroutineType,
    types.ModuleType, types.FunctionType, types.MethodType, types.BuiltinFunctionType, type, object, property, super,
    staticmethod, classmethod,
)  # fmt: skip

# Calling these with what the product chose could build code or change an object: names, never callables.
_NEVER_CALLED = (types.FunctionType, types.MethodType, types.ModuleType)


def _safe() -> dict[tuple[str, str], Any]:
    table: dict[tuple[str, str], Any] = {("builtins", name): getattr(builtins, name) for name in _PURE}
    for name, value in vars(builtins).items():
        if isinstance(value, type) and issubclass(value, BaseException):
            table["builtins", name] = value
    for kind in _CLASSES:
        if kind not in _NEVER_CALLED:
            table[kind.__module__, kind.__qualname__] = kind
    table["os", "environ"] = os.environ
    for module in (collections.abc, numbers):
        for name in module.__all__:
            kind = getattr(module, name)
            table[kind.__module__, kind.__qualname__] = kind
    for module in (math, operator):
        for name in getattr(module, "__all__", dir(module)):
            value = getattr(module, name)
            if isinstance(value, types.BuiltinFunctionType):
                table[value.__module__, value.__qualname__] = value
    return table


SAFE = _safe()
_NAMES = {id(value): key for key, value in SAFE.items()}


def named_as(value: Any, freely: bool = False) -> tuple[str, str] | None:
    """Module and name under which the other end has the very same thing. `freely`: functions of any kind, too."""
    safe = _NAMES.get(id(value))
    if safe is not None:
        return safe
    if isinstance(value, type):
        if freely or (issubclass(value, BaseException) and not _private(value.__qualname__)):
            return standard_name(value)
    elif freely and isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
        module = getattr(value, "__module__", None)
        if type(module) is str and _standard(module) and _found(module, value.__qualname__) is value:
            return module, value.__qualname__
    elif freely and isinstance(value, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        module = value.__objclass__.__module__
        if _standard(module) and _found(module, value.__qualname__) is value:
            return module, value.__qualname__
    return None


def standard_name(kind: type) -> tuple[str, str] | None:
    """Module and name of a class of the standard library."""
    module, name = kind.__module__, kind.__qualname__
    if type(module) is str and _standard(module) and _found(module, name) is kind:
        return module, name
    return None


def resolve(module: str, name: str, only_safe: bool) -> Any:
    """The thing of that name, or `LookupError`. With `only_safe` no more than the list and exception classes."""
    safe = SAFE.get((module, name))
    if safe is not None:
        return safe
    if not _standard(module):
        raise LookupError(f"{module}.{name}")
    # Loading some modules is running them: `unittest.__main__` and its like.
    if module not in sys.modules and not _private(module) and not _NEVER_LOADED.intersection(module.split(".")):
        with contextlib.suppress(Exception):
            importlib.import_module(module)
    found = _found(module, name)
    if found is None or (only_safe and not _may_be_raised(found, module, name)):
        raise LookupError(f"{module}.{name}")
    return found


def _may_be_raised(found: Any, module: str, name: str) -> bool:
    """Public exception classes of the standard library, under their own names."""
    return (
        isinstance(found, type)
        and issubclass(found, BaseException)
        and not _private(name)
        and standard_name(found) == (module, name)
    )


def _private(name: str) -> bool:
    """Exceptions that the standard library raises to itself: unittest takes its own `_ShouldStop` for a test that is
    over."""
    return any(part.startswith("_") for part in name.split("."))


def _standard(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


def is_standard(module: Any) -> bool:
    """Whether this is the name of a module of the standard library, and not of one that anybody may write."""
    return type(module) is str and _standard(module) and module != "__main__"


# What stood under a name before a test put something else there: the name still means the original.
_ORIGINALS: dict[tuple[str, str], Any] = {}


def patched(module: types.ModuleType, name: str) -> None:
    """A test is about to replace this; remember what it was."""
    if hasattr(module, name):
        _ORIGINALS.setdefault((module.__name__, name), getattr(module, name))


def _found(module: str, name: str) -> Any:
    original = _ORIGINALS.get((module, name))
    if original is not None:
        return original
    held = sys.modules.get(module)
    if name == "":
        return held
    for part in name.split("."):
        # A module's own `__getattr__` may warn of what it gives.
        held = vars(held).get(part) if type(held) is types.ModuleType else getattr(held, part, None)
    return held


_PARTS: tuple[tuple[type, Any], ...] = (
    (bool, bool), (int, int.__int__), (float, float.__float__), (complex, complex.__complex__), (str, str.__str__),
    (bytes, lambda v: bytes(memoryview(v))), (tuple, lambda v: tuple(tuple.__iter__(v))),
    (frozenset, lambda v: frozenset(frozenset.__iter__(v))),
    (datetime.datetime, lambda v: REAL.datetime(v.year, v.month, v.day, v.hour, v.minute, v.second, v.microsecond,
    v.tzinfo, fold=v.fold)),
    (datetime.date, lambda v: REAL.date(v.year, v.month, v.day)),
    (datetime.timedelta, lambda v: datetime.timedelta(v.days, v.seconds, v.microseconds)),
    (decimal.Decimal, lambda v: decimal.Decimal(decimal.Decimal.__str__(v))),
    (pathlib.PurePosixPath, lambda v: pathlib.PurePosixPath(pathlib.PurePosixPath.__str__(v))),
)  # fmt: skip


def plain_part(value: Any) -> Any:
    """The plain value inside an instance of a subclass of a value type; `VALUES` where there is none."""
    kind = type(value)
    for base, take in _PARTS:
        if issubclass(kind, base):
            known = "builtins", "datetime", "decimal", "pathlib"
            if _standard(kind.__module__) and kind.__module__ not in known and not _made_here(kind):
                return VALUES  # struct sequences and the like
            return take(value)
    return VALUES


def _made_here(kind: type) -> bool:
    """A class that the standard library made as it went, and that no name leads to."""
    return bool(kind.__flags__ & (1 << 9)) and standard_name(kind) is None


def value_base(kind: type) -> type | None:
    """The value type that a class derives from."""
    return next((base for base, _ in _PARTS if issubclass(kind, base)), None)

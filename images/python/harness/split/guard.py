"""What the product may ask of the oracle's objects: little, and every refusal is told.

Calls, iteration and a fixed list of protocol methods; attributes without an underscore of objects whose class a sealed
file defines, or of a few kinds from the standard library. Never a function's insides, a frame, code, a traceback, a
module, or another special name: from a callback's globals the whole oracle would be in reach.
"""

from __future__ import annotations

import argparse
import copy
import inspect
import logging
import random
import sys
import types
import unittest
import unittest.mock
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import asks, facts
from .codec import CodecError
from .encode import is_plain
from .mirror import SPECIALS, MirrorMeta
from .namespace import Given, Namespace, vars_of
from .ops import FRESH, Ops, special
from .stdlib import named_as

if TYPE_CHECKING:
    from .connect import Connection

_FUNCTION_FACTS = ("__name__", "__qualname__", "__doc__", "__module__")
_NO_FACTS = (
    "__wrapped__",
    "__dict__",
    "__defaults__",
    "__kwdefaults__",
    "__annotations__",
    "__type_params__",
    "__isabstractmethod__",
)
_NEVER = frozenset(
    ("__dict__", "__class__", "__module__", "__weakref__", "__reduce__", "__reduce_ex__", "__getattribute__",
     "__init_subclass__", "__subclasses__", "__mro__", "__bases__", "__base__", "__globals__", "__code__",
     "__closure__", "__func__", "__self__", "__builtins__", "__loader__", "__spec__", "__file__", "__path__",
     "__annotations__", "__static_attributes__", "__init__", "__new__", "__post_init__", "__del__", "__set_name__",
     "__getattr__", "__setattr__", "__delattr__")
)  # fmt: skip
_NOT_SERVED = frozenset(
    ("__call__", "__instancecheck__", "__subclasscheck__", "__get__", "__set__", "__delete__", "__set_name__",
     "__dir__", "__sizeof__", "__copy__", "__deepcopy__")
)  # fmt: skip
_INSIDES = (
    types.FrameType, types.CodeType, types.TracebackType, types.ModuleType, types.CellType, types.MethodDescriptorType,
)  # fmt: skip
_BAGS = (argparse.Namespace, types.SimpleNamespace, logging.LogRecord)
_RUNNING = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
_RUNNING_NAMES = frozenset(("send", "throw", "close", "asend", "athrow", "aclose"))
_KNOWN = frozenset(
    ("io", "_io", "random", "_random", "threading", "_thread", "queue", "_queue", "collections", "datetime",
     "unittest.mock", "types", "tempfile", "pathlib", "pathlib._local", "array", "itertools", "functools", "re",
     "decimal", "fractions", "enum", "contextlib", "asyncio.locks", "asyncio.queues", "asyncio.events",
     "asyncio.futures", "_asyncio", "asyncio.tasks", "concurrent.futures._base", "argparse", "configparser", "csv",
     "_csv", "json.encoder", "json.decoder", "xml.etree.ElementTree", "ipaddress", "numbers", "builtins",
     "http.cookies", "email.message", "locale", "codecs", "encodings.utf_8", "weakref", "ast", "zoneinfo",
     "textwrap", "struct", "_struct", "statistics", "heapq", "calendar", "time", "operator", "typing",
     "_collections_abc", "collections.abc")
)  # fmt: skip
# Of objects that are open otherwise: what shows stacks, and what fills in templates that the product may choose.
_CLOSED = frozenset(("get_stack", "print_stack", "format", "format_map"))
# Classes that judge: what they hold is what a test expects.
_JUDGES = frozenset(("_pytest", "pytest", "pluggy", "hypothesis", "tribunal_harness", "harness"))
_OF_ANY = frozenset(("__hash__", "__eq__", "__ne__", "__bool__", "__repr__", "__str__", "__format__"))
_TEXTS = ("__repr__", "__str__", "__format__")
_FORMATTED = ("message", "asctime", "exc_text")  # what a formatter leaves on the record that it was given
_MOCK_OWN = frozenset(
    ("call_args", "call_args_list", "call_count", "called", "mock_calls", "method_calls", "mock_add_spec",
     "configure_mock", "reset_mock", "attach_mock", "side_effect", "return_value")
)  # fmt: skip


class Guard:
    """Serves the product. `tamper` is told of every refusal of something that is there."""

    def __init__(
        self, connection: Connection, sealed: Callable[[Any], bool], tamper: Callable[[str, str], None]
    ) -> None:
        self._connection = connection
        self._sealed = sealed
        self._tamper = tamper
        self._sealed_modules: dict[str, bool] = {}
        self._mine = Given()
        self._table: dict[int, Callable[[Any], Any]] = {
            asks.CALL: self._call, asks.METHOD: self._method, asks.GETATTR: self._getattr, asks.SETATTR: self._setattr,
            asks.DELATTR: self._delattr, asks.SPECIAL: self._special, asks.COMPARE: self._compare,
            asks.ITER: self._iter,
            asks.CHUNK: self._chunk, asks.FACTS: self._facts, asks.INSTANCE: self._instance,
            asks.SUBCLASSCHECK: self._subclass,
            asks.STEP: self._step, asks.SIGNATURE: self._signature, asks.DIR: self._dir,
            asks.COPY: self._copy(copy.copy),
            asks.DEEPCOPY: self._copy(copy.deepcopy), asks.FIELDS: self._fields,
            asks.SCHEDULE: self._schedule, asks.CANCEL: connection.loops.cancel,
        }  # fmt: skip

    def serve(self, op: int, value: Any) -> Any:
        action = self._table.get(op)
        if action is None:
            raise TypeError("the oracle's objects are not pickled, derived from or imported")
        return action(value)

    def _refuse(self, what: str, error: type[Exception]) -> None:
        self._tamper("refused", what)
        raise error(f"the oracle does not give {what}")

    # -- whose ----------------------------------------------------------------------------------------------------

    def of_sealed(self, kind: type) -> bool:
        """Whether a sealed file defines this class."""
        module = kind.__module__
        known = self._sealed_modules.get(module) if type(module) is str else False
        if known is None:
            held = sys.modules.get(module)
            known = held is not None and self._sealed(getattr(held, "__file__", None))
            self._sealed_modules[module] = known
        return bool(known) or isinstance(kind, MirrorMeta)

    def _is_open(self, kind: type) -> bool:
        return (
            self.of_sealed(kind)
            or kind.__module__ in _KNOWN
            or kind is Namespace
            or kind is logging.LogRecord
            or self._connection.is_dependency(kind)
        )

    def _checked(self, target: Any) -> Any:
        if isinstance(target, _INSIDES):
            self._refuse(f"the insides of a {type(target).__name__}", AttributeError)
        return target

    def _ours(self, target: Any) -> Any:
        """Only what was sent as an object is asked about; of plain values the product has copies, of what has a name
        its own."""
        if not self._connection.exports.holds(target):
            raise CodecError("a question about what is no object of the oracle's")
        if self._connection.exports.is_blind(target) and not self._connection.claims.asking():
            self._tamper("refused", f"a look into a {type(target).__name__} that is only compared")
        return target

    # -- requests -------------------------------------------------------------------------------------------------

    def _call(self, value: Any) -> Any:
        function, args, kwargs = self._three(value)
        self._checked(self._ours(function))
        if isinstance(function, type) and not self.of_sealed(function) and not issubclass(function, BaseException):
            self._refuse(f"a call of the class {function.__qualname__}", TypeError)
        return function(*args, **kwargs)

    @staticmethod
    def _three(value: Any) -> tuple[Any, Any, Any]:
        if type(value) is not tuple or len(value) != 3 or type(value[1]) is not tuple:
            raise CodecError("a call has a function and arguments")
        return value[0], value[1], _keywords(value[2])

    def _method(self, value: Any) -> Any:
        if type(value) is not tuple or len(value) != 4 or type(value[2]) is not tuple:
            raise CodecError("a call has a function and arguments")
        target, name, args, kwargs = value
        return self._getattr((target, name))(*args, **_keywords(kwargs))

    def _named(self, value: Any, count: int) -> Any:
        if type(value) is not tuple or len(value) != count or type(value[1]) is not str:
            raise CodecError("an attribute has a name")
        return value

    def _getattr(self, value: Any) -> Any:
        target, name = self._named(value, 2)
        if type(target) is types.ModuleType and name in ("__name__", "__doc__"):
            return str(getattr(target, name))
        self._checked(self._ours(target))
        if isinstance(target, random.Random) and name in ("seed", "setstate"):
            self._tamper("changed", "a generator that a test gave away")
        if isinstance(target, (types.FunctionType, types.BuiltinFunctionType, types.MethodType)):
            return self._function(target, name)
        kind = target if isinstance(target, type) else type(target)
        if isinstance(target, BaseException):
            if name.startswith("_"):
                self._refuse(f"{name} of an exception", AttributeError)
            return getattr(target, name)
        if name.startswith("_"):
            if self._mine.has(target, name):
                return getattr(target, name)
            if name == "__dict__" and (self.of_sealed(kind) or kind in _BAGS) and isinstance(vars_of(target), dict):
                return Namespace(self, target)
            if name in _FUNCTION_FACTS and isinstance(target, type):
                return getattr(target, name)
            if self.of_sealed(kind) and self._written(kind, name) and hasattr(target, name):
                return self._given(getattr(target, name), name, kind)
            if not hasattr(target, name):
                raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
            if name in ("__doc__", "__module__") and type(held := getattr(target, name)) in (str, type(None)):
                return held
            if name in ("__wrapped__", "__isabstractmethod__", "__name__", "__qualname__"):
                raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
            self._refuse(f"{name} of a {kind.__name__}", AttributeError)
        if isinstance(target, _RUNNING):
            if name in _RUNNING_NAMES:
                return getattr(target, name)
            self._refuse(f"{name} of a {kind.__name__}", AttributeError)
        if name in _CLOSED and not self._written_here(kind, name):
            self._refuse(f"{name} of a {kind.__name__}", AttributeError)
        if kind.__module__ == "unittest.mock" and (name in _MOCK_OWN or name.startswith("assert")):
            self._refuse(f"{name} of a mock", AttributeError)
        if not self._is_open(kind):
            if not hasattr(target, name):
                raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
            self._refuse(f"{name} of a {kind.__name__}", AttributeError)
        if isinstance(target, type) and not any(name in vars(part) for part in target.__mro__):
            if not hasattr(target, name):
                raise AttributeError(f"type object {kind.__name__!r} has no attribute {name!r}")
            self._refuse(f"{name} of a class", AttributeError)
        return self._given(getattr(target, name), name, kind)

    def _written(self, kind: type, name: str) -> bool:
        """Whether a sealed class body writes this special name itself."""
        if not (name.startswith("__") and name.endswith("__")) or name in _NEVER:
            return False
        return any(name in vars(part) for part in kind.__mro__ if self.of_sealed(part))

    def _written_here(self, kind: type, name: str) -> bool:
        """Whether a sealed class body writes this name itself."""
        return any(name in vars(part) for part in kind.__mro__ if self.of_sealed(part))

    def _given(self, found: Any, name: str, kind: type) -> Any:
        if isinstance(found, _INSIDES):
            self._refuse(f"{name} of a {kind.__name__}", AttributeError)
        return found

    def _function(self, target: Any, name: str) -> Any:
        if self._mine.has(target, name):
            return getattr(target, name)
        if name in _FUNCTION_FACTS:
            held = getattr(target, name, None)
            return held if type(held) is str else None
        if name in _NO_FACTS or not hasattr(target, name):
            if name == "__dict__":
                return {}
            raise AttributeError(f"'function' object has no attribute {name!r}")
        if not name.startswith("_") and not isinstance(target, types.BuiltinFunctionType):
            return self._given(getattr(target, name), name, type(target))
        self._refuse(f"{name} of a function", AttributeError)
        return None

    def _setattr(self, value: Any) -> None:
        target, name, content = self._named(value, 3)
        kind = type(self._ours(target))
        if self._is_markable(target, name):
            self._mine.add(target, name)
            setattr(target, name, content)
            return
        if self.of_sealed(kind) and not isinstance(target, (type, BaseException)) and self.may_put(target, name):
            self._mine.add(target, name)
            setattr(target, name, content)
            return
        method = kind.__module__ == "unittest.mock" and (name in _MOCK_OWN or name.startswith("assert"))
        method = method or any(callable(vars(part).get(name)) for part in kind.__mro__)
        allowed = (
            self.of_sealed(kind) or isinstance(target, types.SimpleNamespace) or kind.__module__ == "unittest.mock"
        )
        allowed = allowed or (kind is logging.LogRecord and name in _FORMATTED)
        if (
            name.startswith("_")
            or isinstance(target, (type, BaseException, unittest.TestCase))
            or method
            or not allowed
        ):
            self._refuse(f"setting {name} of a {kind.__name__}", AttributeError)
        if hasattr(target, name) and kind.__module__ != "unittest.mock" and not self._is_still(target, name, content):
            self._connection.overwritten(target)
        setattr(target, name, content)

    @staticmethod
    def _is_still(target: Any, name: str, content: Any) -> bool:
        held = getattr(target, name)
        return held is content or (type(held) is type(content) and is_plain(held) and bool(held == content))

    def _is_markable(self, target: Any, name: str) -> bool:
        """A decorator of the product's leaves a mark on a sealed function: not on a case, nor one that others read."""
        if type(target) is not types.FunctionType or not _is_mark(name):
            return False
        is_case = target.__name__.startswith("test") and "<locals>" not in target.__qualname__
        free = name not in vars(target) or self._mine.has(target, name)
        return not is_case and free and self._sealed(target.__code__.co_filename)

    def may_put(self, target: Any, name: str) -> bool:
        """What the product may add to an object of a sealed class: names that nobody but itself has given it."""
        if (name.startswith("__") and name.endswith("__")) or not isinstance(vars_of(target), dict):
            return False
        if self._mine.has(target, name):
            return True
        held = next((vars(part)[name] for part in type(target).__mro__ if name in vars(part)), None)
        if held is not None:
            return isinstance(type(held), MirrorMeta) and name not in vars_of(target)
        return name.startswith("_") and name not in vars_of(target)

    def put_by_product(self, target: Any, name: str) -> bool:
        return self._mine.has(target, name)

    def put(self, target: Any, name: Any, content: Any) -> None:
        """Into the object's own dictionary, past what its class makes of the name."""
        if type(name) is not str or not (self.may_put(target, name) or self._is_data(target, name)):
            self._refuse(f"setting {str(name)[:80]} of a {type(target).__name__}", AttributeError)
        if name not in vars_of(target):
            self._mine.add(target, name)
        vars_of(target)[name] = content

    def take(self, target: Any, name: str) -> None:
        if not (self._mine.has(target, name) or self._is_data(target, name)):
            self._refuse(f"deleting {name} of a {type(target).__name__}", AttributeError)
        self._mine.drop(target, name)
        del vars_of(target)[name]

    @staticmethod
    def _is_data(target: Any, name: str) -> bool:
        return not name.startswith("_") and not any(name in vars(part) for part in type(target).__mro__)

    def _delattr(self, value: Any) -> None:
        target, name = self._named(value, 2)
        if self._mine.has(target, name):
            self._mine.drop(target, name)
            delattr(target, name)
            return
        if name.startswith("_") or isinstance(target, type) or not self.of_sealed(type(target)):
            self._refuse(f"deleting {name} of a {type(target).__name__}", AttributeError)
        delattr(target, name)

    def _special(self, value: Any) -> Any:
        if (
            type(value) is not tuple
            or len(value) != 2
            or type(value[0]) is not str
            or type(value[1]) is not tuple
            or not value[1]
        ):
            raise CodecError("a special method has a name and arguments")
        name, args = value
        double = name in ("__get__", "__set__") and isinstance(args[0], unittest.mock.PropertyMock)
        if (name not in SPECIALS or name in _NOT_SERVED) and not double:
            self._refuse(f"{name[:40]} of a {type(args[0]).__name__}", TypeError)
        target = self._checked(self._ours(args[0]))
        if _of_judge(type(target)):
            if name in _TEXTS:
                return f"<{type(target).__name__}>"
            if name not in _OF_ANY:
                self._refuse(f"{name} of a {type(target).__name__}", TypeError)
        return special(name, args)

    def _compare(self, value: Any) -> Any:
        if (
            type(value) is not tuple
            or len(value) != 3
            or value[0] not in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
        ):
            raise CodecError("a comparison has a name and two sides")
        name, left, right = value
        self._ours(left)
        method = getattr(type(left), name, None)
        return NotImplemented if method is None else method(left, right)

    def _iter(self, value: Any) -> Any:
        if _of_judge(type(self._checked(self._ours(value)))):
            self._refuse(f"what is in a {type(value).__name__}", TypeError)
        iterator = iter(value)
        return Ops._chunk(iterator) if iterator is not value and type(iterator) in FRESH else ((), iterator)

    def _chunk(self, value: Any) -> Any:
        return Ops._chunk(self._ours(value))

    def _step(self, value: Any) -> Any:
        if type(value) is not tuple or len(value) != 3 or type(value[0]) is not types.GeneratorType:
            raise CodecError("a step is a generator's")
        self._ours(value[0])
        return Ops._step(value)

    def _schedule(self, value: Any) -> Any:
        if type(value) is not tuple or len(value) != 4 or value[1] not in ("await", "asend", "athrow", "aclose"):
            raise CodecError("something is scheduled to an end")
        self._checked(value[0])
        return self._connection.loops.schedule(value)

    def _facts(self, number: Any) -> Any:
        kind = self._connection.ours(number) if type(number) is int else None
        if not isinstance(kind, type):
            raise CodecError("facts are of classes")
        told = facts.describe(kind)
        told["doc"] = None
        if self.of_sealed(kind):
            told["functions"] = {n: f for n, f in told["functions"].items() if n in SPECIALS or not n.startswith("_")}
        else:
            told["functions"] = {}
            names = {name for part in kind.__mro__[:-1] for name in vars(part)}
            told["specials"] = tuple(sorted(n for n in names if n in SPECIALS))
        if self._connection.is_dependency(kind):
            told["dependency"] = kind.__module__, kind.__qualname__
        if "namedtuple" in told:
            told["namedtuple"] = (told["namedtuple"][0], ())
        told["bases"] = tuple(b for b in told["bases"] if self._is_open(b) or named_as(b, True) is not None)
        return told

    def _fields(self, kind: Any) -> Any:
        if not isinstance(kind, type) or not self.of_sealed(kind):
            self._refuse("the fields of a class", AttributeError)
        return tuple((name, None, init, compare, ()) for name, _, init, compare, _ in facts.fields(kind))

    @staticmethod
    def _instance(value: Any) -> bool:
        return isinstance(*value)

    @staticmethod
    def _subclass(value: Any) -> bool:
        return issubclass(*value)

    @staticmethod
    def _signature(value: Any) -> Any:
        """Names and kinds; a default is there or not, and only the plainest is told."""
        function, name = value
        if name:
            return (
                facts.signature(function, name)
                if name in ("co_argcount", "co_varnames", "co_name", "co_posonlyargcount", "co_kwonlyargcount")
                else None
            )
        parts = facts.signature(function, "")
        if parts is None:
            return None
        plain = (type(None), bool)
        return tuple((n, k, has, d if type(d) in plain else ...) for n, k, has, d in parts)

    def _dir(self, target: Any) -> Any:
        if isinstance(target, (types.ModuleType, type(inspect))) or not self._is_open(
            target if isinstance(target, type) else type(target)
        ):
            self._refuse("the names of an object", TypeError)
        return [name for name in dir(target) if not name.startswith("_")]

    def _copy(self, how: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def serve(target: Any) -> Any:
            if not self._is_open(type(target)):
                self._refuse(f"a copy of a {type(target).__name__}", TypeError)
            return how(target)

        return serve


def _is_mark(name: str) -> bool:
    """A name that only the product's own decorators give a meaning: `pattern`, `__click_params__`."""
    plain = name.removeprefix("__").removesuffix("__") if name.startswith("__") and name.endswith("__") else name
    if plain.startswith(("_", "pytest", "hypothesis", "is_hypothesis", "unittest", "tribunal", "test")):
        return False
    return plain == name or ("_" in plain and not hasattr(types.FunctionType, name))


def _of_judge(kind: type) -> bool:
    """Whether it is a class of pytest's, Hypothesis's or the harness's own."""
    if kind is Namespace:
        return False
    return str(kind.__module__).partition(".")[0] in _JUDGES


def _keywords(pairs: Any) -> dict[str, Any]:
    if type(pairs) is not tuple or not all(type(p) is tuple and len(p) == 2 and type(p[0]) is str for p in pairs):
        raise CodecError("keywords are pairs")
    return dict(pairs)

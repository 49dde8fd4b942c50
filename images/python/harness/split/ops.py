"""What the product's end does when it is asked: everything, on its own objects. It runs with the product, untrusted."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import math
import operator
import os
import pickle
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import asks, facts
from .codec import CodecError
from .patches import Originals
from .stdlib import patched

if TYPE_CHECKING:
    from .peer import Peer

CHUNK = 256
_SAMPLES: tuple[Any, ...] = ([], (), {}, {}.values(), {}.items(), set(), "", b"", bytearray(), range(0), range(1 << 70))
FRESH = (*(type(iter(sample)) for sample in _SAMPLES), type(reversed([])), type(reversed({})))

_BUILT_IN: dict[str, Callable[..., Any]] = {
    "__repr__": repr, "__str__": str, "__format__": format, "__bool__": bool, "__len__": len, "__hash__": hash,
    "__iter__": iter, "__next__": next, "__int__": int, "__float__": float, "__complex__": complex, "__bytes__": bytes,
    "__index__": operator.index, "__abs__": abs, "__round__": round, "__trunc__": math.trunc, "__floor__": math.floor,
    "__ceil__": math.ceil, "__reversed__": reversed, "__contains__": operator.contains, "__fspath__": os.fspath,
    "__neg__": operator.neg, "__pos__": operator.pos, "__invert__": operator.invert, "__getitem__": operator.getitem,
    "__setitem__": operator.setitem, "__delitem__": operator.delitem, "__length_hint__": operator.length_hint,
}  # fmt: skip


def special(name: str, args: tuple[Any, ...]) -> Any:
    """A special method, as the language calls it. Binary ones say `NotImplemented` for themselves."""
    function = _BUILT_IN.get(name)
    if function is not None:
        return function(*args)
    target = args[0]
    kind = type(target)
    for part in kind.__mro__:
        if name in vars(part):
            found = vars(part)[name]
            bind = getattr(type(found), "__get__", None)
            method = found if bind is None else bind(found, target, kind)
            return method(*args[1:])
    raise TypeError(f"{kind.__name__!r} object has no {name}")


def _member(kind: str, item: Any) -> Any:
    """What stands in a class, made of its parts."""
    if kind == "property":
        return property(*item)
    made: Any = {"static": staticmethod, "class": classmethod}.get(kind)
    return item if made is None else made(item)


class Ops:
    """The table of what is served."""

    def __init__(self, peer: Peer, drawn: Callable[[], bool]) -> None:
        self._peer = peer
        originals = Originals()
        self._table: dict[int, Callable[[Any], Any]] = {
            asks.CALL: self._call, asks.METHOD: self._method, asks.GETATTR: self._getattr, asks.SETATTR: self._setattr,
            asks.DELATTR: lambda v: delattr(*v), asks.SPECIAL: lambda v: special(*v), asks.COMPARE: self._compare,
            asks.ITER: self._iter, asks.CHUNK: self._chunk, asks.FACTS: self._facts, asks.SUBCLASS: self._subclass,
            asks.INSTANCE: lambda v: isinstance(*v), asks.SUBCLASSCHECK: lambda v: issubclass(*v), asks.DIR: dir,
            asks.STEP: self._step, asks.COPY: copy.copy, asks.DEEPCOPY: copy.deepcopy, asks.DUMP: pickle.dumps,
            asks.LOAD: self._load, asks.FIELDS: facts.fields, asks.SIGNATURE: lambda v: facts.signature(*v),
            asks.MEMBERS: facts.members, asks.FIND: self._find, asks.IMPORT: self._import,
            asks.RELOAD: importlib.reload, asks.LOOKUP: self._lookup, asks.DRAWN: lambda _: drawn(),
            asks.KEEP: originals.keep, asks.RESTORE: originals.restore,
            asks.PUT: lambda v: setattr(v[0], v[1], _member(*v[2])),
            asks.SCHEDULE: peer.loops.schedule, asks.CANCEL: peer.loops.cancel, asks.INSIDE: self._inside,
        }  # fmt: skip

    def serve(self, op: int, value: Any) -> Any:
        action = self._table.get(op)
        if action is None:
            raise CodecError("a request of no kind")
        return action(value)

    def _inside(self, value: Any) -> Any:
        op, value = value
        return self._peer.loops.inside(lambda: self.serve(op, value))

    @staticmethod
    def _call(value: Any) -> Any:
        function, args, kwargs = value
        return function(*args, **dict(kwargs))

    @staticmethod
    def _method(value: Any) -> Any:
        target, name, args, kwargs = value
        return getattr(target, name)(*args, **dict(kwargs))

    @staticmethod
    def _getattr(value: Any) -> Any:
        target, name = value
        found = getattr(target, name)
        if name == "__dict__" and isinstance(target, (types.ModuleType, type)):
            return {key: item for key, item in found.items() if key != "__builtins__"}
        return found

    def _lookup(self, value: Any) -> Any:
        module, name = value
        found = getattr(module, name)
        return found, self._peer.told.keep(module, name, found)

    @staticmethod
    def _setattr(value: Any) -> None:
        target, name, content = value
        if type(target) is types.ModuleType:
            patched(target, name)
        setattr(target, name, content)

    @staticmethod
    def _compare(value: Any) -> Any:
        name, left, right = value
        method = getattr(type(left), name, None)
        return NotImplemented if method is None else method(left, right)

    def _iter(self, value: Any) -> Any:
        iterator = iter(value)
        # Of an iterator that others hold, too, nothing is taken before it is wanted.
        return self._chunk(iterator) if iterator is not value and type(iterator) in FRESH else ((), iterator)

    @staticmethod
    def _chunk(iterator: Any) -> Any:
        items = []
        for item in iterator:
            items.append(item)
            if len(items) == CHUNK:
                return tuple(items), iterator
        return tuple(items), None

    def _facts(self, number: int) -> Any:
        kind = self._peer.ours(number)
        if not isinstance(kind, type):
            raise CodecError("facts are of classes")
        return self._peer.describe(kind)

    @staticmethod
    def _step(value: Any) -> Any:
        generator, action, argument = value
        try:
            if action == "send":
                return True, generator.send(argument)
            if action == "throw":
                return True, generator.throw(argument)
            generator.close()
        except StopIteration as stop:
            return False, stop.value
        return False, None

    @staticmethod
    def _load(data: bytes) -> Any:
        return pickle.loads(data)  # noqa: S301  bytes that this very process made

    def _subclass(self, value: Any) -> Any:
        name, bases, module, qualname, members, keywords = value
        body = {"__module__": module, "__qualname__": qualname}
        body |= {key: _member(*parts) for key, parts in members.items()}
        resolved = types.resolve_bases(bases)
        made = types.new_class(name, resolved, keywords, lambda space: space.update(body))
        own = vars(made)
        return self._peer.exports.number(made), tuple(key for key in members if own.get(key) is not body[key])

    @staticmethod
    def _find(value: Any) -> Any:
        """What a name is here: `package`, `module`, or nothing."""
        name, paths = value
        for path in paths:
            if path not in sys.path:
                sys.path.append(path)
        loaded = sys.modules.get(name)
        spec = getattr(loaded, "__spec__", None) if loaded is not None else importlib.util.find_spec(name)
        if spec is None:
            return None
        if spec.submodule_search_locations is not None:
            return "package", spec.origin, tuple(str(p) for p in spec.submodule_search_locations)
        return "module", spec.origin, ()

    @staticmethod
    def _import(name: Any) -> Any:
        if type(name) is not tuple:
            return importlib.import_module(name)
        name, path = name
        known = sys.modules.get(name)
        spec = known.__spec__ if known is not None else _found(name)
        if spec is not None and spec.origin == path:
            return importlib.import_module(name)
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"no module at {path}")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


def _found(name: str) -> Any:
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None

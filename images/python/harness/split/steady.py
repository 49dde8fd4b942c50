"""Names of modules that the oracle need not ask for again: functions and classes, until they mean something else.

The product's end remembers what it told and looks, before each of its frames, whether a name means another object now;
the frame that may tell of the change says so, and the oracle asks anew. So a call of a module's function is one request
and `product.f` is never older than the last word of the product. Nothing is kept while a thread of the product's own
may rebind what it likes. What a product that lies makes of it is what it could answer anyway.
"""

from __future__ import annotations

import _thread
import functools
import operator
import sys
import types
from typing import Any

MOST = 32
_is = operator.is_
_MODULE = types.ModuleType
_KINDS = (types.FunctionType, types.BuiltinFunctionType, _MODULE, type(functools.cache(lambda: None)))


class Told:
    """The product's side."""

    def __init__(self) -> None:
        # Threads that serve the oracle, the first one left out; a fork goes on counting those that it left behind.
        self.serving = _thread._count() - (len(sys._current_frames()) - 1)
        self._full = False
        self._modules: dict[int, Any] = {}
        self._namespaces: list[dict[str, Any]] = []
        self._names: list[str] = []
        self._values: list[Any] = []

    def keep(self, module: Any, name: str, found: Any) -> bool:
        """Whether the oracle may remember what a name of a module means."""
        if type(module) is not _MODULE or not (type(found) in _KINDS or isinstance(found, type)):
            return False
        namespace = vars(module)
        if name.startswith("__") or namespace.get(name) is not found or _thread._count() > self.serving:
            return False
        if len(self._names) >= MOST:
            self._full = True
            return False
        self._modules[id(module)] = module
        self._namespaces.append(namespace)
        self._names.append(name)
        self._values.append(found)
        return True

    def moved(self) -> bool:
        """Whether any of it means something else by now, or may at any moment: all of it is to be asked for anew."""
        if not self._names:
            return False
        same = not self._full and all(map(_is, map(dict.get, self._namespaces, self._names), self._values))
        if same and _thread._count() <= self.serving and set(map(type, self._modules.values())) == {_MODULE}:
            return False
        self._full = False
        self._modules.clear()
        for each in (self._namespaces, self._names, self._values):
            each.clear()
        return True


class Remembered:
    """The oracle's side: what stands in the dictionaries of mirrored modules."""

    def __init__(self) -> None:
        self.changes = 0
        self.usable = True  # not while several threads of the tests speak to the product
        self._held: list[tuple[dict[str, Any], str, Any]] = []

    def put(self, own: dict[str, Any], name: str, value: Any) -> None:
        own[name] = value
        self._held.append((own, name, value))

    def drop(self) -> None:
        self.changes += 1
        for own, name, value in self._held:
            if own.get(name) is value:
                del own[name]
        self._held.clear()

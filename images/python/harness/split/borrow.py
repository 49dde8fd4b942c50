"""Test cases of unittest that derive from a class of the product's: they stay the oracle's own.

Elsewhere a class that derives from a mirrored one gets a twin in the product, and its instances live there. A test case
that lived there would be run there, and judge itself. So the class is a plain one here, and what it inherits from the
product's are functions that are called over there with the case as a handle.
"""

from __future__ import annotations

import unittest
from typing import Any

from . import asks, mirror


def is_case(bases: tuple[Any, ...]) -> bool:
    """Whether a class with these bases is a test case, here or where the product defines them."""
    return any(_of_unittest(part) for base in bases for part in (*_parts(base), base))


def _parts(base: Any) -> list[Any]:
    """Every base of a mirrored class as its original has it, real ones too."""
    if not isinstance(base, mirror.MirrorMeta):
        return []
    return [
        item for part in base.__mro__ if isinstance(part, mirror.MirrorMeta) for item in part._t_facts.get("bases", ())
    ]


def _of_unittest(kind: Any) -> bool:
    return isinstance(kind, type) and not isinstance(kind, mirror.MirrorMeta) and issubclass(kind, unittest.TestCase)


def case(peer: Any, name: str, bases: tuple[Any, ...], body: dict[str, Any], more: dict[str, Any]) -> Any:
    """The class of the test case."""
    local = [_borrowed(peer, base) if isinstance(base, mirror.MirrorMeta) else base for base in bases]
    if not any(_of_unittest(base) for base in local):
        local.append(unittest.TestCase)
    metaclass = type(local[0]) if len({type(base) for base in local}) == 1 else type
    return metaclass(name, tuple(local), dict(body), **more)


def _borrowed(peer: Any, base: Any) -> Any:
    held = _KEPT.get(base)
    if held is None:
        own: dict[str, Any] = {
            "__module__": base.__module__,
            "__qualname__": base.__qualname__,
            "__doc__": base.__doc__,
        }
        for part in reversed(base.__mro__):
            if isinstance(part, mirror.MirrorMeta) and "_t_local" not in part.__dict__:
                functions = part._t_facts["functions"]
                own.update({key: item for key, item in functions.items() if not _is_own(key)})
                for key, kind, parts in peer.request(asks.MEMBERS, part):
                    if not _is_own(key):
                        own[key] = _MADE[kind](parts)
        own["__getattr__"] = lambda self, key: _asked(peer, base, key)
        held = _KEPT[base] = type(base.__name__, (), own)
    return held


def _is_own(key: str) -> bool:
    """What the language or unittest gives a test case stays that: a product's `assertEqual` would decide for it."""
    return (key.startswith("__") and key.endswith("__")) or (hasattr(unittest.TestCase, key) and key not in _PREPARING)


def _asked(peer: Any, base: Any, key: str) -> Any:
    if key.startswith("_"):
        raise AttributeError(key)
    return peer.request(asks.GETATTR, (base, key))


_PREPARING = ("setUp", "tearDown", "setUpClass", "tearDownClass", "asyncSetUp", "asyncTearDown")
_MADE: dict[str, Any] = {"class": classmethod, "static": staticmethod, "property": lambda parts: property(*parts)}
_KEPT: dict[Any, Any] = {}

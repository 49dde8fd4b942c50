"""The `__dict__` of an object of a sealed class, as far as the product may see and change it.

It sees the names without an underscore and those that it put there itself; it adds names that nobody else has given.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .guard import Guard


def vars_of(target: Any) -> Any:
    """The instance's own dictionary; None for classes and for objects without one."""
    if isinstance(target, type):
        return None
    try:
        return object.__getattribute__(target, "__dict__")
    except AttributeError:
        return None


class Given:
    """Which names of which objects the product has put there. Holds the objects: an address means one of them only."""

    def __init__(self) -> None:
        self._names: dict[int, tuple[Any, set[str]]] = {}

    def add(self, target: Any, name: str) -> None:
        self._names.setdefault(id(target), (target, set()))[1].add(name)

    def has(self, target: Any, name: str) -> bool:
        held = self._names.get(id(target))
        return held is not None and name in held[1]

    def clear(self) -> None:
        self._names.clear()

    def drop(self, target: Any, name: str) -> None:
        if id(target) in self._names:
            self._names[id(target)][1].discard(name)


class Namespace(MutableMapping[str, Any]):
    def __init__(self, guard: Guard, target: Any) -> None:
        self._guard, self._target = guard, target

    def _sees(self, name: Any) -> bool:
        return type(name) is str and (not name.startswith("_") or self._guard.put_by_product(self._target, name))

    def __getitem__(self, name: str) -> Any:
        if not self._sees(name):
            raise KeyError(name)
        return vars_of(self._target)[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._guard.put(self._target, name, value)

    def __delitem__(self, name: str) -> None:
        if name not in vars_of(self._target) or not self._sees(name):
            raise KeyError(name)
        self._guard.take(self._target, name)

    def __iter__(self) -> Iterator[str]:
        return iter([name for name in vars_of(self._target) if self._sees(name)])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return repr(dict(self))

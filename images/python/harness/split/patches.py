"""Attributes of the product's classes that a test replaces and puts back.

What stands in the mirror of a class (a forwarding method, nothing at all for a property or a constant) is not what
stands in the class. So the product's end keeps the original of a name that a test sets or deletes, and where the test
puts back what it had found, or an undo finds that there was nothing, the original returns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import asks

if TYPE_CHECKING:
    from .peer import Peer

_NOTHING = object()


class Patches:
    """The oracle's side: what a mirror held under a name before a test touched it."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._found: dict[tuple[int, str], tuple[Any, Any, Any]] = {}
        self._open: set[tuple[int, str]] = set()

    def touch(self, cls: Any, name: str) -> None:
        """Before a name is set or deleted."""
        key = id(cls), name
        if key not in self._open:
            self._peer.request(asks.KEEP, (cls, name))
            held = vars(cls).get(name, _NOTHING), cls._t_facts["functions"].get(name, _NOTHING)
            self._found[key] = cls, *held
            self._open.add(key)

    def is_original(self, cls: Any, name: str, value: Any) -> bool:
        found = self._found.get((id(cls), name))
        return found is not None and found[1] is value

    def restore(self, cls: Any, name: str) -> bool:
        """Whether the name was touched; the original is back."""
        found = self._found.get((id(cls), name))
        if found is None:
            return False
        _, entry, function = found
        self._peer.request(asks.RESTORE, (cls, name))
        self._open.discard((id(cls), name))
        if entry is not _NOTHING:
            type.__setattr__(cls, name, entry)
        elif name in vars(cls):
            type.__delattr__(cls, name)
        functions = cls._t_facts["functions"]
        functions.pop(name, None)
        if function is not _NOTHING:
            functions[name] = function
        return True


class Originals:
    """The product's side."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, str], tuple[Any, Any]] = {}

    def keep(self, asked: tuple[Any, str]) -> None:
        cls, name = asked
        self._kept[id(cls), name] = cls, vars(cls).get(name, _NOTHING)

    def restore(self, asked: tuple[Any, str]) -> None:
        cls, name = asked
        _, original = self._kept[id(cls), name]
        if original is not _NOTHING:
            setattr(cls, name, original)
        elif name in vars(cls):
            delattr(cls, name)

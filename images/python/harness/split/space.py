"""Containers that both processes hold a copy of: lists, dicts, sets and their kin, by number.

Each end gives numbers to the containers that it sends first. What changed since the last frame travels at the head of
the next one, so a mutable argument is copied back and one that the other end kept stays the same object. Only the
newest few are followed; a large one is followed until its own call returns.
"""

from __future__ import annotations

import operator
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

from .arrays import is_array

FOLLOWED = 24
LARGE = 2_000

_is = operator.is_


class Space:
    """The shared containers of one link. The oracle's numbers are even, the product's odd; only the oracle forgets."""

    __slots__ = ("_next", "_numbers", "objects", "reading", "snapshots", "untold")

    def __init__(self, first: int) -> None:
        self._next = first
        self._numbers: dict[int, int] = {}
        self.untold: list[int] = []  # given up, and no frame that says so is on its way yet
        self.objects: dict[int, Any] = {}
        self.reading: set[int] = set()  # what frames bring that are not read to their end
        self.snapshots: dict[int, Any] = {}

    def number(self, value: Any) -> tuple[int, bool]:
        """The number of a container, and whether the other end knows it."""
        number = self._numbers.get(id(value))
        if number is not None:
            return number, True
        number = self._next
        self._next += 2
        self._numbers[id(value)] = number
        self.objects[number] = value
        return number, False

    def add(self, number: int, value: Any) -> None:
        """A container that the other end sent."""
        if number in self.objects or number & 1 == self._next & 1:
            raise ValueError("a container number that is taken")
        self._numbers[id(value)] = number
        self.objects[number] = value
        self.reading.add(number)

    def settle(self) -> None:
        """After a frame: what is new is as both ends have it, but for what another frame is still filling: a class
        that is met in the middle of a list is asked about before the list goes on."""
        snapshots = self.snapshots
        if len(snapshots) != len(self.objects):
            for number, value in self.objects.items():
                if number not in snapshots and number not in self.reading:
                    snapshots[number] = snapshot(value)

    def changed(self) -> list[int]:
        """The numbers of containers whose content is no longer what the other end has."""
        snapshots = self.snapshots
        return [
            number
            for number, value in self.objects.items()
            if number in snapshots and differs(value, snapshots[number])
        ]

    def to_forget(self) -> list[int]:
        """What the oracle gives up now and has not told yet: what no test holds any more, all but the newest, the
        large."""
        objects = self.objects
        if not objects:
            return self.untold
        numbers = list(self.snapshots)  # what a frame that is being read brought is not settled yet
        old = len(numbers) - FOLLOWED
        for at, number in enumerate(numbers):
            value = objects[number]
            dropped = _references(value) <= _OURS and not differs(value, self.snapshots[number])
            if dropped or at < old or _size(value) > LARGE:
                self.untold.append(number)
                self.forget(number)
        return self.untold

    def forget(self, number: int) -> None:
        value = self.objects.pop(number, None)
        self.snapshots.pop(number, None)
        if value is not None:
            self._numbers.pop(id(value), None)

    def clear(self) -> None:
        if self._numbers or self.objects or self.snapshots:
            self._numbers.clear()
            self.objects.clear()
            self.snapshots.clear()


def _held_by_us() -> int:
    """References to a container that only a space holds, counted as `to_forget` counts."""
    objects = {0: [object()]}
    value = objects[0]
    return _references(value)


_references = sys.getrefcount
_OURS = _held_by_us()


def _size(value: Any) -> int:
    return len(value) if type(value) in _KINDS else int(value.size)


def snapshot(value: Any) -> Any:
    """What a container holds now, cheaply kept."""
    take = _SNAPSHOTS.get(type(value))
    return value.copy() if take is None else take(value)


def differs(value: Any, before: Any) -> bool:
    """By identity of what is in it: no method of an element is called."""
    look = _KINDS.get(type(value))
    return _other_array(value, before) if look is None else look(value, before)


def _other_items(value: Any, before: Any) -> bool:
    return len(value) != len(before) or not all(map(_is, value, before))


def _other_set(value: Any, before: Any) -> bool:
    return len(value) != len(before) or {id(item) for item in value} != {id(item) for item in before}


def _other_pairs(value: Any, before: Any) -> bool:
    if len(value) != len(before):
        return True
    return not (all(map(_is, dict.keys(value), before)) and all(map(_is, dict.values(value), before.values())))


def _other_array(value: Any, before: Any) -> bool:
    return bool(value.shape != before.shape or value.dtype != before.dtype or value.tobytes() != before.tobytes())


_KINDS: dict[type, Callable[[Any, Any], bool]] = {
    list: _other_items, deque: _other_items, set: _other_set, bytearray: lambda value, before: bool(value != before),
    dict: _other_pairs, OrderedDict: _other_pairs, Counter: _other_pairs, defaultdict: _other_pairs,
}  # fmt: skip
_SNAPSHOTS: dict[type, Callable[[Any], Any]] = {
    list: list, deque: list, set: set, bytearray: bytes, dict: dict,
    **{kind: lambda value: dict(dict.items(value)) for kind in (OrderedDict, Counter, defaultdict)},
}  # fmt: skip


def replace(value: Any, new: Any) -> None:
    """Give a container the content of another of the same type, in place."""
    kind = type(value)
    if kind is not type(new):
        raise ValueError("a container cannot change its type")
    if kind is list or kind is bytearray:
        value[:] = new
    elif kind is deque:
        value.clear()
        value.extend(new)
    elif kind is set:
        value.clear()
        value.update(new)
    elif is_array(value):
        if value.shape != new.shape or value.dtype != new.dtype:
            raise ValueError("an array cannot change its shape")
        value[...] = new
    else:
        table: Any = OrderedDict if kind is OrderedDict else dict
        table.clear(value)
        for key, item in dict.items(new):
            table.__setitem__(value, key, item)

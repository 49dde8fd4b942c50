"""Frozen time: what a sealed test does with freezegun holds in the product, too.

freezegun replaces the clock functions of the process that it runs in. Where it is one of the project's dependencies
both processes have it, and the product's own is started, moved and stopped along with the oracle's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .connect import Connection

_NAME = "freezegun.api"
_FACTORIES = ("FrozenDateTimeFactory", "TickingDateTimeFactory", "StepTickTimeFactory")
_MOVES = ("tick", "move_to", "update_step_size")


class Frozen:
    """Follows freezegun from the moment that somebody has imported it."""

    def __init__(self, product: Connection) -> None:
        self._product = product
        self._followed = False
        self._theirs: dict[int, tuple[Any, Any, Any]] = {}  # by freezer: itself, the product's, its factory
        self._inside = False

    def look(self) -> None:
        held = sys.modules.get(_NAME)
        if held is not None and not self._followed:
            self._followed = True
            self._follow(held)

    def _follow(self, api: Any) -> None:
        freezer = api._freeze_time
        start, stop = freezer.start, freezer.stop
        factories: dict[int, Any] = {}

        def started(self_: Any) -> Any:
            freeze = self._product.load("freezegun").freeze_time
            theirs = freeze(
                self_.time_to_freeze, tz_offset=self_.tz_offset, ignore=list(self_.ignore), tick=self_.tick,
                auto_tick_seconds=self_.auto_tick_seconds,
            )  # fmt: skip
            moved = theirs.start()
            factory = start(self_)
            self._theirs[id(self_)] = (self_, theirs, factory)
            factories[id(factory)] = moved
            return factory

        def stopped(self_: Any) -> None:
            stop(self_)
            held = self._theirs.pop(id(self_), None)
            if held is not None:
                factories.pop(id(held[2]), None)
                held[1].stop()

        freezer.start, freezer.stop = started, stopped
        for name in _FACTORIES:
            kind = getattr(api, name, None)
            for move in _MOVES:
                if kind is not None and move in vars(kind):
                    setattr(kind, move, self._moving(vars(kind)[move], move, factories))

    def _moving(self, original: Callable[..., Any], name: str, factories: dict[int, Any]) -> Callable[..., Any]:
        def move(factory: Any, *args: Any, **kwargs: Any) -> Any:
            if self._inside or id(factory) not in factories:
                return original(factory, *args, **kwargs)
            self._inside = True
            try:
                getattr(factories[id(factory)], name)(*args, **kwargs)
                return original(factory, *args, **kwargs)
            finally:
                self._inside = False

        return move

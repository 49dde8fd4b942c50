"""The product's end: serves the oracle until the last link closes. Runs in the product's process and is not trusted."""

from __future__ import annotations

import _thread
import contextlib
import importlib
import os
import queue
import random
import select
from collections.abc import Callable
from typing import Any, NoReturn

from .. import seeds
from ..counts import Meter
from ..null import SWITCH
from . import facts, foreign, remote
from .effects import Gathered, State
from .link import Link
from .ops import Ops
from .peer import Peer

REVERSE = 2  # the last links, for threads that the product starts itself
PATIENCE = 10.0  # seconds for which one of them waits for another to be through


class Product(Peer):
    oracle = False
    first = 1

    def __init__(
        self, links: list[int], case: Callable[[int], None], meter: Meter | None = None, places: tuple[str, ...] = ()
    ) -> None:
        super().__init__(links, 0)
        self._case = case
        self._meter = meter
        self._still = meter is not None  # nothing was drawn in this case yet, as far as was seen
        self._counted = False  # that something was
        self._ops = Ops(self, self.drawn)
        self._gathered = Gathered()
        self._gathered.install()
        if places:
            foreign.watch(places, lambda what: self._gathered.add("foreign", what))
        self._state = State()
        self._waiting: queue.SimpleQueue[Link] = queue.SimpleQueue()
        for link in self._links[-REVERSE:]:
            self._waiting.put(link)
        self.serve = self._ops.serve  # type: ignore[method-assign]
        remote.set_loader(self)

    def attach(self) -> Link:
        """A thread of the product's own: it borrows a link for one call, once another thread is through with it."""
        try:
            link = self._waiting.get(timeout=PATIENCE)
        except queue.Empty:
            raise RuntimeError("too many threads of the product call back at once") from None
        self._by_thread[self._ident()] = link
        return link

    def request(self, op: int, value: Any, apart: bool = False) -> Any:
        ident = self._ident()
        if ident in self._by_thread:
            return super().request(op, value, apart)
        link = self.attach()
        try:
            return super().request(op, value, apart)
        finally:
            del self._by_thread[ident]
            self._waiting.put(link)

    def compare(self, name: str, function: Any, left: Any, right: Any) -> Any:
        from .asks import COMPARE

        return self.request(COMPARE, (name, left, right), True)

    def describe(self, kind: type) -> dict[str, Any]:
        return facts.describe(kind)

    def named(self, module: str, name: str) -> Any:
        from .codec import CodecError
        from .stdlib import resolve

        try:
            return resolve(module, name, False)
        except LookupError as error:
            found = self.own_class({"dependency": (module, name)})
            if found is not None:
                return found
            raise CodecError(f"nothing is named {error}") from None

    def own_class(self, facts: dict[str, Any]) -> Any:
        """A dependency's class that the oracle has, too: this process's own."""
        module, name = facts.get("dependency") or ("", "")
        try:
            found: Any = importlib.import_module(module)
            for part in name.split("."):
                found = getattr(found, part)
        except (ImportError, ValueError, AttributeError):
            return None
        return found if isinstance(found, type) else None

    def trace_of(self, error: BaseException) -> str | None:
        import traceback

        own = os.path.dirname(__file__)
        try:
            if all(frame.f_code.co_filename.startswith(own) for frame, _ in traceback.walk_tb(error.__traceback__)):
                return ""  # a name that is not there, mostly
            lines = traceback.format_tb(error.__traceback__, limit=-12)
        except Exception:  # noqa: BLE001  text for people; not worth an end
            return None
        return "".join(line for line in lines if own not in line)[-4000:]

    def moved(self) -> bool:
        return self.told.moved()

    def effects_out(self, op: int) -> Any:
        if self._still:
            self._count_draws()
        state, effects = self._state.changes(), self._gathered.take()
        return None if state is None and effects is None else (state, effects)

    def _count_draws(self) -> None:
        """A draw from the shared generators is counted, once a case. A thread may draw after the last look."""
        meter = self._meter
        if meter is not None and seeds.moved():
            self._still, self._counted = False, True
            meter.draw()
        elif meter is not None and _thread._count() > self.told.serving:
            self._still = False
            meter.ask()

    def drawn(self) -> bool:
        """Whether there was a draw that is not counted."""
        self._still = False
        return not self._counted and seeds.moved()

    def effects_in(self, effects: Any) -> None:
        import logging

        state, levels, reset, seeded = effects
        if state is not None:
            self._state.apply(state)
        for name, level in levels or ():
            if name is None:
                logging.disable(level)
            else:
                logging.getLogger(name).setLevel(level)
        if reset is not None:
            self._case(reset)
            self._still, self._counted = self._meter is not None, False
            for link in self._links:
                link.space.clear()
        if seeded is not None:
            with contextlib.suppress(Exception):  # one that was replaced here
                random.seed(*seeded)

    def spoiled(self, link: Link, error: Exception) -> tuple[int, int, Any]:
        os.write(2, f"the product's end received what it cannot read: {error}\n".encode())
        os._exit(70)

    def gone(self) -> Any:
        os._exit(0)

    def run(self) -> NoReturn:
        links = self._links[1:-REVERSE] if len(self._links) > REVERSE + 1 else []
        if links:
            self.told.serving += 1
            _thread.start_new_thread(self._accept, (links,))
        self.serve_on(self._links[0])
        os._exit(0)

    def _accept(self, links: list[Link]) -> None:
        """A thread of the oracle's begins to speak on a link of its own: it gets a thread of its own here."""
        waiting = select.poll()
        by_fd = {link.fileno(): link for link in links}
        for fd in by_fd:
            waiting.register(fd, select.POLLIN)
        while by_fd:
            for fd, _ in waiting.poll():
                waiting.unregister(fd)
                self.told.serving += 1
                _thread.start_new_thread(self.serve_on, (by_fd.pop(fd),))


def serve(
    links: list[int], case: Callable[[int], None] = lambda seed: SWITCH.arm(), meter: Meter | None = None,
    places: tuple[str, ...] = (),
) -> NoReturn:  # fmt: skip
    """Serve until the oracle is gone; import path, environment and confinement are the caller's. `case` is called with
    a case's seed when it asks for the first time: from then on, at the latest, a null product raises. `places` is
    where modules may come from; with none nobody looks."""
    Product(links, case, meter, places).run()

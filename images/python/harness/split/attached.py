"""Which link a thread of the tests speaks on.

The main thread has the first one. Another thread's link is its own until it has ended, because the product's end has
one thread for each link, and locks and thread-local values go by threads. Where more threads live than there are links,
one that is in no call gives its link up; a test's pool of threads is mostly such.
"""

from __future__ import annotations

import _thread
import sys
import time
from typing import TYPE_CHECKING, Any

from .link import Link

if TYPE_CHECKING:
    from .steady import Remembered

PATIENCE = 10.0  # seconds for which a thread waits for others to end or to fall silent
_CLAIM = 0.05  # seconds after which it takes the link of one that is silent


class Attached:
    """What a connection does about threads. `request` holds a pooled link's turn for as long as it asks."""

    if TYPE_CHECKING:
        _by_thread: dict[int, Link]
        _ident: Any
        _workers: int
        remembered: Remembered

    def __init__(self) -> None:
        self._pool: list[Link] = []
        self._threads: dict[int, Link] = {}
        self._lock = _thread.allocate_lock()
        self._now = time.monotonic  # held here, where no test that replaces it looks
        self._pause = _thread.allocate_lock()  # never free: who waits for it waits
        self._pause.acquire()

    def taken(self) -> Link:
        """The present thread's link, and its turn on it."""
        while True:
            link = self._by_thread.get(self._ident())
            if link is None:
                link = self.attach()
            link.turn.acquire()
            if self._by_thread.get(self._ident()) is link:
                return link
            link.turn.release()  # somebody took it meanwhile

    def attach(self) -> Link:
        begun = self._now()
        while (link := self._borrowed(self._now() > begun + _CLAIM)) is None:
            if self._now() > begun + PATIENCE:
                raise RuntimeError(f"more than {self._workers} threads of the tests call the product at once")
            self._pause.acquire(timeout=0.002)
        return link

    def _borrowed(self, claim: bool) -> Link | None:
        with self._lock:
            alive = sys._current_frames().keys()
            for ident in [ident for ident in self._threads if ident not in alive]:
                self._give_up(ident)
            if not self._pool and claim:
                self._claim()
            if not self._pool:
                return None
            link = self._pool.pop(0)
            self._threads[self._ident()] = link
            self.remembered.usable = False
            self.remembered.drop()
            self._by_thread[self._ident()] = link
        return link

    def _claim(self) -> None:
        for ident, link in list(self._threads.items()):
            if link.turn.acquire(blocking=False):
                self._give_up(ident)
                link.turn.release()
                return

    def _give_up(self, ident: int) -> None:
        self._pool.append(self._threads.pop(ident))
        self._by_thread.pop(ident, None)

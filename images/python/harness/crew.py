"""The processes of one part of an attempt, from their fork to their end, and PID 1's ends of all that leads to them.

A crew is forked, told its place and confined; then it makes ready what needs no order and waits. Between the two may
lie nothing, or the time in which a room waits for its src. It holds no result: `watch` follows what it does, the
reaper knows how it ended.
"""

import contextlib
import fcntl
import os
import select
import socket

from . import counts
from .layout import LINKS, Layout
from .reaper import Reaper
from .starts import FORK_SECONDS, Start
from .task import Place, Task
from .watch import AttemptFailed

PIPE_BYTES = 1 << 20


class Crew:
    def __init__(self, start: Start, place: Place, layout: Layout) -> None:
        self.start, self.place, self._layout = start, place, layout
        self._held = Descriptors()
        self.pid = -1
        self.product: int | None = None
        with contextlib.suppress(OSError):  # an earlier attempt filled the place up: then nothing is counted
            counts.make(layout.counts, place.uids)
        try:
            self._fork()
        except BaseException:
            self._held.close_all()
            raise

    def _fork(self) -> None:
        held = self._held
        output_read, output_write = held.pipe()
        links = self._fork_product(output_write)
        order_read, self.order = held.pipe()
        self._ready, ready_write = held.pipe()
        self.record, record_write = held.pipe()
        word_read, self.word = held.pipe()
        self.output = output_read
        for fd in (self.order, self.record, self.output, self.word):
            os.set_blocking(fd, False)
        theirs = (order_read, ready_write, record_write, output_write, word_read, *links)
        self.pid = self.start.oracle.fork(theirs)
        for fd in theirs:
            held.close(fd)
        os.write(self.order, self.place.encode())

    def _fork_product(self, output: int) -> list[int]:
        """The oracle's ends of the links; of a shared part none."""
        place = self.place.of_product()
        if place is None:
            return []
        if self.start.product is None:
            raise AttemptFailed("a split part without a split file")
        held = self._held
        order_read, self._product_order = held.pipe()
        self._product_ready, ready_write = held.pipe()
        pairs = [held.pair() for _ in range(LINKS)]
        theirs = (order_read, ready_write, output, *(pair[1] for pair in pairs))
        self.product = self.start.product.fork(theirs)
        for fd in (order_read, ready_write, *(pair[1] for pair in pairs)):
            held.close(fd)
        os.write(self._product_order, place.encode())
        return [pair[0] for pair in pairs]

    @property
    def forks(self) -> list[int]:
        return [pid for pid in (self.product, self.pid) if pid is not None and pid > 0]

    def wait_until_ready(self) -> None:
        """Until there is nothing more that either of them can do without an order."""
        if self.product is not None:
            self._hear_ready(self._product_ready)
        self._hear_ready(self._ready)

    def is_whole(self) -> bool:
        """Whether both still hold the ends that their orders come from: a pid says little once it was reaped."""
        orders = [self.order] if self.product is None else [self.order, self._product_order]
        poll = select.poll()
        for fd in orders:
            poll.register(fd, 0)  # what is asked for nothing tells of errors alone
        return not poll.poll(0)

    def tell_product(self, task: Task) -> None:
        """Its order, once it holds no privilege any more. The oracle still waits for its own."""
        if self.product is None:
            return
        if not self._held.is_closed(self._product_ready):
            self._hear_ready(self._product_ready)
        with contextlib.suppress(BrokenPipeError):  # it has ended, which will be seen
            os.write(self._product_order, task.of_product().encode())
        self._held.close(self._product_order)

    def close(self, fd: int) -> None:
        self._held.close(fd)

    def end(self) -> None:
        """For a crew whose processes are gone."""
        self._held.close_all()
        with contextlib.suppress(OSError):
            counts.drop(self._layout.counts, self.place.uids)

    def _hear_ready(self, fd: int) -> None:
        ready, _, _ = select.select([fd], [], [], FORK_SECONDS)
        if not ready or os.read(fd, 1) != b"r":
            raise AttemptFailed(f"a fork did not become ready: {self._said()}")
        self._held.close(fd)

    def _said(self) -> str:
        try:
            return os.read(self.output, 4000).decode("utf-8", "replace")[-1000:]
        except OSError:
            return ""


class Waiting:
    """Crews that were made before their orders came: each is for any part of its start."""

    def __init__(self) -> None:
        self._crews: list[Crew] = []

    def add(self, crew: Crew) -> None:
        self._crews.append(crew)

    def wait(self) -> None:
        for crew in self._crews:
            crew.wait_until_ready()

    def take(self, start: Start, reaper: Reaper) -> Crew | None:
        """The first of a start that is still whole."""
        for crew in [each for each in self._crews if each.start is start]:
            self._crews.remove(crew)
            if crew.is_whole():
                return crew
            self._dismiss(crew, reaper)
        return None

    def clear(self, reaper: Reaper) -> None:
        while self._crews:
            self._dismiss(self._crews.pop(), reaper)

    @staticmethod
    def _dismiss(crew: Crew, reaper: Reaper) -> None:
        for pid in crew.forks:
            reaper.end(pid)
        for pid in crew.forks:
            reaper.wait(pid)
        crew.end()


class Descriptors:
    """Pipes and links of one crew, each end closed once."""

    def __init__(self) -> None:
        self._open: set[int] = set()

    def pipe(self) -> tuple[int, int]:
        ends = os.pipe()
        self._open.update(ends)
        with contextlib.suppress(OSError):
            fcntl.fcntl(ends[0], fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        return ends

    def pair(self) -> tuple[int, int]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ends = (ours.detach(), theirs.detach())
        self._open.update(ends)
        return ends

    def is_closed(self, fd: int) -> bool:
        return fd not in self._open

    def close(self, fd: int) -> None:
        self._open.remove(fd)
        os.close(fd)

    def close_all(self) -> None:
        for fd in list(self._open):
            self.close(fd)

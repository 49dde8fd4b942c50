"""Watching one attempt: from the fork to nobody left, with every frame it gave.

Reads its records and its output, holds its clocks, ends it where a limit is crossed, and says how it ended. A split
part has two processes: when the product's leaves before the session is over, that end is the attempt's. PID 1 owns
this; nothing the attempt does can make it wait or fail. What is ours to answer for (a fork that never became an
attempt, processes that cannot be killed) raises `AttemptFailed`.
"""

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from . import cgroup
from .frames import JSON, FrameError, MarkedFrames, Message, decode_json
from .output import Output
from .reaper import Exit, Reaper, is_leaving, scheduled
from .record import ForeignRecord, Ledger

RECORD_LIMIT = 1 << 19
REST = 0.02  # seconds for which what an attempt writes may gather in its pipes
_READ = 1 << 18


class AttemptFailed(RuntimeError):
    """The harness's own failure around an attempt."""


class ServerGone(RuntimeError):
    """stdin ended while an attempt ran."""


class Server(Protocol):
    """What an attempt needs of the conversation with the server."""

    stdin: int

    def send(self, *messages: Message) -> None: ...

    def gone(self) -> bool: ...

    def answers(self) -> list[Message]: ...


class Relay(Protocol):
    """Where the requests of a case that is recorded come from."""

    def fileno(self) -> int: ...

    def asks(self) -> list[dict[str, Any]] | None: ...

    def answer(self, part: dict[str, Any]) -> None: ...


@dataclass(frozen=True)
class Limits:
    attempt_ms: int
    case_ms: int
    rest: float = REST  # none where the attempt waits for our word


@dataclass(frozen=True)
class Pipes:
    """PID 1's ends."""

    order: int
    record: int
    word: int


class Watch:
    def __init__(
        self, pid: int, product: int | None, exit_code: int, limits: Limits, ledger: Ledger, output: Output,
        pipes: Pipes, key: bytes,
        server: Server, reaper: Reaper, close: Callable[[int], None], relay: Relay | None = None,
    ) -> None:  # fmt: skip
        self._relay = relay
        self._pid, self._product, self._exit_code, self._limits = pid, product, exit_code, limits
        self._left: int | None = None  # whose end is the attempt's
        self._ledger, self._output, self._pipes = ledger, output, pipes
        self._records = MarkedFrames((JSON,), key, RECORD_LIMIT)
        self._server, self._reaper, self._close = server, reaper, close
        self._end: str | None = None  # why we ended it, if we did
        self._started = time.monotonic()
        self._case_since: float | None = None
        self._wall = self._delay = 0.0
        # Before anybody waited for it.
        until_now = {each: scheduled(each) for each in self._present()}
        self._ahead = sum(each.ran_ms for each in until_now.values())
        self._waited = {pid: each.delay_ms for pid, each in until_now.items()}
        self._before = (cgroup.oom_kills(), cgroup.cpu_ms(), time.process_time())

    def until_it_ends(self, order: bytes, wake: int) -> None:
        """Until the attempt has ended by itself, or crossed a limit and must be ended by the caller."""
        with selectors.DefaultSelector() as selector, selectors.DefaultSelector() as urgent:
            for fd in (wake, self._server.stdin):
                selector.register(fd, selectors.EVENT_READ)
                urgent.register(fd, selectors.EVENT_READ)
            for fd in (self._pipes.record, self._output.fd):
                selector.register(fd, selectors.EVENT_READ)
            selector.register(self._pipes.order, selectors.EVENT_WRITE)
            relay = -1 if self._relay is None else self._relay.fileno()
            if relay >= 0:
                selector.register(relay, selectors.EVENT_READ)
            while True:
                written = False
                for key, _ in selector.select(self._patience()):
                    if key.fd == self._pipes.order:
                        order = self._tell(order)
                        if not order:
                            selector.unregister(key.fd)
                            self._close(key.fd)
                    elif key.fd == wake:
                        os.read(wake, 4096)
                    elif key.fd == self._server.stdin:
                        if self._server.gone():
                            raise ServerGone
                        if self._relay is None:
                            selector.unregister(key.fd)  # the next order has come; it waits
                            urgent.unregister(key.fd)
                        else:
                            for part in self._server.answers():
                                self._relay.answer(part)
                    elif key.fd == relay:
                        if not self._ask():
                            selector.unregister(key.fd)
                    elif self._output.drain() if key.fd == self._output.fd else self._read_records():
                        written = True
                    else:
                        selector.unregister(key.fd)
                self._left = self._who_left()
                if self._left is not None:
                    break
                self._check()
                if self._end is not None:
                    break
                if written and self._limits.rest:
                    urgent.select(self._limits.rest)
        self._wall = (time.monotonic() - self._started) * 1000
        delays = [scheduled(each).delay_ms - before for each, before in self._waited.items()]
        self._delay = min(self._wall, max(0.0, *delays))  # a kernel's account of it can jump

    def _present(self) -> list[int]:
        return [pid for pid in (self._pid, self._product) if pid is not None]

    def summary(self) -> Message:
        """Once no process of the attempt is left: its last frames, and how it ended."""
        self._drain()
        ends = [self._reaper.take(pid) for pid in self._present()]
        spent = self._reaper.forget() + sum(end.cpu_ms for end in ends if end is not None) - self._ahead
        kills, cpu, own = self._before
        spent = max(spent, cgroup.cpu_ms() - cpu - (time.process_time() - own) * 1000)
        kills = max(0, cgroup.oom_kills() - kills)
        end, ended = self._how(ends[0], ends[-1], kills)
        if not self._ledger.booted:
            raise AttemptFailed(f"a fork did not become an attempt: {self._output.rest()[-1000:]}")
        running = self._ledger.shown
        last = self._output.rest()
        self._server.send(*self._ledger.interrupted(last))
        return {
            "end": end, "exit_code": ended.code if ended else None, "signal": ended.signal if ended else None,
            "running": running.node if running else None, "phase": running.when if running else None,
            "wall_ms": round(self._wall, 3), "cpu_ms": round(spent, 3), "run_delay_ms": round(self._delay, 3),
            "oom_kills": kills, "output_bytes": self._output.total,
            "output": last if running is None else "", "tamper": self._ledger.tamper,
            "canaries": self._ledger.canaries,
        }  # fmt: skip

    def _ask(self) -> bool:
        """Hands on what the case asks of the outside; False when nothing more can come."""
        asks = None if self._relay is None else self._relay.asks()
        for ask in asks or ():
            self._server.send({"type": "ask", **ask})
        return asks is not None

    def _tell(self, order: bytes) -> bytes:
        try:
            return order[os.write(self._pipes.order, order) :]
        except BlockingIOError:
            return order
        except BrokenPipeError:
            return b""

    def _patience(self) -> float:
        due = self._started + self._limits.attempt_ms / 1000
        if self._case_since is not None:
            due = min(due, self._case_since + self._limits.case_ms / 1000)
        return max(0.0, due - time.monotonic()) + 0.001

    def _check(self) -> None:
        now = time.monotonic()
        if self._end is not None:
            return
        if self._output.flooded:
            self._end = "output-limit"
        elif self._case_since is not None and now - self._case_since > self._limits.case_ms / 1000:
            self._end = "case-timeout"
        elif now - self._started > self._limits.attempt_ms / 1000:
            self._end = "attempt-timeout"

    def _read_records(self) -> bool:
        """Takes what has come; False when there is no more to come."""
        try:
            data = os.read(self._pipes.record, _READ)
        except BlockingIOError:
            return True
        if not data:
            return False
        self._output.drain()  # what was printed before these records
        self._records.feed(data)
        try:
            self._take_records()
        except (FrameError, ForeignRecord):
            self._end = self._end or "protocol"
            return False
        return True

    def _take_records(self) -> None:
        told: list[Message] = []
        try:
            while (frame := self._records.take()) is not None:
                told += self._accept(decode_json(frame[1]))
        finally:
            self._tell_server(told)

    def _accept(self, record: Message) -> list[Message]:
        frames = self._ledger.accept(record)
        if self._ledger.running is None:
            self._case_since = None
        elif record["kind"] == "begin":
            self._case_since = time.monotonic()
        if self._ledger.words_due:
            self._let_go_on()
        return frames

    def _tell_server(self, frames: list[Message]) -> None:
        if not frames:
            return
        before = time.monotonic()
        self._server.send(*frames)
        slow = time.monotonic() - before  # a slow server is not the attempt's fault
        self._started += slow
        if self._case_since is not None:
            self._case_since += slow

    def _let_go_on(self) -> None:
        """The pins are as the oracle waits for them to be."""
        words, self._ledger.words_due = self._ledger.words_due, 0
        with contextlib.suppress(OSError):  # it is gone, or does not listen: then it waits until its time is up
            os.write(self._pipes.word, b"g" * words)

    def _drain(self) -> None:
        """What is left in the pipes: nobody holds their other ends any more."""
        while self._end != "protocol" and self._read_records():
            pass
        while self._output.drain() and not self._output.flooded:
            pass

    def _who_left(self) -> int | None:
        """An oracle that is through with its session has left first, whatever the product does then.

        It never leaves for the product's sake. The product does for its, as soon as the links close, which is before
        the oracle's process is all gone.
        """
        if self._reaper.ended(self._pid):
            return self._pid
        if self._product is not None and self._reaper.ended(self._product):
            return self._pid if is_leaving(self._pid) else self._product
        return None

    def _how(self, oracle: Exit | None, product: Exit | None, kills: int) -> tuple[str, Exit | None]:
        """The end, and the exit that tells it: the product's where that left before the session was over."""
        if self._end is not None:
            return self._end, oracle
        if oracle is None or product is None:
            raise AttemptFailed("an attempt vanished")
        if self._ledger.ended and oracle.code == self._exit_code:
            return "finished", oracle
        first = oracle if self._left == self._pid else product
        if first.signal is not None:
            return "out-of-memory" if first.signal == signal.SIGKILL and kills else "killed", first
        return "exited", first

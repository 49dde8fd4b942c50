"""PID 1: orders in, frames out.

Owns the conversation with the server, the pin page, the src files, the interpreter starts and every result. It imports
nothing but the harness and never runs a line of the repository. The candidate's doings become `attempt-end` frames;
its own failures become `trouble`, and the server signs nothing.
"""

import contextlib
import os
import platform
import secrets
import signal
import sys
from collections.abc import Callable, Iterator

from . import canary, counts, digesting, etc, marking, placement, planting, sweep
from .cassettes import Deck, NoReplay, Shelf
from .crew import Crew, Waiting
from .frames import JSON, TAR, FrameBuffer, FrameError, Message, decode_json, encode_json, write_all
from .layout import CASE_OUTPUT_FACTOR, Layout, package_version
from .listings import Listings
from .orders import Attempt, BadOrder, Configure, Marks, Plant, Policy, digest_files, parts_ahead, src_size
from .output import Output
from .overlay import Overlay, OverlayError, TarStream
from .pins import PinPage
from .reaper import Reaper, Unkillable
from .record import Ledger
from .starts import Start, StartFailed, Starts
from .task import Place, Task
from .transport import Transport, TransportFailed
from .watch import AttemptFailed, Limits, Pipes, ServerGone, Watch

PROTOCOL = 1
STOPPED = 128 + signal.SIGTERM


class Conversation:
    """The server's frames, in order, and the way back."""

    def __init__(self, stdin: int, stdout: int) -> None:
        self.stdin, self._stdout = stdin, stdout
        self._buffer = FrameBuffer()
        self._gone = False

    def send(self, *messages: Message) -> None:
        data = bytearray()
        try:
            for message in messages:
                data += encode_json(message)
        finally:  # those before one that is too long
            write_all(self._stdout, bytes(data))

    def receive(self) -> tuple[int, bytes] | None:
        while (frame := self._buffer.take()) is None:
            if not self._read():
                return None
        return frame

    def gone(self) -> bool:
        """Called when stdin has something: whether that is its end. What it is otherwise waits its turn."""
        self._read()
        return self._gone

    def answers(self) -> list[Message]:
        """What came back for requests of the case that is recorded: nothing else comes while an attempt runs."""
        answers = []
        while (frame := self._buffer.take()) is not None:
            message = decode_json(frame[1]) if frame[0] == JSON else {}
            if message.pop("type", None) != "answer":
                raise BadOrder("an order while a case is recorded")
            answers.append(message)
        return answers

    def _read(self) -> bool:
        data = os.read(self.stdin, 1 << 18)
        self._gone = not data
        self._buffer.feed(data)
        return bool(data)


class Supervisor:
    def __init__(self, layout: Layout, conversation: Conversation) -> None:
        self._layout = layout
        self._server = conversation
        self._reaper = Reaper()
        self._configured: Configure | None = None
        self._overlay: Overlay | None = None
        self._starts = Starts([])
        self._waiting = Waiting()
        self._places = 0  # given so far
        self._pins: PinPage | None = None
        self._shelf, self._listings = Shelf(), Listings(layout.listings)
        self._transport: Transport | None = None
        self._attempted = False
        self._wake = _wake_on_child()

    def run(self) -> int:
        self._server.send(
            {
                "type": "ready", "protocol": PROTOCOL, "python": platform.python_version(),
                "tag": f"cp{sys.version_info.major}{sys.version_info.minor}",
                "pytest": package_version(self._layout.runner, "pytest"),
                "hypothesis": package_version(self._layout.runner, "hypothesis"),
            }
        )  # fmt: skip
        handlers: dict[str, Callable[[Message], None]] = {
            "configure": self._configure, "warm": self._warm, "src": self._src, "attempt": self._attempt,
            "digests": self._digests, "plant": self._plant, "cassette": self._cassette, "body": self._body,
            "marks": self._marks,
        }  # fmt: skip
        while (frame := self._server.receive()) is not None:
            kind, body = frame
            order = decode_json(body) if kind == JSON else {"type": "tar"}
            if order.get("type") == "bye":
                break
            handler = handlers.get(str(order.get("type")))
            if handler is None:
                raise BadOrder(f"no order is called {str(order.get('type'))[:40]!r}")
            handler(order)
        return 0

    def close(self) -> None:
        for start in self._starts:
            start.end()
        if self._transport is not None:
            self._transport.end()

    def _configure(self, message: Message) -> None:
        if self._configured is not None:
            raise BadOrder("configured already")
        order = Configure.parse(message)
        etc.write(self._layout, order.uid_base, order.uid_count, order.policy.pythonpath)
        self._pins = PinPage(self._layout.pins)
        if order.clock is not None:
            self._pins.write(order.clock, order.seed or 0, order.policy.cpus)
        if order.network is not None:  # before any interpreter, some of which load authorities while they warm up
            self._transport = Transport(self._layout, order.network.ports, order.network.relay)
            self._transport.start()
        self._starts = Starts([Start(seed, self._layout, order.policy, order.files) for seed in order.hash_seeds])
        self._starts.open()
        self._configured = order

    def _warm(self, message: Message) -> None:
        """Every interpreter start comes up now, before anybody knows which src it is for, and so do the attempts."""
        if self._configured is None or self._overlay is not None:
            raise BadOrder("warm belongs between configure and src")
        ahead = parts_ahead(message, len(self._starts))
        self._starts.wait_all()
        for index in ahead:
            place = self._next_place(self._configured, split=True)
            self._waiting.add(Crew(self._starts.take(index), place, self._layout))
        self._waiting.wait()
        self._server.send({"type": "warmed", "starts": len(self._starts)})

    def _src(self, message: Message) -> None:
        order = self._configured
        if order is None or self._overlay is not None:
            raise BadOrder("src comes once, after configure")
        overlay = Overlay(self._layout, order.policy.src_roots)
        overlay.lay(TarStream(self._tar(src_size(message))))
        self._overlay = overlay
        self._clean(order.uid_base)
        self._starts.wait_first()
        self._server.send({"type": "configured", "starts": len(self._starts)})

    def _tar(self, size: int) -> Callable[[], bytes]:
        """The tar's bytes, frame by frame, up to and including `src-end`."""

        def pieces() -> Iterator[bytes]:
            left = size
            while (frame := self._server.receive()) is not None:
                kind, body = frame
                if kind == TAR and 0 < len(body) <= left:
                    left -= len(body)
                    yield body
                elif kind == JSON and left == 0 and decode_json(body).get("type") == "src-end":
                    return
                else:
                    raise BadOrder("the src tar is not as announced")
            raise BadOrder("the src tar was cut off")

        stream = pieces()
        return lambda: next(stream, b"")

    def _cassette(self, message: Message) -> None:
        self._before_attempts()
        self._shelf.cassette(message, self._listings)

    def _body(self, message: Message) -> None:
        self._before_attempts()
        self._shelf.body(message)

    def _before_attempts(self) -> None:
        if self._configured is None or self._attempted:
            raise BadOrder("a cassette before configure, or after the first attempt")

    def _attempt(self, message: Message) -> None:
        configured, overlay, pins = self._configured, self._overlay, self._pins
        if configured is None or overlay is None or pins is None:
            raise BadOrder("an attempt before configure")
        order = Attempt.parse(message, len(self._starts))
        self._attempted = True
        start = self._starts.take(order.start)
        crew = self._waiting.take(start, self._reaper) if order.split else None
        place = self._next_place(configured, order.split) if crew is None else crew.place
        self._clean(place.owner)
        pins.write(order.clock, order.seed, configured.policy.cpus, order.reversed == "listings")
        crew = crew or Crew(start, place, self._layout)
        deck = Deck(
            self._shelf, pins, self._transport or NoReplay(), order.clock, order.seed,
            lambda number: counts.listed(self._layout.counts, place.uids, number),
            lambda: counts.sought(self._layout.counts, place.uids),
        )  # fmt: skip
        whole = not order.collect_only and order.only is None and not order.marks_off and order.reversed is None
        task = Task(
            order, start.hash_seed, secrets.token_bytes(16), secrets.token_bytes(32),
            order.questions or secrets.token_bytes(16), 80 + secrets.randbelow(40),
            canary.drawn() if whole else (), self._shelf.seeds(), placement.chosen(order),
        )  # fmt: skip
        try:
            summary = self._watched(configured.policy, crew, task, deck)
        finally:
            crew.end()
        if not overlay.unchanged():
            raise AttemptFailed("src changed under an attempt")
        self._server.send(
            {"type": "attempt-end", "attempt": order.attempt, **summary, "start": order.start, "uid": place.uid}
        )

    def _next_place(self, configured: Configure, split: bool) -> Place:
        """Users that no part before it had, as far as there are enough."""
        uid = configured.uid_base + 2 * self._places % (configured.uid_count & ~1)
        self._places += 1
        return Place(uid, uid + 1 if split else None)

    def _watched(self, policy: Policy, crew: Crew, task: Task, deck: Deck) -> Message:
        output = Output(crew.output, task.token.hex().encode(), policy.output_bytes, CASE_OUTPUT_FACTOR)
        ledger = Ledger(task.attempt.attempt, output, task.canaries, deck, task.attempt.reversed == "cases")
        try:
            crew.tell_product(task)
            watch = Watch(
                crew.pid, crew.product, task.exit_code, _limits(policy, task), ledger, output,
                Pipes(crew.order, crew.record, crew.word), task.key, self._server, self._reaper, crew.close,
                self._transport if self._transport and self._transport.relay else None,
            )  # fmt: skip
            watch.until_it_ends(task.encode(), self._wake)
        finally:
            self._end_all(crew)
        return watch.summary()

    def _end_all(self, crew: Crew) -> None:
        for pid in crew.forks:  # one that is not confined yet has none of these uids
            self._reaper.end(pid)
        try:
            self._reaper.end_users(crew.place.uids)
        except Unkillable:
            # The last resort: everything but PID 1 goes, and fresh interpreters come.
            if self._transport is not None:
                self._transport.end()
            self._reaper.end_everything(crew.place.uids)
            self._waiting.clear(self._reaper)
            if self._transport is not None:
                self._transport.start()
            for start in self._starts:
                start.renew()
        for pid in crew.forks:
            self._reaper.wait(pid)

    def _clean(self, uid: int) -> None:
        for place in self._layout.scratch:
            sweep.empty(place, 0o1777)
        sweep.empty(self._layout.home, 0o700, uid)

    def _digests(self, message: Message) -> None:
        for frame in digesting.answers(self._layout.tree, digest_files(message)):
            self._server.send(frame)

    def _marks(self, message: Message) -> None:
        order = Marks.parse(message)
        whole = bytearray()
        while len(whole) < sum(order.sizes):
            frame = self._server.receive()
            if frame is None or frame[0] != TAR or len(whole) + len(frame[1]) > sum(order.sizes):
                raise BadOrder("the texts are not as announced")
            whole += frame[1]
        texts, at = [], 0
        for size in order.sizes:
            texts.append(bytes(whole[at : at + size]))
            at += size
        self._server.send(marking.answer(order, texts))

    def _plant(self, message: Message) -> None:
        if self._configured is None:
            raise BadOrder("a plan before configure")
        self._server.send(planting.answer(self._layout, self._configured.policy, Plant.parse(message)))


def _limits(policy: Policy, task: Task) -> Limits:
    """An attempt with cassettes waits for PID 1's word, and PID 1 must not rest."""
    times = policy.attempt_timeout_ms, policy.case_timeout_ms
    return Limits(*times, rest=0.0) if task.cassettes else Limits(*times)


def _wake_on_child() -> int:
    """A descriptor that becomes readable when a child ends."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def _leave(*_: object) -> None:
    """Only the engine can send SIGTERM to PID 1: it stops the room. The code says that nobody in here did."""
    os._exit(STOPPED)


def supervise() -> int:
    signal.signal(signal.SIGTERM, _leave)
    conversation = Conversation(0, 1)
    supervisor = Supervisor(Layout(), conversation)
    trouble: tuple[str, Exception]
    try:
        return supervisor.run()
    except (BrokenPipeError, ServerGone):
        return 0
    except (BadOrder, FrameError, OverlayError) as error:
        trouble = ("bad-order", error)
    except (StartFailed, TransportFailed) as error:
        trouble = ("zygote-failed", error)
    except Exception as error:  # noqa: BLE001  whatever it is, the server must learn that no verdict comes from it
        trouble = ("internal", error)
    finally:
        supervisor.close()
    code, cause = trouble
    print(f"{code}: {cause!r}"[:4000], file=sys.stderr)
    with contextlib.suppress(OSError, FrameError):
        conversation.send({"type": "trouble", "code": code, "message": f"{type(cause).__name__}: {cause}"[:2000]})
    return 1

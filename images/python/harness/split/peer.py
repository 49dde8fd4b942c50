"""One end of the conversation: requests out, requests in, on whichever link the present thread owns.

Both processes are peers; they differ in what they serve (`ops` in the product, `guard` in the oracle) and in what they
make of an end that breaks the rules. A thread that waits for an answer serves the requests that come meanwhile, so a
callback within a call within a callback is a plain stack on each side.
"""

from __future__ import annotations

import _thread
import weakref
from collections import deque
from typing import Any

from . import export, making, mirror, raised, values
from .asks import CHUNK, CLASS, COMPARE, DIR, FACTS, FIELDS, FIND, ITER, METHOD, SIGNATURE, SPECIAL, STEP
from .codec import CodecError
from .decode import Decoder
from .encode import Encoder
from .link import Link, LinkBroken, LinkGone
from .loops import Loops
from .patches import Patches
from .space import Space, replace, snapshot
from .steady import Remembered, Told

REQUEST, RETURN, RAISE = 1, 2, 3
FORGET, SYNC, EXTRA, APART, MOVED = 1, 2, 4, 8, 16

# Answers whose containers are nobody's to keep.
_APART = (COMPARE, FACTS, FIELDS, SIGNATURE, DIR, FIND)


class CrossError(RuntimeError):
    """A value that cannot cross between the processes."""


class Peer:
    """What both ends do."""

    oracle = False
    first = 1

    def __init__(self, links: list[int], workers: int) -> None:
        self._links = [Link(fd, self.first) for fd in links]
        self._free: deque[Link] = deque()
        self._more = _thread.allocate_lock()
        self._workers = workers
        self._by_thread: dict[int, Link] = {}
        self._ident = _thread.get_ident
        self.exports = export.Exports()
        self.proxies: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self.classes: dict[int, Any] = {}
        self.places: dict[int, str] = {}  # where modules lie that are objects of some class, by number
        self.loops = Loops(self)
        self.values: dict[int, Any] = {}  # the newest values of classes of the other end's
        self.let_go: deque[tuple[int, int]] = deque()
        self._unclosed: deque[Any] = deque()  # generators that were dropped while a frame was under way
        self.remembered = Remembered()
        self.patches = Patches(self)
        self.told = Told()
        self.foreign: weakref.WeakKeyDictionary[Any, mirror.Grip] = weakref.WeakKeyDictionary()

    # -- requests -------------------------------------------------------------------------------------------------

    def request(self, op: int, value: Any, apart: bool = False) -> Any:
        """Ask the other end, and serve it while it thinks. `apart`: containers in it are no shared ones."""
        link = self._by_thread.get(self._ident())
        if link is None:
            link = self.attach()
        if link.busy:
            raise RuntimeError("the other process is called from a finalizer")
        while self._unclosed:
            ref, grip = self._unclosed.popleft()
            self._ask(link, STEP, (ref, "close", None), False)
            del grip
        return self._ask(link, op, value, apart)

    def _ask(self, link: Link, op: int, value: Any, apart: bool) -> Any:
        try:
            self._send(link, REQUEST, op, value, apart)
        except LinkGone:
            self.gone()
        while True:
            kind, op, answer = self._receive(link)
            if kind == RETURN:
                return answer
            if kind == RAISE:
                raise answer
            self.answer(link, op, answer)

    def answer(self, link: Link, op: int, value: Any) -> None:
        """Serve one request."""
        try:
            result = self.serve(op, value)
        except BaseException as error:  # noqa: BLE001  every exception crosses
            self._raise_over(link, error)
            return
        try:
            self._send(link, RETURN, op, result, op in _APART)
        except CodecError as error:
            self._raise_over(link, CrossError(str(error)))
        except RecursionError as error:
            self._raise_over(link, error)
        except LinkGone:
            self.gone()

    def _raise_over(self, link: Link, error: BaseException) -> None:
        error = export.stripped(error)
        try:
            self._send(link, RAISE, 0, error, False)
        except RecursionError as second:
            self._send(link, RAISE, 0, RecursionError(str(second)), False)
        except CodecError as second:
            self._send(link, RAISE, 0, CrossError(f"{type(error).__name__}: {second}"), False)
        except LinkGone:
            self.gone()

    def _send(self, link: Link, kind: int, op: int, value: Any, apart: bool) -> None:
        link.busy = True
        space = link.space
        enc = Encoder(self, space)
        out = enc.out
        flags = 0
        out.append(b"")
        changed: list[int] = []
        try:
            if space.objects or space.untold:
                stale = space.to_forget() if self.oracle else ()
                if stale:
                    flags |= FORGET
                    out.append(b"".join([n.to_bytes(4, "little") for n in (len(stale), *stale)]))
                changed = space.changed()
                if changed:
                    flags |= SYNC
                    out.append(len(changed).to_bytes(4, "little"))
                    for number in changed:
                        out.append(number.to_bytes(4, "little"))
                        enc.content(space.objects[number])
            if not self.oracle and self.moved():
                flags |= MOVED
            extra = self.extra_out(op)
            if extra is not None:
                flags |= EXTRA
                enc.value(extra)
            if apart:
                flags |= APART
                enc.space = Space(self.first)
            if self.oracle and kind == REQUEST and (op == COMPARE or (op == SPECIAL and value[0] == "__contains__")):
                enc.blind = {}
            enc.value(value)
            out[0] = bytes((kind, op, flags))
            body = enc.finish()
        except BaseException:
            self._undo(space)
            link.busy = False
            raise
        if space.objects or space.untold:
            space.untold = []
            for number in changed:
                space.snapshots[number] = snapshot(space.objects[number])
            space.settle()
        try:
            link.send(body)
        except LinkGone:
            link.busy = False
            raise

    @staticmethod
    def _undo(space: Space) -> None:
        for number in [n for n in space.objects if n not in space.snapshots]:
            space.forget(number)

    def _receive(self, link: Link) -> tuple[int, int, Any]:
        while True:
            try:
                body = link.receive()
            except LinkBroken as error:
                return self.spoiled(link, error)
            except LinkGone:
                link.busy = False
                return self.gone()  # type: ignore[no-any-return]
            try:
                return self._read(link, body)
            except CodecError as error:
                self._undo(link.space)
                return self.spoiled(link, error)
            except LinkGone:
                return self.gone()  # type: ignore[no-any-return]
            except RecursionError:
                # The stack is full here; whoever called us so deep learns it, on whichever side that is.
                if body[0] != REQUEST:
                    raise
                self._raise_over(link, RecursionError("maximum recursion depth exceeded across the two processes"))

    def _read(self, link: Link, body: bytes) -> tuple[int, int, Any]:
        if len(body) < 3:
            raise CodecError("a frame without a head")
        kind, op, flags = body[0], body[1], body[2]
        if not REQUEST <= kind <= RAISE or flags & ~31:
            raise CodecError("a frame of no kind")
        space = link.space
        dec = Decoder(body, self, space, 3)
        if flags & FORGET:
            if self.oracle:
                raise CodecError("only the oracle forgets")
            for _ in range(dec.count()):
                space.forget(dec.u32())
        if flags & MOVED:
            if not self.oracle:
                raise CodecError("only the product's names move")
            self.remembered.drop()
        if flags & SYNC:
            # What the content is made of may be asked for meanwhile, and the container be forgotten in between.
            news = [(number := dec.u32(), space.objects.get(number), dec.content()) for _ in range(dec.count())]
            for number, held, content in news:
                self._renew(space, number, held, content)
                if number & 1 == self.first & 1:
                    link.changed.append(held)
        if flags & EXTRA:
            self.extra_in(dec.value())
        if flags & APART:
            dec.space = Space(self.first)
        outer, space.reading = space.reading, set(space.reading)
        try:
            value = dec.value()
        except (CodecError, RecursionError, LinkGone):
            raise
        except Exception as error:
            if self.is_broken(error):
                raise
            # What the other end raised while it was asked about what it had sent.
            raise CodecError(f"a value that cannot be made here: {type(error).__name__}") from error
        finally:
            space.reading = outer
        if not dec.at_end():
            raise CodecError("more than one value")
        if kind == RAISE and not isinstance(value, BaseException):
            raise CodecError("what was raised is no exception")
        space.settle()
        if link.changed and kind != REQUEST:
            changed, link.changed = link.changed, []
            # By Python's custom what changes an argument in place answers None, or that argument.
            if kind == RETURN and value is not None and not any(value is held for held in changed):
                self.changed(changed[0])
        return kind, op, value

    @staticmethod
    def _renew(space: Space, number: int, held: Any, content: Any) -> None:
        if held is None:
            raise CodecError("news of a container that was not sent")
        try:
            replace(held, content)
        except Exception as error:  # noqa: BLE001  whatever makes it impossible
            raise CodecError(str(error)) from None
        if number in space.objects:
            space.snapshots[number] = snapshot(held)

    # -- threads --------------------------------------------------------------------------------------------------

    def attach(self) -> Link:
        """A link for a thread that has none."""
        raise NotImplementedError

    def serve_on(self, link: Link) -> None:
        """Serve what comes on a link, on the present thread, until it closes."""
        self._by_thread[self._ident()] = link
        while True:
            kind, op, value = self._receive(link)
            if kind == REQUEST:
                self.answer(link, op, value)
            else:
                self.spoiled(link, CodecError("an answer that nobody asked for"))

    # -- what the ends differ in ----------------------------------------------------------------------------------

    def serve(self, op: int, value: Any) -> Any:
        raise NotImplementedError

    def spoiled(self, link: Link, error: Exception) -> tuple[int, int, Any]:
        raise NotImplementedError

    def gone(self) -> Any:
        raise NotImplementedError

    def describe(self, kind: type) -> dict[str, Any]:
        raise NotImplementedError

    def moved(self) -> bool:
        """Whether names that the other end remembers mean something else."""
        return False

    def is_broken(self, error: Exception) -> bool:
        """Whether it says that the conversation is over already."""
        return False

    def extra_out(self, op: int) -> Any:
        """What travels beside a frame: releases, state, effects."""
        released: tuple[int, ...] | None = None
        if self.let_go:
            numbers: list[int] = []
            while self.let_go:
                numbers.extend(self.let_go.popleft())
            released = tuple(numbers)
        more = self.effects_out(op)
        return None if released is None and more is None else (released, more)

    def extra_in(self, extra: Any) -> None:
        if type(extra) is not tuple or len(extra) != 2:
            raise CodecError("what travels beside is a pair")
        released, more = extra
        if released is not None:
            if type(released) is not tuple or len(released) % 2 or not all(type(n) is int for n in released):
                raise CodecError("releases are numbers")
            for at in range(0, len(released), 2):
                self.exports.release(released[at], released[at + 1])
        if more is not None:
            self.effects_in(more)

    def effects_out(self, op: int) -> Any:
        return None

    def effects_in(self, effects: Any) -> None:
        raise CodecError("no effects are expected")

    def named(self, module: str, name: str) -> Any:
        raise NotImplementedError

    # -- values ---------------------------------------------------------------------------------------------------

    def other(self, enc: Encoder, value: Any) -> None:
        export.write(self, enc, value)

    def theirs(self, kind: int, number: int, group: int) -> Any:
        held = self.classes.get(number)
        if held is None:
            held = self.proxies.get(number)
        if held is not None:
            grip = mirror.grip_of(held)
            if grip is not None:
                grip.count += 1
            return held
        return making.make(self, kind, number, group)

    def ours(self, number: int) -> Any:
        return self.exports.get(number)

    def mirrored(self, number: int, group: int, value: Any) -> Any:
        return values.value(self, number, group, value)

    def raised(self, parts: Any) -> Any:
        return raised.exception(self, parts)

    def own_class(self, facts: dict[str, Any]) -> Any:
        """What this process itself has under a name of the project's dependencies, for a class of the other end's."""
        return None

    def is_dependency(self, kind: type) -> bool:
        return False

    def class_of(self, group: int) -> Any:
        """The mirror of a class of the other end's, for an object or a value of it. Exceptions cross in a form of their
        own, which says whose they are."""
        held = self.classes.get(group)
        if held is None:
            held = making.make(self, CLASS, group, 0)
        if BaseException in held.__mro__:
            raise CodecError("an exception that does not cross as one")
        return held

    def state_of(self, error: BaseException, state: dict[str, Any]) -> dict[str, Any]:
        """What of an exception's attributes crosses."""
        return state

    def trace_of(self, error: BaseException) -> str | None:
        """The traceback as text, where the other end may see it."""
        return None

    def crossed(self, error: BaseException, trace: Any) -> None:
        """An exception of the other end's was made here."""

    # -- what mirrors ask -----------------------------------------------------------------------------------------

    def compare(self, name: str, function: Any, left: Any, right: Any) -> Any:
        raise NotImplementedError

    def contains(self, holder: Any, item: Any) -> Any:
        return self.request(SPECIAL, ("__contains__", (holder, item)))

    def reduce(self, name: str, value: Any, args: tuple[Any, ...]) -> Any:
        return self.request(SPECIAL, (name, (value, *args)))

    def arithmetic(self, name: str, left: Any, right: Any) -> Any:
        return self.request(SPECIAL, (name, (left, right)))

    def reckoned(self, name: str, value: Any, args: tuple[Any, ...], answer: Any) -> None:
        """What came of a whole number and another."""

    def left(self, holder: Any, error: Any, answer: Any) -> Any:
        """A `with` block over an object of the other end's is over."""
        return answer

    def left_later(self, holder: Any, error: Any, answer: Any) -> Any:
        return answer

    def predicate(self, instance: Any, name: str, args: tuple[Any, ...], named: Any) -> Any:
        """A method that asks about a text."""
        return self.request(METHOD, (instance, name, args, named))

    def changed(self, container: Any) -> None:
        """The other end changed a container that was sent to it."""

    def starred(self, module: Any, names: Any, taken: dict[str, Any]) -> Any:
        """The names that a module takes which imports all that one of the other end's offers."""
        return names

    def surfaced(self, error: BaseException) -> None:
        """An exception came out of something that ran on the other end's loop."""

    def sank(self, error: BaseException) -> None:
        """One of ours went there."""

    def iterate(self, value: Any) -> Any:
        """An iterator over an object of the other end's; what is only a container comes in pieces."""
        items, rest = self.request(ITER, value)
        if rest is None:
            return iter(items)
        return self._pieces(rest, items) if items else rest

    def _pieces(self, rest: Any, items: Any) -> Any:
        while True:
            yield from items
            if rest is None:
                return
            items, rest = self.request(CHUNK, rest)

    def generator(self, number: int) -> Any:
        """A real generator that steps the other end's."""
        ref = mirror.Ref(number)
        grip = mirror.Grip(self, number)
        made = self._steps(ref, grip)
        self.proxies[number] = made
        self.foreign[made] = grip
        return made

    def _steps(self, ref: Any, grip: mirror.Grip) -> Any:
        more, value = self.request(STEP, (ref, "send", None))
        while more:
            try:
                sent = yield value
            except GeneratorExit:
                link = self._by_thread.get(self._ident())
                if link is None or link.busy:
                    self._unclosed.append((ref, grip))
                else:
                    self.request(STEP, (ref, "close", None))
                raise
            except BaseException as error:  # noqa: BLE001  the generator's to handle
                more, value = self.request(STEP, (ref, "throw", error))
            else:
                more, value = self.request(STEP, (ref, "send", sent))
        return value

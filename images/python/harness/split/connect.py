"""The oracle's end: sealed tests speak to the product through it, and everything the product says is checked here.

It never imports product code. What breaks the rules of the conversation is told as tampering and closes the link for
good; the product's death is PID 1's to judge, so an end that is gone is waited out.
"""

from __future__ import annotations

import _thread
import argparse
import logging
import sys
import types
from asyncio import _get_running_loop as _running
from collections.abc import Callable
from typing import Any, NoReturn

from . import asks, mirror, probes, remote, stars, twins
from .attached import Attached
from .claims import Claims
from .codec import CodecError
from .effects import State, happen
from .frozen import Frozen
from .guard import Guard
from .kept import Kept
from .link import Link
from .peer import Peer
from .reads import Reads
from .stdlib import resolve, value_base

REVERSE = 2
_WITH_A_LOOP = (asks.CALL, asks.METHOD)
_LOOKS = (asks.ITER, asks.CHUNK, asks.STEP, asks.COMPARE)
_NO_END = (asks.CALL, asks.METHOD, asks.GETATTR, asks.LOOKUP, asks.COMPARE, asks.SPECIAL)
_BAGS = (argparse.Namespace, types.SimpleNamespace)
_STEPS = ("__next__", "next", "send", "throw")


class ProductBroken(RuntimeError):
    """The product's process broke the rules of the conversation."""

    __tribunal_product__ = True


class Connection(Attached, Peer):
    oracle = True
    first = 2

    def __init__(
        self, links: list[int], tamper: Callable[[str, str], None], gone: Callable[[], NoReturn],
        sealed: Callable[[Any], bool] = lambda file: True,
    ) -> None:  # fmt: skip
        Peer.__init__(self, links, len(links) - REVERSE)
        Attached.__init__(self)
        self.tamper = tamper
        self._gone = gone
        self._guard = Guard(self, sealed, tamper)
        self._questions = twins.Questions()
        self.claims = Claims(self, self._questions, tamper)
        self.kept = Kept(lambda what: tamper("lied", what), sealed)
        self._looks: dict[int, tuple[Any, ...]] = {}
        self._shadows: dict[int, tuple[Any, Any]] = {}
        self._reads = Reads(lambda what: tamper("changed", what), sealed)
        self._state = State(True, self._reads)
        self._frozen = Frozen(self)
        self._levels: list[tuple[str | None, int]] = []
        self._reset: int | None = None  # the seed of a case that the product has not heard of yet
        self._seeded: tuple[Any, int] | None = None  # a test seeded `random`, and the product has not heard of it
        self._deferred: list[BaseException] = []
        self.dependency: Callable[[Any, Any], Any] = lambda module, name: None
        self._pool = self._links[1:-REVERSE]
        self._by_thread[self._ident()] = self._links[0]
        remote.set_loader(self)
        self._watch_levels()
        for link in self._links[-REVERSE:]:
            _thread.start_new_thread(self._reverse, (link,))

    def begin(self, secret: bytes) -> None:
        """Both ends have heard their orders, nothing was asked yet. The questions are drawn by the secret."""
        if secret:
            self._questions.know(secret)
        self._state.begin()

    # -- requests -------------------------------------------------------------------------------------------------

    def request(self, op: int, value: Any, apart: bool = False) -> Any:
        ident = self._ident()
        if ident not in self._threads and self._by_thread.get(ident) is not None:
            return self._requested(op, value, apart)
        link = self.taken()
        try:
            return self._requested(op, value, apart)
        finally:
            link.turn.release()

    def _requested(self, op: int, value: Any, apart: bool) -> Any:
        if _running() is not None and op in _WITH_A_LOOP:
            op, value = asks.INSIDE, (op, value)
        if self._looks and op not in _LOOKS and not (op == asks.SPECIAL and value[0] in probes.LOOKS):
            self._looks.clear()
        try:
            answer = super().request(op, value, apart)
        except StopIteration:
            stepped = value[1] if op == asks.METHOD else value[0] if op == asks.SPECIAL else None
            if op in _NO_END and stepped not in _STEPS:
                # A loop over `map` takes it for its own end, and skips what it would have asserted.
                self.tamper("lied", "a StopIteration of an ordinary call")
            raise
        except BaseException as error:
            self.kept.came_out(error)
            raise
        self.kept.ended()
        if self._deferred:
            raise self._deferred.pop()
        return answer

    def _reverse(self, link: Link) -> None:
        self.serve_on(link)

    def serve(self, op: int, value: Any) -> Any:
        self.kept.serves(1)
        try:
            answer = self._guard.serve(op, value)
            if op == asks.CALL:
                self.kept.went_well(value[0])
            return answer
        except CodecError as error:
            self.tamper("protocol", str(error))
            raise
        except BaseException as error:
            self.kept.went_in(error)
            raise
        finally:
            self.kept.serves(-1)

    def left(self, holder: Any, error: Any, answer: Any) -> Any:
        return self.kept.left(holder, error, answer)

    async def left_later(self, holder: Any, error: Any, answer: Any) -> Any:
        return self.kept.left(holder, error, await answer)

    def predicate(self, instance: Any, name: str, args: tuple[Any, ...], named: Any) -> Any:
        return self.claims.predicate(instance, name, args, named)

    def changed(self, container: Any) -> None:
        """An argument is another one after the call, and with it whatever the test computes from it."""
        self.tamper("changed", f"a {type(container).__name__} that a test gave away")

    def overwritten(self, target: Any) -> None:
        """An object of a test's has another value under a name, and so may what the test computes from it."""
        link = self._by_thread.get(self._ident())
        if link is not None:
            link.changed.append(target)

    def starred(self, module: Any, names: Any, taken: dict[str, Any]) -> list[Any]:
        return stars.kept(self, module, names, taken)

    def surfaced(self, error: BaseException) -> None:
        self.kept.came_out(error)

    def sank(self, error: BaseException) -> None:
        self.kept.went_in(error)

    def spoiled(self, link: Link, error: Exception) -> tuple[int, int, Any]:
        self.tamper("protocol", f"{type(error).__name__}: {error}"[:200])
        link.broken = True
        self._by_thread = _Broken()
        raise ProductBroken("the product's process broke the rules of the conversation")

    def gone(self) -> Any:
        self._gone()

    def is_broken(self, error: Exception) -> bool:
        return isinstance(error, ProductBroken)

    # -- values ---------------------------------------------------------------------------------------------------

    def named(self, module: str, name: str) -> Any:
        try:
            return resolve(module, name, True)
        except LookupError as error:
            raise CodecError(f"the product names {error}") from None

    def own_class(self, facts: dict[str, Any]) -> Any:
        return self.dependency(facts["module"], facts["qualname"])

    def is_dependency(self, kind: type) -> bool:
        """Whether a dependency of the project defines this class."""
        return self.dependency(kind.__module__, kind.__qualname__) is kind

    def describe(self, kind: type) -> dict[str, Any]:
        raise CodecError("facts are the guard's to give")

    def state_of(self, error: BaseException, state: dict[str, Any]) -> dict[str, Any]:
        """Exceptions cross to the product with type, arguments and text only."""
        return {}

    def crossed(self, error: BaseException, trace: Any) -> None:
        error.__dict__["__tribunal_product__"] = True
        if type(trace) is str:
            error.__dict__["__tribunal_traceback__"] = trace[-4000:]

    def look_up(self, module: Any, name: str) -> Any:
        """A name of a module of the product's."""
        remembered = self.remembered
        before = remembered.changes
        answer = self.request(asks.LOOKUP, (module, name))
        if type(answer) is not tuple or len(answer) != 2:
            raise CodecError("a name's meaning, and whether it stays")
        found, stays = answer
        if stays is True and remembered.usable and remembered.changes == before:
            remembered.put(remote.module_dict(module), name, found)
        return found

    # -- equality and order ---------------------------------------------------------------------------------------

    def compare(self, name: str, function: Any, left: Any, right: Any) -> Any:
        """The class's own method, run in the product. Its answer must be a bool, and it must know a difference."""
        if function is not None and "_t_local" in type(left).__dict__:
            return self.request(asks.CALL, (function, (left, right), ()), True)
        if name in ("__eq__", "__ne__") and type(right) in _BAGS and left.__class__ is type(right):
            return self._same_bag(left, right) is (name == "__eq__")
        return self.claims.compare(name, left, right)

    def _same_bag(self, left: Any, right: Any) -> bool:
        """Objects that are nothing but their attributes are compared here, as data classes are."""
        held = self.request(asks.GETATTR, (left, "__dict__"))
        return type(held) is dict and held == vars(right)

    def contains(self, holder: Any, item: Any) -> Any:
        """`in`: a container that holds what was made here and now holds everything."""
        return self.claims.contains(holder, item)

    def arithmetic(self, name: str, left: Any, right: Any) -> Any:
        """A difference or quotient: what is near to every number is near to none."""
        coin = self._questions.about(name, left, right)
        around = self.claims.around(coin, right) if probes.is_reckoned(right) else ()
        answer, told = self._questions.among(
            coin,
            around,
            lambda other: self._reckoned(name, left, other),
            lambda: self.request(asks.SPECIAL, (name, (left, right))),
        )
        if len(around) < 2:
            return answer
        if not probes.is_reckoned(answer):
            if probes.is_reckoned(step := abs(right - around[0])):
                self._shadow(answer, told[0], step)
        elif all(probes.is_reckoned(part) for part in told) and probes.ignores(name, (right, *around), (answer, *told)):
            self.tamper("lied", f"{type(left).__qualname__}.{name} does not depend on a {type(right).__name__}")
        return answer

    def reckoned(self, name: str, value: Any, args: tuple[Any, ...], answer: Any) -> None:
        """What a whole number is said to be by another, where its value is here: it is what it is."""
        if value_base(type(value)) is not int or type(answer) not in (int, bool) or type(args[0]) is not int:
            return
        try:
            plain = getattr(int, name)(value, *args)
        except (ArithmeticError, ValueError, TypeError):
            return
        if type(plain) is int and plain != answer:
            self.tamper("lied", f"{type(value).__qualname__}.{name} is not what its value is")

    def reduce(self, name: str, value: Any, args: tuple[Any, ...]) -> Any:
        """What is made of a difference: another one when another number was subtracted."""
        shadow = self._shadows.get(mirror.number_of(value)) if self._shadows else None
        # Which of two differences is asked first nobody foresees: the first would tell an object the test's number.
        answer, told = self._questions.among(
            self._questions.about(name, value, None),
            [] if shadow is None else [shadow[0]],
            lambda other: self._reckoned(name, other, *args),
            lambda: self.request(asks.SPECIAL, (name, (value, *args))),
        )
        if not args and probes.is_number(answer):
            plain = self._plain(name, value)
            if probes.is_number(plain) and answer == answer and answer != plain:  # noqa: PLR0124  not a number
                self.tamper("lied", f"{type(value).__qualname__}.{name} is not what its value is")
        if shadow is not None:
            (second,), (_, step) = told, shadow
            if not probes.is_reckoned(answer):
                self._shadow(answer, second, step)
            elif probes.same(answer, second, step):
                self.tamper("lied", f"{type(value).__qualname__}.{name} is the same for every difference")
        return answer

    def _plain(self, name: str, value: Any) -> Any:
        """What a number says of itself, where its value is here or it tells a float."""
        base = value_base(type(value))
        if base in (int, float):
            return getattr(base, name)(value)
        held = self._reckoned("__float__", value) if name == "__abs__" and hasattr(type(value), "__float__") else None
        return abs(held) if type(held) is float else None

    def _shadow(self, answer: Any, second: Any, step: Any) -> None:
        """Two objects that came of one question with two numbers, for as long as the case runs."""
        theirs = mirror.grip_of(answer) is not None and mirror.grip_of(second) is not None
        if theirs and len(self._shadows) < probes.MOST:
            self._shadows[mirror.number_of(answer)] = (second, step)

    def _reckoned(self, name: str, *args: Any) -> Any:
        try:
            return self.request(asks.SPECIAL, (name, args))
        except Exception:  # noqa: BLE001  it cannot reckon with such a number
            return None

    def iterate(self, value: Any) -> Any:
        """An object with a length shows the same content at every look, as long as nothing else is asked meanwhile."""
        if not any("__len__" in vars(part) for part in type(value).__mro__):
            return super().iterate(value)
        items, rest = self.request(asks.ITER, value)
        if rest is value:
            return value
        if rest is None:
            self.looked(value, items)
            return iter(items)
        return probes.Look(self, value, self._pieces(rest, items) if items else rest)

    def looked(self, value: Any, items: Any) -> None:
        """A look at all of an object's content is over."""
        number = mirror.number_of(value)
        before = self._looks.get(number)
        if before is not None and type(items) is tuple and probes.differ(before, items[: probes.MOST]):
            self.tamper("lied", f"{type(value).__qualname__} shows another content at every look")
        if type(items) is tuple:
            self._looks[number] = items[: probes.MOST]

    # -- between cases --------------------------------------------------------------------------------------------

    def between_cases(self, seed: int = 0, case: str = "") -> None:
        """Nothing shared is followed into the next case; what the tests no longer hold is let go."""
        self._questions.border(case)
        self._frozen.look()
        self.kept.between_cases()
        self._reads.between_cases()
        self._shadows.clear()
        for link in self._links:
            link.space.clear()
        self.remembered.usable = not any(ident in self._threads for ident in sys._current_frames())
        self._reset, self._seeded = seed, None

    def seeded(self, seed: Any, version: int) -> None:
        """The product's generator is seeded alike before it is asked for anything more."""
        self._seeded = seed, version

    def drawn(self) -> bool:
        """Whether the product drew from generators that it shares, unseen by its own end. One that was not asked for
        anything did not."""
        try:
            return self._reset is None and self.request(asks.DRAWN, None) is True
        except Exception:  # noqa: BLE001  a product that cannot say so is told elsewhere
            return False

    def leave_to_parent(self) -> None:
        """In a fork of the oracle: the links are its parent's."""
        self._by_thread = _Broken()

    def find(self, name: str, paths: tuple[str, ...]) -> Any:
        return self.request(asks.FIND, (name, paths))

    def load(self, name: str) -> Any:
        return self.request(asks.IMPORT, name)

    def effects_out(self, op: int) -> Any:
        state = self._state.changes()
        if state is None and not self._levels and self._reset is None and self._seeded is None:
            return None
        levels, self._levels = tuple(self._levels), []
        reset, self._reset = self._reset, None
        seeded, self._seeded = self._seeded, None
        return state, levels, reset, seeded

    def effects_in(self, effects: Any) -> None:
        if type(effects) is not tuple or len(effects) != 2:
            raise CodecError("effects are a pair")
        state, happened = effects
        if state is not None:
            self._state.apply(state)
        if happened is not None:
            try:
                happen(happened, lambda what: self.tamper("foreign-module", what))
            except CodecError:
                raise
            except Exception as error:  # noqa: BLE001  a warning that a filter made an error, say
                self._deferred.append(error)

    def _watch_levels(self) -> None:
        levels = self._levels_set
        set_level = logging.Logger.setLevel

        def setLevel(logger: logging.Logger, level: Any) -> None:  # noqa: N802  it stands in for logging's
            set_level(logger, level)
            levels(logger.name if logger is not logging.root else "", logger.level)

        logging.Logger.setLevel = setLevel  # type: ignore[method-assign, assignment]
        disable = logging.disable

        def watched(level: int = logging.CRITICAL) -> None:
            disable(level)
            levels(None, level)

        logging.disable = watched

    def _levels_set(self, name: str | None, level: int) -> None:
        self._levels.append((name, level))


class _Broken(dict[int, Any]):
    """No thread has a link any more."""

    def get(self, key: Any, default: Any = None) -> Any:
        raise ProductBroken("the product cannot be called any more")

"""Records: what an attempt says on its pipe to frames for the server.

All of it is the candidate's word. The ledger takes a record only in its proper order (cases are collected once, one
case runs at a time, phases follow each other), copies field by field with a cap on each, and raises `ForeignRecord`
for anything else, which ends the attempt as `protocol`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from . import counts
from .canary import Canary, places
from .cassettes import Deck
from .frames import Message, plain

NODE, REASON, TYPE, MESSAGE, TRACEBACK, NAME = 4200, 2000, 200, 2000, 6000, 1000
TAMPERS, WHAT = 20, 200  # tampers of a phase, and outside of any case
MARKS, CASES, NODES = 64, 200_000, 64 << 20  # marks of a case; cases, and characters of their ids, of an attempt
OUTCOMES = ("passed", "failed", "skipped")
RAISERS = ("sealed", "product", "runner")
TAMPER_KINDS = ("refused", "universal-equality", "lied", "protocol", "foreign-module", "changed", "witness", "audit")
FOLLOWS = {"setup": ("call", "teardown"), "call": ("teardown",), "teardown": (None,)}


class ForeignRecord(ValueError):
    """Not what the harness's own plug-in would have written here."""


@dataclass
class Running:
    """The case an attempt is in."""

    node: str
    when: str = "setup"
    phases: list[Message] = field(default_factory=list)
    tamper: list[Message] = field(default_factory=list)  # of the phase it is in
    words: str | None = None  # a canary's
    reads: list[counts.Snapshot] = field(default_factory=lambda: [counts.NONE, counts.NONE])  # oracle's, product's

    def told_reads(self) -> Message:
        """Only what was read at all."""
        return {
            side: {name: count for name, count in zip(counts.SOURCES, read, strict=True) if count} if any(read) else {}
            for side, read in zip(("oracle", "product"), self.reads, strict=True)
        }


class Printed(Protocol):
    """What the attempt printed, by the numbers of the marks it set."""

    def begin(self, number: int) -> None: ...

    def take(self, number: int) -> str: ...


class Ledger:
    def __init__(
        self, attempt: int, output: Printed, canaries: Sequence[Canary] = (), deck: Deck | None = None,
        any_order: bool = False,
    ) -> None:  # fmt: skip
        self.booted = False
        self.ended = False
        self.running: Running | None = None
        self.tamper: list[Message] = []  # outside of any case
        self.canaries: Message = {"run": 0, "passed": 0}
        self._attempt = attempt
        self._output = output
        self._planted = canaries
        self._deck = deck
        self.words_due = 0  # how often the oracle may go on: on both sides of a case with a cassette
        self._words: dict[int, str] = {}  # of the canaries, by number
        self._pieces: list[Message] = []  # of the collection, until it is whole
        self._collecting = True
        self._nodes: list[str] = []
        self._next = 0
        self._any_order = any_order  # cases may come the other way round, though each but once
        self._begun: set[int] = set()

    def accept(self, record: Message) -> list[Message]:
        """Takes one record; gives the frames that are due now."""
        kind = record.get("kind")
        if self.ended:
            raise ForeignRecord("a record after the last one")
        if not self.booted:
            if kind != "booted":
                raise ForeignRecord("a record before the first one")
            self.booted = True
            return []
        if kind == "tamper":
            self._tamper(record)
            return []
        if kind == "collected" and self._collecting:
            return self._collected(record)
        if kind == "begin" and not self._collecting and self.running is None:
            return self._begin(record)
        if kind == "phase" and self.running is not None:
            return self._phase(record, self.running)
        if kind == "end" and not self._collecting and self.running is None:
            self.ended = True
            return []
        raise ForeignRecord(f"a record of kind {str(kind)[:20]!r} out of order")

    def interrupted(self, output: str) -> list[Message]:
        """The frame of the case that was running when the attempt ended, if one was."""
        running, self.running = self.shown, None
        if running is None:
            return []
        running.phases.append(
            {
                "when": running.when, "outcome": "failed", "xfail": None, "xpassed": False, "skip_reason": None,
                "by": "runner", "exception": None, "output": output, "duration_ms": 0.0, "reported": False,
                "tamper": running.tamper,
            }
        )  # fmt: skip
        return [self._case(running)]

    @property
    def shown(self) -> Running | None:
        """The case the attempt is in, unless it is a canary."""
        return None if self.running is None or self.running.words is not None else self.running

    def _collected(self, record: Message) -> list[Message]:
        cases = [self._collected_case(item) for item in _list(record, "cases")]
        if len(self._nodes) > CASES or sum(map(len, self._nodes)) > NODES:
            raise ForeignRecord("too many cases")
        errors = [
            {"file": _text(item, "file", NODE), "exception": _exception(_object(item, "exception"))}
            for item in _list(record, "errors")
        ]
        skips = [
            {
                "node": _text(item, "node", NODE), "file": _text(item, "file", NODE),
                "reason": _text(item, "reason", REASON), "by": _one_of(item, "by", RAISERS),
            }
            for item in _list(record, "skips")
        ]  # fmt: skip
        more = _truth(record, "more")
        self._collecting = more
        self._pieces.append(
            {
                "type": "collected", "attempt": self._attempt, "cases": cases, "errors": errors, "skips": skips,
                "more": more,
            }
        )  # fmt: skip
        if more:
            return []
        pieces, self._pieces = self._pieces, []
        self._take_canaries_out(pieces)
        return pieces

    def _take_canaries_out(self, pieces: list[Message]) -> None:
        """Where they stand is PID 1's own draw, so no name is needed to know them."""
        others = len(self._nodes) - len(self._planted) if self._nodes else 0
        if self._nodes and others < 1:
            raise ForeignRecord("a collection without its canaries")
        standing = places(self._planted, others)
        self._words = {at: canary.words for at, canary in zip(standing, self._planted, strict=False)}
        begin = 0
        for piece in pieces:
            cases = piece["cases"]
            piece["cases"] = [case for n, case in enumerate(cases, begin) if n not in self._words]
            begin += len(cases)

    def _collected_case(self, item: Message) -> Message:
        node = _text(item, "node", NODE)
        self._nodes.append(node)
        marks = [plain(mark)[:TYPE] for mark in item.get("marks", ())[:MARKS] if isinstance(mark, str)]
        return {
            "node": node, "file": _text(item, "file", NODE), "qualname": _text(item, "qualname", NAME),
            "marks": marks,
        }  # fmt: skip

    def _begin(self, record: Message) -> list[Message]:
        number = _count(record, "case")
        due = number not in self._begun if self._any_order else self._next <= number
        if not due or number >= len(self._nodes):
            raise ForeignRecord("a case that is not due")
        self._next = number + 1
        if self._any_order:
            self._begun.add(number)
        self._output.begin(_count(record, "mark"))
        self.running = running = Running(self._nodes[number], words=self._words.get(number))
        if self._deck is not None and running.words is None and self._deck.on(running.node):
            self.words_due += 1
        return []

    def _phase(self, record: Message, running: Running) -> list[Message]:
        """What a record does not say of a phase is as in one that passed with nothing to tell; its outcome it says."""
        if _count(record, "case") != self._next - 1:
            raise ForeignRecord("a phase of another case")
        when, following = _one_of(record, "when", tuple(FOLLOWS)), record.get("next")
        if when != running.when or following not in FOLLOWS[when]:
            raise ForeignRecord("a phase out of order")
        exception = record.get("exception")
        running.phases.append(
            {
                "when": when,
                "outcome": _one_of(record, "outcome", OUTCOMES),
                "xfail": _optional_text(record, "xfail", REASON),
                "xpassed": "xpassed" in record and _truth(record, "xpassed"),
                "skip_reason": _optional_text(record, "skip_reason", REASON),
                "by": _one_of(record, "by", RAISERS),
                "exception": None if exception is None else _exception(_object(record, "exception")),
                "output": self._output.take(_count(record, "mark")),
                "duration_ms": _duration(record, "duration_ms"),
                "reported": True,
                "tamper": running.tamper,
            }
        )
        running.tamper = []
        if "reads" in record:
            running.reads = [counts.added(*pair) for pair in zip(running.reads, _reads(record), strict=True)]
        if following is not None:
            running.when = following
            return []
        self.running = None
        if running.words is not None:
            self._canary(running, running.words)
            return []
        case = self._case(running)
        self.words_due += "cassette" in case
        return [case]

    def _canary(self, running: Running, words: str) -> None:
        said = [(phase["exception"] or {}).get("message") for phase in running.phases if phase["outcome"] == "failed"]
        self.canaries["run"] += 1
        self.canaries["passed"] += said != [words]
        seen = [told for phase in running.phases for told in phase["tamper"] if told not in self.tamper]
        self.tamper = [*self.tamper, *seen][:TAMPERS]

    def _tamper(self, record: Message) -> None:
        into = self.tamper if self.running is None else self.running.tamper
        told = {"kind": _one_of(record, "tamper", TAMPER_KINDS), "what": _text(record, "what", WHAT)}
        if told not in into and len(into) < TAMPERS:
            into.append(told)

    def _case(self, running: Running) -> Message:
        reads = running.told_reads()
        used = self._deck.off(reads) if self._deck is not None else None
        return {
            "type": "case", "attempt": self._attempt, "node": running.node, "phases": running.phases, "reads": reads,
            **({} if used is None else {"cassette": used}),
        }  # fmt: skip


def _exception(item: Message) -> Message:
    return {
        "type": _text(item, "type", TYPE),
        "message": _text(item, "message", MESSAGE),
        "traceback": _text(item, "traceback", -TRACEBACK),
    }


def _text(item: Message, key: str, cap: int) -> str:
    value = item.get(key)
    if not isinstance(value, str):
        raise ForeignRecord(f"{key} is not a text")
    return plain(value[:cap] if cap > 0 else value[cap:])


def _optional_text(item: Message, key: str, cap: int) -> str | None:
    return None if item.get(key) is None else _text(item, key, cap)


def _one_of(item: Message, key: str, choices: tuple[str, ...]) -> str:
    value = item.get(key)
    if not isinstance(value, str) or value not in choices:
        raise ForeignRecord(f"{key} is none of {choices}")
    return value


def _truth(item: Message, key: str) -> bool:
    value = item.get(key)
    if not isinstance(value, bool):
        raise ForeignRecord(f"{key} is not a truth value")
    return value


def _count(item: Message, key: str) -> int:
    value = item.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**53:
        raise ForeignRecord(f"{key} is not a count")
    return value


def _reads(item: Message) -> list[counts.Snapshot]:
    """Counts of two processes."""
    value = item["reads"]
    if not isinstance(value, list) or len(value) != 2:
        raise ForeignRecord("reads are not those of two processes")
    for read in value:
        if not isinstance(read, list) or len(read) != len(counts.SOURCES) or not all(map(_is_cell, read)):
            raise ForeignRecord("reads are not counts")
    return [tuple(read) for read in value]


def _is_cell(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**32


def _duration(item: Message, key: str) -> float:
    value = item.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value) or value < 0:
        raise ForeignRecord(f"{key} is not a duration")
    return round(min(float(value), 1e9), 3)


def _object(item: Message, key: str) -> Message:
    value = item.get(key)
    if not isinstance(value, dict):
        raise ForeignRecord(f"{key} is not an object")
    return value


def _list(item: Message, key: str) -> list[Any]:
    value = item.get(key)
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise ForeignRecord(f"{key} is not a list of objects")
    return value

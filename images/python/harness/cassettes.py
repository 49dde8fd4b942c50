"""Cassettes: what is on record for single cases, and what of it is on while such a case runs.

Orders become typed records before the first attempt. For the time of one case the pin page says its clock, the key of
its seed and where its listings are, and the replay answers its requests; afterwards all is as the attempt's order said.
The oracle waits for PID 1's word on both sides of such a case. Never judges: what was used and what was missed is told.
"""

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from .frames import Message, plain
from .listings import Listings, Table
from .orders import BadOrder, Instant
from .orders import seed as seed_of
from .pins import PinPage, entropy_key

NAMES, NAME = 1000, 500  # of pins used or missed that one case tells


@dataclass(frozen=True)
class Exchange:
    """One recorded request and its answer. `None` is: not recorded, so not compared."""

    method: str
    path: str
    host: str | None
    query: str | None
    request_sha256: str | None
    status: int
    headers: Mapping[str, str]
    body_sha256: str | None

    @property
    def pin(self) -> str:
        return f"http:{self.method} {self.path}"

    @classmethod
    def parse(cls, data: object) -> "Exchange":
        if not isinstance(data, dict):
            raise BadOrder("an exchange is not an object")
        status, headers = data.get("status"), data.get("headers") or {}
        if not isinstance(status, int) or isinstance(status, bool) or not 100 <= status <= 999:
            raise BadOrder("an exchange without a status")
        if not isinstance(headers, dict) or not all(isinstance(each, str) for pair in headers.items() for each in pair):
            raise BadOrder("headers are not texts")
        return cls(
            method=_text(data, "method"), path=_text(data, "path"), host=_optional(data, "host"),
            query=_optional(data, "query"), request_sha256=_optional(data, "request_sha256"), status=status,
            headers=dict(headers), body_sha256=_optional(data, "body_sha256"),
        )  # fmt: skip


@dataclass(frozen=True)
class Cassette:
    """The record of one case."""

    node: str
    clock: Instant | None
    seed: int | None
    fs: Mapping[str, tuple[str, ...]]
    http: tuple[Exchange, ...]

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "Cassette":
        clock, seed, fs, http = data.get("clock"), data.get("seed"), data.get("fs") or {}, data.get("http") or []
        if not isinstance(fs, dict) or not isinstance(http, list):
            raise BadOrder("fs is not an object, or http is no list")
        listings = {}
        for directory, names in fs.items():
            if not isinstance(names, list) or not all(isinstance(name, str) and "\0" not in name for name in names):
                raise BadOrder("a listing is not a list of names")
            listings[directory] = tuple(names)
        return cls(
            node=_text(data, "node"),
            clock=None if clock is None else Instant.parse(_text(data, "clock")),
            seed=None if seed is None else seed_of(data, "seed"),
            fs=listings,
            http=tuple(Exchange.parse(each) for each in http),
        )


class Replay(Protocol):
    """What answers requests while a case with a cassette runs."""

    def on(self, cassette: Cassette, bodies: Mapping[str, bytes]) -> None: ...

    def off(self) -> tuple[list[str], list[str]]:
        """The pins that were used, and what was asked for and is not on record."""
        ...


class NoReplay:
    """Nobody answers: without a network every request fails by itself."""

    def on(self, cassette: Cassette, bodies: Mapping[str, bytes]) -> None:
        pass

    def off(self) -> tuple[list[str], list[str]]:
        return [], []


class Shelf:
    """All cassettes of a room, with their bodies."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}
        self._cassettes: dict[str, Cassette] = {}
        self._tables: dict[str, Table] = {}
        self._pieces: dict[str, bytearray] = {}

    def cassette(self, message: Message, listings: Listings) -> None:
        cassette = Cassette.parse(message)
        if cassette.node in self._cassettes:
            raise BadOrder("two cassettes for one case")
        self._cassettes[cassette.node] = cassette
        if cassette.fs:
            self._tables[cassette.node] = listings.add(cassette.fs)

    def body(self, message: Message) -> None:
        digest, data = _text(message, "sha256"), _text(message, "data")
        pieces = self._pieces.setdefault(digest, bytearray())
        try:
            pieces += base64.b64decode(data, validate=True)
        except binascii.Error as error:
            raise BadOrder("a body is not base64") from error
        if message.get("more"):
            return
        whole = bytes(self._pieces.pop(digest))
        if hashlib.sha256(whole).hexdigest() != digest:
            raise BadOrder("a body is not what its digest says")
        self.bodies[digest] = whole

    def seeds(self) -> dict[str, int | None]:
        """The cases that have a cassette, and the seed that it names."""
        return {node: cassette.seed for node, cassette in self._cassettes.items()}

    def of(self, node: str) -> tuple[Cassette, Table | None] | None:
        cassette = self._cassettes.get(node)
        return None if cassette is None else (cassette, self._tables.get(node))


class Deck:
    """What is on during one attempt."""

    def __init__(
        self, shelf: Shelf, pins: PinPage, replay: Replay, clock: Instant, seed: int,
        listed: Callable[[int], tuple[set[int], set[int]]], sought: Callable[[], set[str]],
    ) -> None:  # fmt: skip
        self._shelf, self._pins, self._replay = shelf, pins, replay
        self._clock, self._seed = clock, seed
        self._listed = listed  # of so many directories, by number: those that were listed, and those that differed
        self._sought = sought  # addresses outside of this machine: no name leads to one, so no record answers there
        self._on: tuple[Cassette, Table | None] | None = None
        self._played = 0

    def on(self, node: str) -> bool:
        """Whether the case has a cassette; it is on now."""
        found = self._shelf.of(node)
        if found is None:
            return False
        cassette, table = found
        self._listed(0)
        self._played += 1
        seed = self._seed if cassette.seed is None else cassette.seed
        self._pins.change(
            clock=cassette.clock or self._clock, table=table,
            # A key of its own, so that the case's stream begins at its begin, whatever ran before it.
            key=entropy_key(seed, f"case:{node}"),
        )  # fmt: skip
        self._replay.on(cassette, self._shelf.bodies)
        self._on = found
        return True

    def off(self, reads: Message) -> Message | None:
        """What became of the cassette that was on, by what the case is said to have read."""
        if self._on is None:
            return None
        (cassette, table), self._on = self._on, None
        used, misses = self._replay.off()
        misses = [*sorted(self._sought()), *misses]
        # Not the attempt's first key again: its streams would repeat what earlier cases drew.
        self._pins.change(self._clock, None, entropy_key(self._seed, f"after:{self._played}"))
        read = {name for counts in reads.values() for name, count in counts.items() if count}
        pins = ["clock"] if cassette.clock is not None and "wall_clock" in read else []
        pins += ["rng_seed"] if cassette.seed is not None and "entropy" in read else []
        if table is not None:
            listed, differed = self._listed(len(table.directories))
            pins += [f"fs:{table.directories[number]}" for number in sorted(listed)]
            misses = [*(f"fs:{table.directories[number]}" for number in sorted(differed)), *misses]
        return {"used": _capped([*pins, *used]), "misses": _capped(misses)}


def _capped(names: list[str]) -> list[str]:
    return [plain(name[:NAME]) for name in dict.fromkeys(names)][:NAMES]


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    if not isinstance(value, str) or "\0" in value:
        raise BadOrder(f"{key} of a cassette is not a text")
    return value


def _optional(data: Mapping[str, Any], key: str) -> str | None:
    return None if data.get(key) is None else _text(data, key)

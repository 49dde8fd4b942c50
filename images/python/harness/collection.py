"""Collection: pytest's items to the cases, errors and silences that an attempt reports before it runs anything."""

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from _pytest.config import ConftestImportFailure

from .channel import Channel
from .frames import Message

NODE, BATCH = 4000, 150_000  # characters of an id; of text in one record
NAME, MARKS = 200, 64


@dataclass
class Collected:
    cases: list[Message] = field(default_factory=list)
    errors: list[Message] = field(default_factory=list)
    skips: list[Message] = field(default_factory=list)

    def send(self, channel: Channel) -> None:
        batch: dict[str, list[Message]] = {"cases": [], "errors": [], "skips": []}
        size = 0
        for key, item in self._all():
            weight = sum(len(str(value)) for value in item.values()) + 100
            if size + weight > BATCH and size:
                channel.send(kind="collected", more=True, **batch)
                batch = {"cases": [], "errors": [], "skips": []}
                size = 0
            batch[key].append(item)
            size += weight
        channel.send(kind="collected", more=False, **batch)

    def _all(self) -> Iterator[tuple[str, Message]]:
        for key, items in (("cases", self.cases), ("errors", self.errors), ("skips", self.skips)):
            for item in items:
                yield key, item


def failure(file: str, exception: Message) -> Message:
    return {"file": file, "exception": exception}


def conftest_failure(error: BaseException, tree: str) -> tuple[str, BaseException] | None:
    """The conftest that could not be imported, and why."""
    if not isinstance(error, ConftestImportFailure):
        return None
    return os.path.relpath(error.path, tree), error.cause


def silence(node: str, file: str, reason: str, by: str) -> Message:
    return {"node": node, "file": file, "reason": reason[:2000], "by": by}


def name(item: pytest.Item) -> str:
    """pytest's own id; one that is too long to carry ends in its digest."""
    text = item.nodeid
    if len(text) <= NODE:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[: NODE - 40]}...{digest[:32]}"


def unique(names: list[str]) -> list[str]:
    """Each later case of a name gets `#2`, `#3`, in collection order, so that every id means one case."""
    seen: Counter[str] = Counter()
    taken = set(names)
    out = []
    for text in names:
        seen[text] += 1
        candidate = text if seen[text] == 1 else f"{text}#{seen[text]}"
        while seen[text] > 1 and candidate in taken:
            seen[text] += 1
            candidate = f"{text}#{seen[text]}"
        taken.add(candidate)
        out.append(candidate)
    return out


def file_of(item: pytest.Item | pytest.Collector) -> str:
    return item.nodeid.split("::", 1)[0]


def qualname(item: pytest.Item) -> str:
    """Classes and function as the source names them, without parameters."""
    chain = [node.name for node in item.listchain() if isinstance(node, pytest.Class)]
    function: Any = getattr(item, "originalname", None) or item.name.split("[", 1)[0]
    return ".".join([*chain, str(function)])[: 5 * NAME]


def marks(item: pytest.Item) -> list[str]:
    return sorted({mark.name[:NAME] for mark in item.iter_markers()})[:MARKS]


def case(item: pytest.Item, node: str) -> Message:
    return {"node": node, "file": file_of(item), "qualname": qualname(item), "marks": marks(item)}

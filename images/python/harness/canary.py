"""Canaries: planted cases that must fail, among the others and under names like theirs.

PID 1 draws how many, where and with which words they fail; it takes them out of what the server is told, and counts
those that did not fail by exactly these words. Whatever turns failures into passes turns theirs as well.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from secrets import randbelow, token_hex
from typing import TYPE_CHECKING

from .failing import failing

if TYPE_CHECKING:
    import pytest

ENDINGS = ("again", "twice", "at_once", "by_default", "in_order", "of_many", "when_empty", "with_defaults", "as_before")


@dataclass(frozen=True)
class Canary:
    place: int
    words: str


def drawn() -> tuple[Canary, ...]:
    return tuple(Canary(randbelow(1 << 30), token_hex(12)) for _ in range(1 + randbelow(2)))


def places(canaries: Sequence[Canary], others: int) -> list[int]:
    """Where each stands once all of them are among so many others. None are planted among none.

    Each stands before one of the others: what stood last would be torn down with everything that is still up, and a
    fixture that fails then would be the canary's failure instead of a case's.
    """
    standing: list[int] = []
    for canary in canaries if others else ():
        at = canary.place % (others + len(standing))
        standing = [place + (place >= at) for place in standing]
        standing.append(at)
    return standing


def plant(canaries: Sequence[Canary], cases: list[tuple["pytest.Item", str]]) -> list[tuple[int, "pytest.Item", str]]:
    """Puts them among the cases; gives the places at which to put what else goes by case, in this order."""
    planted = []
    for canary in canaries if cases else ():
        at = canary.place % len(cases)
        item = _item(cases, at, canary)
        cases.insert(at, (item, item.nodeid))
        planted.append((at, item, item.nodeid))
    return planted


def _item(cases: list[tuple["pytest.Item", str]], at: int, canary: Canary) -> "pytest.Item":
    import pytest
    from _pytest.fixtures import FuncFixtureInfo

    before, after = cases[at - 1][0] if at else None, cases[at][0] if at < len(cases) else None
    taken = {node for _, node in cases}
    parent = _parent(before, after)
    draw = random.Random(canary.words)  # noqa: S311  a name that nobody is told
    stems = sorted({str(getattr(item, "originalname", None) or item.name) for item, _ in cases})
    name = f"{draw.choice(stems)}_{draw.choice(ENDINGS)}"
    while f"{parent.nodeid}::{name}" in taken:
        name += f"_{draw.choice(ENDINGS)}"
    nothing = FuncFixtureInfo((), (), [], {})
    made: pytest.Item = pytest.Function.from_parent(
        parent, name=name, callobj=failing(canary.words), fixtureinfo=nothing
    )
    return made


def _parent(before: "pytest.Item | None", after: "pytest.Item | None") -> "pytest.Collector":
    """A node that is set up at this moment anyway: a canary must not bring any fixture down, or up early."""
    import pytest

    chain = [node for node in (before or after).listchain() if after is None or node in after.listchain()]  # type: ignore[union-attr]
    inside = [node for node in chain if isinstance(node, pytest.Module | pytest.Class)]
    if inside:
        return inside[-1]
    module = (after or before).getparent(pytest.Module)  # type: ignore[union-attr]
    if module is not None:
        return module
    parent = (after or before).parent  # type: ignore[union-attr]
    assert isinstance(parent, pytest.Collector)
    return parent

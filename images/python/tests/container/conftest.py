"""Fixtures for tests in real containers: each builds a tree, opens a room, and reads the frames."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from room import LABEL, Attempt, Room, lay

Open = Callable[..., Room]


@pytest.fixture
def open_room(tmp_path: Path) -> Iterator[Open]:
    """Opens and configures a room over a tree of the given files."""
    with ExitStack() as rooms:

        def make(files: Mapping[str, str], policy: Mapping[str, Any] | None = None, **options: Any) -> Room:
            tree = lay(tmp_path / f"tree{len(list(tmp_path.iterdir()))}", files)
            room = rooms.enter_context(Room(tree, policy, **options))
            answer = room.configure()
            assert answer["type"] == "configured", answer
            return room

        yield make


@pytest.fixture
def attempt(open_room: Open) -> Callable[..., Attempt]:
    """One attempt over a tree of the given files."""

    def run(files: Mapping[str, str], policy: Mapping[str, Any] | None = None, **order: Any) -> Attempt:
        return open_room(files, policy).attempt(**order)

    return run


@pytest.fixture
def split(open_room: Open) -> Callable[..., Attempt]:
    """The same in two processes, the oracle's and the product's."""

    def run(files: Mapping[str, str], policy: Mapping[str, Any] | None = None, **order: Any) -> Attempt:
        return open_room(files, {"shared": [], **(policy or {})}).attempt(**order)

    return run


def pytest_sessionfinish() -> None:
    left = subprocess.run(
        ["docker", "ps", "-aq", "--filter", f"label={LABEL}"], capture_output=True, text=True, check=False
    ).stdout.split()
    if left:
        subprocess.run(["docker", "rm", "-f", *left], capture_output=True, check=False)
        raise AssertionError(f"containers left: {left}")

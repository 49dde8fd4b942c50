#!/usr/bin/env python3
"""What an attempt costs for each case, beside pytest in one process: a JSON line for each way, microseconds.

`cost.py [--cases N] [--rounds N]`: a suite of N parametrized cases that call the product once, run by plain `pytest`, by
`pytest` with pytest-repeat (seven times), and as one attempt of the harness, shared and split, in turns. The container's
CPU time says what is paid, wall time what the machine's other work makes of it; medians. Both kinds of container have one
CPU. pytest-repeat comes from PyPI by pip.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import room  # noqa: E402

REPEATS = 7
REPEAT = "pytest-repeat==0.9.4 --hash=sha256:c1738b4e412a6f3b3b9e0b8b29fcd7a423e50f87381ad9307ef6f5a8601139f3\n"
SRC = "def double(n):\n    return n + n\n"
SUITE = """import pytest
from calc import double

@pytest.mark.parametrize("n", range({cases}))
def test_double(n):
    assert double(n) == 2 * n
"""
PYTEST = ("python3", "-m", "pytest", "-q", "-p", "no:cacheprovider")


class Paid:
    """What a container has had so far: processor time in seconds, and page faults."""

    def __init__(self, name: str) -> None:
        found = subprocess.run(
            ["docker", "inspect", "-f", "{{.Id}}", name], capture_output=True, text=True, check=True
        ).stdout.strip()
        self._old = Path(f"/sys/fs/cgroup/cpuacct/docker/{found}/cpuacct.usage")
        self._new = Path(f"/sys/fs/cgroup/system.slice/docker-{found}.scope/cpu.stat")
        old = Path(f"/sys/fs/cgroup/memory/docker/{found}/memory.stat")
        self._memory = old if old.exists() else self._new.with_name("memory.stat")

    def now(self) -> float:
        if self._old.exists():
            return int(self._old.read_text()) / 1e9
        return int(self._new.read_text().split()[1]) / 1e6

    def faults(self) -> int:
        words = (line.split() for line in self._memory.read_text().splitlines())
        return next(int(count) for name, count in words if name == "pgfault")


def standing(tree: Path, work: Path) -> str:
    """A container that stands by, for processes started in it."""
    wanted = work / "repeat.txt"
    wanted.write_text(REPEAT)
    pip = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--require-hashes", "-r", wanted, "-d", work], check=True)
    (wheel,) = work.glob("*.whl")
    name = f"{room.NAME}-{uuid.uuid4().hex[:12]}"
    words = ["docker", "run", "-d", "--rm", "--name", name, "--label", room.LABEL, "--network", "none", "--cpus", "1"]
    words += ["--volume", f"{tree}:/tree:ro", "--volume", f"{wheel}:/repeat.whl:ro", "--workdir", "/tree"]
    words += ["--env", "PYTHONPATH=/opt/tribunal/runner:/tree/src:/repeat.whl"]
    words += ["--env", "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1", "--env", "PYTHONDONTWRITEBYTECODE=1"]
    subprocess.run([*words, "--entrypoint", "sleep", room.IMAGE, "36000"], check=True, capture_output=True)
    return name


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description="what an attempt costs for each case")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        suite = {"src/calc.py": SRC, "tests/sealed/test_many.py": SUITE.format(cases=chosen.cases)}
        tree = room.lay(Path(place, "tree"), suite)
        name = standing(tree, Path(place))
        try:
            with room.Room(tree, {"shared": []}) as split, room.Room(tree) as shared:
                figures = measured(chosen.cases, chosen.rounds, name, {"shared": shared, "split": split})
        finally:
            subprocess.run(["docker", "rm", "-f", name], check=False, capture_output=True)
    for way, (wall, cpu, faults) in figures.items():
        peer = figures["repeat"]
        line = {
            "bench": f"case_{way}",
            "value": round(cpu, 1),
            "unit": "us of CPU",
            "wall": round(wall, 1),
            "faults of a run": round(faults),
        }
        print(
            json.dumps(
                {**line, "vs": "repeat", "ratio": round(cpu / peer[1], 2), "ratio_wall": round(wall / peer[0], 2)}
            )
        )
    return 0


def measured(cases: int, rounds: int, name: str, rooms: dict[str, room.Room]) -> dict[str, tuple[float, ...]]:
    """Wall and CPU microseconds for each case and repeat, and page faults of a run."""
    for opened in rooms.values():
        opened.configure(warm=True)
    paid = {"plain": Paid(name), "repeat": Paid(name), **{way: Paid(opened.name) for way, opened in rooms.items()}}
    times: dict[str, list[tuple[float, ...]]] = {}

    def timed(way: str, run: Callable[[], None], of: int) -> None:
        faults, before, begun = paid[way].faults(), paid[way].now(), time.monotonic()
        run()
        wall, cpu = time.monotonic() - begun, paid[way].now() - before
        times.setdefault(way, []).append((wall / of * 1e6, cpu / of * 1e6, paid[way].faults() - faults))

    def pytest(*more: str) -> None:
        command = ["docker", "exec", name, *PYTEST, *more, "tests/sealed"]
        subprocess.run(command, check=True, capture_output=True)

    def attempt(opened: room.Room, number: int) -> None:
        ran = opened.attempt(number)
        assert ran.end["end"] == "finished" and len(ran.cases) == cases, ran.failures()[-2000:]
        assert set(ran.outcomes().values()) == {"passed"}, ran.failures()[-2000:]

    for number in range(rounds):
        timed("plain", pytest, cases)
        timed("repeat", lambda: pytest("-p", "pytest_repeat", "--count", str(REPEATS)), REPEATS * cases)
        for way, opened in rooms.items():
            timed(way, lambda opened=opened: attempt(opened, number), cases)  # type: ignore[misc]  # noqa: B023
    return {way: tuple(map(statistics.median, zip(*each, strict=True))) for way, each in times.items()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

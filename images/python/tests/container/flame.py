#!/usr/bin/env python3
"""Where the processor time of a warm split attempt goes: a flame graph of the oracle's process, as SVG.

`flame.py SUITE.py PRODUCT.py OUT.svg [--image TAG] [--rooms N]`: rooms whose attempts were made ready ahead of their
orders, as a score finds them. A sealed conftest samples its own process by processor time (SIGPROF), from the moment
that it is imported: hearing the order and what a start paid for before are not in it, nor are PID 1 and the product's
process, whose time the oracle only waits for. Widths are processor time; nothing is left out but what is narrower than
a pixel.
"""

import argparse
import base64
import collections
import html
import json
import os
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

AHEAD = 16  # attempts of a room
WIDTH, ROW, LEAST = 1400, 17, 1.0
SAMPLER = """
import base64, json, signal, sys, zlib
STACKS = []

def sample(_, frame):
    stack = []
    while frame is not None:
        code = frame.f_code
        stack.append(f"{code.co_qualname} ({'/'.join(code.co_filename.split('/')[-2:])})")
        frame = frame.f_back
    STACKS.append(";".join(reversed(stack)))

signal.signal(signal.SIGPROF, sample)
signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)

def pytest_sessionfinish():
    signal.setitimer(signal.ITIMER_PROF, 0)
    packed = base64.b64encode(zlib.compress(json.dumps(STACKS).encode(), 9)).decode()
    sys.stdout.write(f"STACKS {packed}\\n")  # the end of an attempt's output is told, not much of it
    sys.stdout.flush()
"""


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description="a flame graph of a warm split attempt's oracle")
    parser.add_argument("suite", type=Path)
    parser.add_argument("product", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--image")
    parser.add_argument("--rooms", type=int, default=6)
    chosen = parser.parse_args(words)
    if chosen.image:
        os.environ["TRIBUNAL_RUNNER_IMAGE"] = chosen.image
    stacks = sampled(chosen.suite, chosen.product, chosen.rooms)
    title = (
        f"{chosen.suite.name}: {len(stacks)} samples of {chosen.rooms * AHEAD} warm split attempts, oracle's process"
    )
    chosen.out.write_text(drawn(stacks, title))
    print(
        json.dumps(
            {"bench": "flame", "samples": len(stacks), "attempts": chosen.rooms * AHEAD, "file": chosen.out.name}
        )
    )
    return 0


def sampled(suite: Path, product: Path, rooms: int) -> list[str]:
    import room

    found: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        files = {
            f"src/{product.name}": product.read_text(),
            "tests/sealed/test_sealed.py": suite.read_text(),
            "tests/sealed/conftest.py": SAMPLER,
        }
        tree = room.lay(Path(place, "tree"), files)
        for _ in range(rooms):
            with room.Room(tree, {"shared": []}, memory="4g", pids=1024) as opened:
                opened.configure(warm=True, ahead=[0, 1] * (AHEAD // 2), uid_count=2 * AHEAD)
                for number in range(AHEAD):
                    ran = opened.attempt(number)
                    assert set(ran.outcomes().values()) == {"passed"}, ran.failures()
                    found += told(ran.end)
    return found


def told(end: dict[str, Any]) -> list[str]:
    (line,) = [line for line in end["output"].splitlines() if line.startswith("STACKS ")]
    stacks: list[str] = json.loads(zlib.decompress(base64.b64decode(line.removeprefix("STACKS "))))
    return stacks


def drawn(stacks: list[str], title: str) -> str:
    """Callers below, what they call above; the same function beside itself is one box."""
    tree = collections.Counter[tuple[str, ...]]()
    for stack in stacks:
        frames = tuple(stack.split(";"))
        tree.update(frames[: depth + 1] for depth in range(len(frames)))
    deepest = max(map(len, tree))
    height = (deepest + 3) * ROW
    boxes: list[str] = []
    starts: dict[tuple[str, ...], float] = {(): 0.0}
    taken: dict[tuple[str, ...], float] = {}
    for path in sorted(tree, key=lambda each: (len(each), each)):
        above = path[:-1]
        at = starts[above] + taken.get(above, 0.0)
        wide = tree[path] / len(stacks) * WIDTH
        taken[above] = taken.get(above, 0.0) + wide
        starts[path] = at
        if wide >= LEAST:
            boxes.append(_box(path[-1], at, height - (len(path) + 1) * ROW, wide, tree[path] / len(stacks)))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="monospace" font-size="11">'
    return "\n".join([head, f'<text x="4" y="13">{html.escape(title)}</text>', *boxes, "</svg>", ""])


def _box(name: str, x: float, y: float, wide: float, share: float) -> str:
    place = name.partition("(")[2]
    hue = 205 if place.startswith(("split/", "harness/")) else 28 if "_pytest/" in place or "pluggy/" in place else 110
    label = html.escape(name if len(name) * 6.6 < wide else name[: max(0, int(wide / 6.6) - 1)])
    shape = f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{ROW - 1}" fill="hsl({hue} 60% 72%)"/>'
    return f'<g><title>{html.escape(name)}: {share:.1%}</title>{shape}<text x="{x + 2:.1f}" y="{y + 12}">{label}</text></g>'


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

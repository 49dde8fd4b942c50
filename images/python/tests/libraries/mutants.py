"""Planted mistakes: the split outcome must be the plain one for every case, or a proxy hides what a test would have seen.

The changes are those of the harness's own liveness check, drawn by a seed over all files and functions of the product in
turn. Each is written into a copy of the tree, and the whole suite runs over it both ways.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sources import CACHE, Library
from ways import Ran, contained


@dataclass
class Mutant:
    number: int
    what: str
    tree: Path


def planted(library: Library, count: int) -> Iterator[Mutant]:
    origin = library.tree()
    told = contained(library, origin, ["-S", "-B", "/libraries/plant.py", str(count), *library.modules()], {})
    for number, line in enumerate(told.splitlines()):
        change = json.loads(line)
        tree = CACHE / "mutants" / library.name
        shutil.rmtree(tree, ignore_errors=True)
        shutil.copytree(origin, tree, symlinks=True)
        (tree / change["path"]).write_text(change["text"], errors="surrogatepass")
        yield Mutant(number, change["what"], tree)
        shutil.rmtree(tree, ignore_errors=True)


def differing(plain: Ran, split: Ran, base_plain: Ran, base_split: Ran) -> list[str]:
    """Cases whose outcome under the mutant is not plain's, among those that are equal without it.

    A product that hangs or leaves ends the run early, plain or split: then only the cases that both ways reached are
    compared.
    """
    same = {node for node, word in base_plain.outcomes.items() if base_split.outcomes.get(node) == word}
    reached = [
        {node for node in same if not early or ran.outcomes.get(node) not in (None, "missing", "unfinished")}
        for ran in (plain, split)
        for early in (ran.end != "finished",)
    ]
    lines = []
    for node in sorted(reached[0] & reached[1]):
        one, other = plain.outcomes.get(node), split.outcomes.get(node)
        if (one == "passed") != (other == "passed"):
            said = [f"{word or 'no outcome'} ({ran.why(node)})" for word, ran in ((one, plain), (other, split))]
            lines.append(f"{node[:200]}: plain {said[0]}, split {said[1]}")
    silent = plain.end == "finished" and not same & base_plain.passed() - plain.passed()
    if split.end != "finished" and split.running in same and silent:
        lines.append(f"every case passes plain, split ended: {split.end}")
    return lines


def caught(ran: Ran, base: Ran) -> bool:
    return ran.end != "finished" or bool(base.passed() - ran.passed())

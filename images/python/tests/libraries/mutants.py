"""Planted mistakes: the split outcome must be the plain one for every case, or a proxy hides what a test would have seen.

The changes are those of the harness's own liveness check, drawn by a seed over all files and functions of the product in
turn. Each is written into a copy of the tree, and the whole suite runs over it both ways.
"""

import ast
import importlib.util
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sources import CACHE, Library
from ways import HARNESS, Ran

SEED = 20260912
OVER = (
    "case-timeout",
    "attempt-timeout",
    "out-of-memory",
    "output-limit",
    "exited",
    "killed",
    "timeout",
    "the product",
    "the oracle",
)


@dataclass
class Mutant:
    number: int
    what: str
    tree: Path


def planted(library: Library, count: int) -> Iterator[Mutant]:
    mutate = harness_module("mutate")
    origin = library.tree()
    paths = [str(origin / name) for name in library.modules()]
    for number, change in enumerate(mutate.plan(paths, SEED, count)):
        tree = CACHE / "mutants" / library.name
        shutil.rmtree(tree, ignore_errors=True)
        shutil.copytree(origin, tree, symlinks=True)
        path = Path(change.path)
        changed = mutate.mutant(change)(ast.parse(path.read_bytes()), change.path)
        name = path.relative_to(origin)
        (tree / name).write_text(ast.unparse(changed), errors="surrogatepass")
        yield Mutant(number, f"{name}:{change.line} {change.function}: {change.what}", tree)
        shutil.rmtree(tree, ignore_errors=True)


def harness_module(name: str) -> Any:
    package = "tribunal_harness"
    if package not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            package, HARNESS / "__init__.py", submodule_search_locations=[str(HARNESS)]
        )
        assert spec is not None and spec.loader is not None
        sys.modules[package] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[package])
    return importlib.import_module(f"{package}.{name}")


def differing(plain: Ran, split: Ran, base_plain: Ran, base_split: Ran) -> list[str]:
    """Cases whose outcome under the mutant is not plain's, among those that are equal without it.

    An attempt that its product ended leaves cases that it did not reach; a plain run that ended so has no outcomes. What
    both of them ran is compared, and a run that ended early has seen the mutant.
    """
    same = {node for node, word in base_plain.outcomes.items() if base_split.outcomes.get(node) == word}
    lines = []
    for node in sorted(same):
        one, other = plain.outcomes.get(node), split.outcomes.get(node)
        if split.end != "finished" and other in (None, "missing", "unfinished"):
            continue
        if plain.end != "finished" and one in (None, "missing"):
            continue
        if (one == "passed") != (other == "passed"):
            lines.append(
                f"{node}: plain {one or 'not collected'} ({plain.why(node)}), split {other or 'not collected'} ({split.why(node)})"
            )
    if plain.end == "finished" and split.end != "finished" and plain.passed() >= same & base_plain.passed():
        lines.append(f"plain passes, split ended: {split.end}")
    return lines


def caught(ran: Ran, base: Ran) -> bool:
    return ran.end != "finished" or bool(base.passed() - ran.passed())

"""Products that are wrong on purpose: by them the server learns whether the oracle is alive.

Turns an order (`null`, or mutant *n* of *m*) and the src files into a function from syntax tree to syntax tree, which
the loader of src modules applies to each file that it compiles. Which changes are planted is drawn by the seed, over
all files and functions in turn, so that it is the same in every process and nobody has to pass it on. Reads src and
parses it, never runs it. A file that does not parse takes no change: what base makes of it shows in base's own run.
"""

import ast
import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from . import null, sites
from .layout import Layout
from .orders import Policy, Product
from .source import PRODUCT, Sides

Transform = Callable[[ast.Module, str], ast.Module]
FILES = 2000  # that are looked at, and of each so many bytes
BYTES = 1 << 20


@dataclass(frozen=True)
class Planted:
    """One change: where it is, in words and for the transform."""

    path: str  # as the loader knows the file
    number: int  # of the site in its file
    function: str
    line: int
    what: str


def files_of(layout: Layout, policy: Policy) -> list[str]:
    """The Python files of src, as the loader knows them, in byte order."""
    sides = Sides(layout, policy)
    found: list[str] = []
    for root in policy.src_roots:
        if not root.endswith("/"):
            found.append(f"{layout.tree}/{root}")
            continue
        for folder, _, names in os.walk(f"{layout.tree}/{root}".rstrip("/")):
            found += [f"{folder}/{name}" for name in names]
    return sorted({path for path in found if path.endswith(".py") and sides.of_file(path) == PRODUCT})


def parsed(path: str) -> ast.Module | None:
    try:
        with open(path, "rb") as file:
            source = file.read(BYTES + 1)
        return ast.parse(source, path) if len(source) <= BYTES else None
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def plan(paths: list[str], seed: int, count: int) -> list[Planted]:
    """The changes to plant: at most `count`, each file in turn, in each its functions in turn."""
    order = sorted(paths, key=lambda path: _drawn(seed, path))[:FILES]
    rounds = [_of_file(path, seed) for path in order]
    chosen: list[Planted] = []
    while rounds and len(chosen) < count:
        left = []
        for changes in rounds:
            change = next(changes, None)
            if change is None:
                continue
            left.append(changes)
            chosen.append(change)
            if len(chosen) == count:
                break
        rounds = left
    return chosen


def _of_file(path: str, seed: int) -> Iterator[Planted]:
    """Only parsed once its turn comes."""
    tree = parsed(path)
    if tree is None:
        return
    groups: dict[str, list[Planted]] = {}
    for number, site in enumerate(sites.of_tree(tree)):
        groups.setdefault(site.function, []).append(Planted(path, number, site.function, site.line, site.what))
    for name, group in groups.items():
        group.sort(key=lambda planted: _drawn(seed, f"{path}\0{name}\0{planted.number}"))
    turns = sorted(groups, key=lambda name: _drawn(seed, f"{path}\0{name}"))
    for turn in range(max(map(len, groups.values()), default=0)):
        for name in turns:
            if turn < len(groups[name]):
                yield groups[name][turn]


def _drawn(seed: int, text: str) -> bytes:
    return hashlib.sha256(f"tribunal-mutants\0{seed}\0{text}".encode("utf-8", "surrogateescape")).digest()


def mutant(planted: Planted) -> Transform:
    """Applies that one change."""

    def transform(tree: ast.Module, path: str) -> ast.Module:
        if path == planted.path:
            sites.of_tree(tree)[planted.number].apply()
            ast.fix_missing_locations(tree)
        return tree

    return transform


def of_product(product: Product, seed: int, layout: Layout, policy: Policy) -> Transform | None:
    """What the loader of src modules has to apply; `None` where src is taken as it is. Before any src is imported."""
    if product.kind == "null":
        return null_product()
    if product.kind == "mutant":
        chosen = plan(files_of(layout, policy), seed, product.of)
        return mutant(chosen[product.number]) if product.number < len(chosen) else None
    return None


def null_product() -> Transform:
    """Makes every function raise; see `null`."""
    null.install()
    return lambda tree, _path: null.nulled(tree)

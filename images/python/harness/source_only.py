"""Modules of the tree are compiled from their source, and warmed dependencies give way to them.

No cached and no sourceless bytecode of the tree is read: what runs is what was reviewed. In an attempt that asks
whether the oracle is alive, src is what a transform makes of it.
"""

import ast
import importlib.machinery
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from .layout import Layout
from .mutate import Transform
from .orders import Policy
from .source import PRODUCT, Sides


@dataclass(frozen=True)
class Planted:
    """What is made of src modules on their way in."""

    transform: Transform
    of_product: Callable[[str], bool]


class SourceOnly(importlib.machinery.SourceFileLoader):
    """Compiles what is written, whatever lies in `__pycache__`; src as `planted` makes it, where something is."""

    planted: ClassVar[Planted | None] = None

    def get_code(self, fullname: str) -> types.CodeType | None:
        path = self.get_filename(fullname)
        source = self.get_data(path)
        if self.planted is not None and self.planted.of_product(path):
            tree = self.planted.transform(ast.parse(source, path), path)
            return compile(tree, path, "exec", dont_inherit=True)
        code: types.CodeType = self.source_to_code(source, path)
        return code


def plant(transform: Transform | None, sides: Sides) -> None:
    """From now on src modules are what this makes of them."""
    if transform is not None:
        SourceOnly.planted = Planted(transform, lambda path: sides.of_file(path) == PRODUCT)


def install(layout: Layout) -> None:
    hook = importlib.machinery.FileFinder.path_hook(
        (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES),
        (SourceOnly, importlib.machinery.SOURCE_SUFFIXES),
    )

    def of_tree(path: str) -> Any:
        if path != layout.tree and not path.startswith((f"{layout.tree}/", f"{layout.srcfiles}/")):
            raise ImportError("not in the tree")
        return hook(path)

    sys.path_hooks.insert(0, of_tree)
    sys.path_importer_cache.clear()


def give_way(layout: Layout, policy: Policy) -> None:
    """A warmed dependency leaves where the policy's roots have a module of its name: they come before it.

    Called once src is there; what was looked up in its places before that is looked up anew.
    """
    sys.path_importer_cache.clear()
    warmed = {name.partition(".")[0] for name, module in sys.modules.items() if _is_in(module, layout.deps)}
    roots = layout.import_roots(policy.pythonpath)
    ousted = {name for name in warmed if importlib.machinery.PathFinder.find_spec(name, roots) is not None}
    for name in [name for name in sys.modules if name.partition(".")[0] in ousted]:
        del sys.modules[name]


def _is_in(module: object, place: str) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and file.startswith(f"{place}/")

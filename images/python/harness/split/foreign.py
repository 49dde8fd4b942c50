"""Modules that the product loads from outside of what a score is about: src, tree, dependencies, interpreter.

Code that src wrote somewhere, or found there, was in no review and in no digest. The product's end says so, with its
next frame; one that hides it could as well run that code without a module. What base loads in the same case is no
fault.
"""

from __future__ import annotations

import importlib.machinery
import os
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..layout import Layout

_DISTRIBUTION = ("/usr/lib/python3/", "/usr/local/lib/")
_SHOWN = 80


def known(layout: Layout) -> tuple[str, ...]:
    """Prefixes of the places that modules may come from."""
    paths = sysconfig.get_paths()
    own = Path(__file__).resolve().parent.parent
    places = layout.tree, layout.srcfiles, layout.deps, paths["stdlib"], paths["platstdlib"], str(own)
    return (*(f"{place}/" for place in places), *_DISTRIBUTION)


def watch(places: tuple[str, ...], tell: Callable[[str], None]) -> None:
    """From now on each module that is run is looked at, however it is loaded."""
    for loader in (importlib.machinery.SourceFileLoader, importlib.machinery.ExtensionFileLoader):
        holder: Any = next(kind for kind in loader.__mro__ if "exec_module" in vars(kind))
        holder.exec_module = _watched(holder.exec_module, places, tell)


def _watched(run: Any, places: tuple[str, ...], tell: Callable[[str], None]) -> Any:
    def exec_module(loader: Any, module: Any) -> None:
        spec: Any = getattr(module, "__spec__", None)
        origin = getattr(spec, "origin", None)
        place = os.path.abspath(origin) if type(origin) is str else ""
        if place and not place.startswith(places):
            tell(f"{str(spec.name)[:_SHOWN]} from {'/'.join(place.split('/')[:2])}")
        run(loader, module)

    return exec_module

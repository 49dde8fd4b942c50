"""How the tree's modules are imported in an attempt.

Import order: standard library, directories of sealed files, the policy's roots, the project's dependencies, the
runner's packages last. Python in the tree is always compiled from its source: no cached and no sourceless bytecode
is read. Sealed modules are loaded by their *place*, so that neither another module of that name nor an equal
basename elsewhere in the manifest can take theirs; the name is what pytest's `prepend` mode would give, and one that
is taken already gets the whole path in it. A conftest under a src root is not loaded.
"""

import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _pytest.assertion.rewrite
import _pytest.config
import _pytest.python
from _pytest.pathlib import resolve_package_path

from . import source_only
from .layout import Layout
from .source import PRODUCT, Sides
from .source_only import SourceOnly


class SealedModules:
    """Loads test modules, their packages and conftests by place."""

    def __init__(self, layout: Layout, before: Callable[[], object]) -> None:
        self._tree = Path(layout.tree)
        self._before = before
        self._standard = sum(1 for entry in sys.path if not entry.startswith((layout.tree, layout.deps, layout.runner)))
        self._places: set[str] = set()

    def load(self, path: Path | str, **_: object) -> types.ModuleType:
        """Stands in for pytest's `import_path`."""
        path = Path(path)
        if not path.exists():
            raise ImportError(str(path))
        self._before()
        top = resolve_package_path(path)
        self._add(str(path.parent if top is None else top.parent))
        if top is None:
            return self._module(self._free_name(path.stem, path), path)
        first, *rest = path.relative_to(top.parent).with_suffix("").parts
        name = self._free_name(first, top / "__init__.py")
        place = top
        loaded = self._module(name, place / "__init__.py")
        for part in rest:
            if part == "__init__":
                break
            name, place = f"{name}.{part}", place / part
            loaded = self._module(name, path if place.with_suffix(".py") == path else place / "__init__.py")
        return loaded

    def _add(self, place: str) -> None:
        if place not in self._places or place not in sys.path:  # a test may have put an older path back
            self._places.add(place)
            sys.path.insert(self._standard, place)

    def _free_name(self, name: str, path: Path) -> str:
        taken = sys.modules.get(name)
        if taken is None or _place(taken) == str(path):
            return name
        place = path.parent if path.name == "__init__.py" else path.with_suffix("")
        relative = place.relative_to(self._tree) if place.is_relative_to(self._tree) else place
        return "_".join(part.replace(".", "_") for part in relative.parts)

    def _module(self, name: str, path: Path) -> types.ModuleType:
        loaded = sys.modules.get(name)
        if loaded is not None and _place(loaded) == str(path):
            return loaded
        spec = self._spec(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            assert spec.loader is not None
            spec.loader.exec_module(module)
        except BaseException:
            sys.modules.pop(name, None)
            raise
        module = sys.modules.get(name, module)
        parent, _, child = name.rpartition(".")
        if parent in sys.modules:
            setattr(sys.modules[parent], child, module)
        return module

    @staticmethod
    def _spec(name: str, path: Path) -> importlib.machinery.ModuleSpec:
        place = path.parent if path.name == "__init__.py" else path.with_suffix("")
        for finder in sys.meta_path:
            find: Callable[..., Any] | None = getattr(finder, "find_spec", None)
            spec = find(place.name, [str(place.parent)]) if find is not None else None
            if spec is not None and spec.origin == str(path):
                return _named(spec, name, path)
        raise ImportError(f"no module at {path}")


def _named(spec: importlib.machinery.ModuleSpec, name: str, path: Path) -> importlib.machinery.ModuleSpec:
    """The same module under another name: pytest's rewriting loader takes any, a source loader knows its own."""
    loader = spec.loader
    if isinstance(loader, SourceOnly) and loader.name != name:
        loader = SourceOnly(name, str(path))
    made = importlib.util.spec_from_file_location(
        name, str(path), loader=loader, submodule_search_locations=spec.submodule_search_locations
    )
    if made is None:
        raise ImportError(f"no module at {path}")
    return made


def _place(module: types.ModuleType) -> str | None:
    file = getattr(module, "__file__", None)
    return file if isinstance(file, str) else None


class Compiled:
    """What stands in for pytest's cache of rewritten bytecode on disk: nothing, or what the zygote compiled."""

    def __init__(self, codes: dict[str, types.CodeType]) -> None:
        self.codes = codes
        self.usable = False

    def read(self, source: Path, pyc: Path, trace: object = None) -> types.CodeType | None:
        return self.codes.get(str(source)) if self.usable else None


class Doorbell:
    """Rings before anything is imported that is neither the interpreter's nor loaded, in part, already."""

    def __init__(self, before: Callable[[], object]) -> None:
        self._before = before
        self._known = frozenset(sys.stdlib_module_names).union(name.partition(".")[0] for name in sys.modules)

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] not in self._known:
            self._before()

    def take_down(self) -> None:
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]


def install(layout: Layout, sides: Sides, compiled: Compiled, before: Callable[[], object]) -> None:
    """`before` is called when the first line of the tree is about to run."""
    source_only.install(layout)
    modules = SealedModules(layout, before)
    _pytest.python.import_path = modules.load  # type: ignore[attr-defined, assignment]
    _pytest.config.import_path = modules.load  # type: ignore[attr-defined, assignment]
    _pytest.assertion.rewrite._read_pyc = compiled.read
    # What a zygote warmed cannot be rewritten any more, which is no fault of the base's configuration.
    _pytest.assertion.rewrite.AssertionRewritingHook._warn_already_imported = lambda *_: None  # type: ignore[method-assign]
    _refuse_conftests(sides)


def _refuse_conftests(sides: Sides) -> None:
    manager = _pytest.config.PytestPluginManager
    load = manager._importconftest

    def importconftest(self: Any, conftestpath: Path, *args: Any, **options: Any) -> types.ModuleType:
        if sides.of_file(str(conftestpath)) == PRODUCT:
            return types.ModuleType("conftest")
        return load(self, conftestpath, *args, **options)

    manager._importconftest = importconftest  # type: ignore[method-assign]

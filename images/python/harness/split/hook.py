"""How sealed files import the product: names that resolve under a src root there are answered by proxies here.

Standard library, sealed folders, then the product, then the project's dependencies and the runner's packages. Where
the runner uses a package of the same name itself, who imports decides. Source text under a src root is never run here.
"""

from __future__ import annotations

import builtins
import importlib.abc
import importlib.machinery
import importlib.util
import os
import pathlib
import runpy
import sys
import types
from collections.abc import Callable
from typing import Any

from _pytest.outcomes import fail

from . import asks, follow, mirror, remote
from .connect import Connection
from .texts import Hear, Texts

_PATHS = (str, pathlib.PosixPath, pathlib.PurePosixPath)
_STANDARD = os.path.dirname(os.__file__) + "/"
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + "/"
_PASSING = (__name__.rpartition(".")[0], "_pytest.monkeypatch", "_pytest.outcomes")


class Finder(importlib.abc.MetaPathFinder):
    """Answers for the product. What a top-level name means is read from the src roots here; the product is not
    asked."""

    def __init__(
        self, product: Connection, sealed: Callable[[Any], bool], roots: tuple[str, ...], runner: tuple[str, ...],
        own_names: frozenset[str] | None,
    ) -> None:  # fmt: skip
        self._product = product
        self._sealed = sealed
        self._roots = roots
        self._runner = runner
        self._own_names = own_names
        self._search = [entry for entry in sys.path if self._of_src(entry) or self._holds_src(entry)]
        self._known: dict[tuple[str, int], Any] = {}
        self.kept: dict[str, Any] = {}  # proxies whose names the runner has taken

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        top = fullname.partition(".")[0]
        if top in sys.stdlib_module_names:
            return None
        if "." in fullname:
            parent: Any = sys.modules.get(fullname.rpartition(".")[0])
            if not isinstance(parent, remote.RemoteModule) and not isinstance(type(parent), mirror.MirrorMeta):
                return None
            # Nobody else is asked: the path that a module of the product's tells is not searched here.
            return self.spec(fullname) or self._sealed_below(fullname)
        if self._in_sealed(fullname) or not self._from_sealed(2):
            return None
        return self.spec(fullname)

    def spec(self, fullname: str) -> importlib.machinery.ModuleSpec | None:
        found = self.found(fullname)
        if found is None:
            return None
        kind, origin, places = found
        spec = importlib.machinery.ModuleSpec(
            fullname, Loader(self._product), origin=origin, is_package=kind == "package"
        )
        spec.has_location = origin is not None
        if kind == "package":
            spec.submodule_search_locations = [str(place) for place in places]
        return spec

    def found(self, fullname: str) -> Any:
        """What the name is in the product, if it resolves under a src root there: kind, origin, places."""
        added = tuple(p for p in sys.path if isinstance(p, str) and self._of_src(p))
        key = fullname, len(added)
        if key not in self._known:
            self._known[key] = self._asked(fullname, added) if "." in fullname else self._read(fullname, added)
        return self._known[key]

    def _asked(self, fullname: str, added: tuple[str, ...]) -> Any:
        """Below a package of the product's: what lies there, else what the product says that it makes up."""
        spec = importlib.machinery.PathFinder.find_spec(fullname, self._places(fullname))
        if spec is not None:
            places = tuple(str(place) for place in spec.submodule_search_locations or ())
            if any(self._sealed(str(place)) for place in [spec.origin, *places]):
                return None
            return ("package" if spec.submodule_search_locations is not None else "module"), spec.origin, places
        told = self._product.find(fullname, added)
        if type(told) is not tuple or len(told) != 3:
            return None
        return ("package" if told[0] == "package" else "module"), None, ()

    def _places(self, fullname: str) -> list[str]:
        """Where the modules of a package of the product's lie, as it is seen from here."""
        found = self.found(fullname.rpartition(".")[0])
        return list(found[2]) if found is not None else []

    def _sealed_below(self, fullname: str) -> importlib.machinery.ModuleSpec:
        """A sealed module inside a package of the product's."""
        spec = importlib.machinery.PathFinder.find_spec(fullname, self._places(fullname))
        if spec is None or not any(
            self._sealed(str(p)) for p in [spec.origin, *(spec.submodule_search_locations or ())]
        ):
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return spec

    def _read(self, name: str, added: tuple[str, ...]) -> Any:
        spec = importlib.machinery.PathFinder.find_spec(name, [*self._search, *added])
        if spec is None:
            return None
        places = [str(place) for place in spec.submodule_search_locations or ()]
        if not any(self._of_src(place) for place in [str(spec.origin), *places]):
            return None
        if self._own_names is not None and name not in self._own_names and self._elsewhere(name):
            return None  # a patch does not take a name that means a dependency or the runner to the tests
        if added:
            self._product.find(name, added)  # it must search there as well
        return ("package" if spec.submodule_search_locations is not None else "module"), spec.origin, tuple(places)

    def _elsewhere(self, name: str) -> bool:
        others = [p for p in sys.path if isinstance(p, str) and p not in self._search and not self._of_src(p)]
        return importlib.machinery.PathFinder.find_spec(name, others) is not None

    def _holds_src(self, entry: str) -> bool:
        return isinstance(entry, str) and any(root.startswith(entry.rstrip("/") + "/") for root in self._roots)

    def _of_src(self, path: str) -> bool:
        return any(path == root or path.startswith(root + "/") for root in self._roots)

    def is_product(self, path: str) -> bool:
        """Under a src root, and not of the sealed files that lie there."""
        return self._of_src(path) and not self._sealed(path)

    def dependency(self, module: Any, name: Any) -> Any:
        """A class of one of the project's dependencies, as this process has it loaded: not the runner's, nor
        anybody's source here."""
        held = sys.modules.get(module) if type(module) is str else None
        file = getattr(held, "__file__", None)
        if type(held) is not types.ModuleType or type(file) is not str or type(name) is not str:
            return None
        if file.startswith((_STANDARD, _HERE, *self._runner)) or self._of_src(file) or self._sealed(file):
            return None
        found: Any = held
        for part in name.split("."):
            found = vars(found).get(part) if isinstance(found, (type, types.ModuleType)) else None
        return found if isinstance(found, type) and found.__module__ == module else None

    def _in_sealed(self, name: str) -> bool:
        places = [p for p in sys.path if isinstance(p, str) and not self._of_src(p) and self._sealed(p + "/_.py")]
        found = importlib.machinery.PathFinder.find_spec(name, places) if places else None
        if found is None:
            return False
        held = [found.origin] if found.origin is not None else list(found.submodule_search_locations or ())
        return not any(self._of_src(str(place)) for place in held)

    def _from_sealed(self, depth: int) -> bool:
        """Whether the import is a sealed file's: frames that only pass a name on do not count."""
        frame: types.FrameType | None = sys._getframe(depth)
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith("<") and not file.startswith("<frozen"):
                file = frame.f_globals.get("__file__") or file
            if type(file) is str and self._sealed(file):
                return True
            name = frame.f_globals.get("__name__")
            passing = type(name) is str and name.startswith(_PASSING)
            if not passing and type(file) is str and not file.startswith(("<frozen", _STANDARD)):
                return False
            frame = frame.f_back
        return False

    def runners(self, frame: types.FrameType) -> tuple[str, ...]:
        """The file of a frame, where it is one of the runner's that imports for itself only."""
        file, name = frame.f_code.co_filename, frame.f_globals.get("__name__")
        passing = type(name) is not str or name.startswith(_PASSING)
        return () if passing or not file.startswith(self._runner) else (file,)


class Loader(importlib.abc.Loader):
    def __init__(self, product: Connection) -> None:
        self._product = product
        self._loaded: Any = None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        module: Any = self._product.load(spec.name)
        if not isinstance(module, remote.RemoteModule) and not isinstance(type(module), mirror.MirrorMeta):
            raise ImportError(f"{spec.name} is no module", name=spec.name)
        # Where it lies is what was found here, whatever it says of itself.
        if isinstance(module, remote.RemoteModule):
            own = remote.module_dict(module)
            if spec.has_location:
                own["__file__"] = spec.origin
            if spec.submodule_search_locations is not None:
                own["__path__"] = list(spec.submodule_search_locations)
        elif spec.has_location and spec.origin is not None:
            self._product.places[mirror.number_of(module)] = spec.origin
        return module  # type: ignore[no-any-return]

    def exec_module(self, module: types.ModuleType) -> None:
        if self._loaded is module:
            self._product.request(asks.RELOAD, module)
        self._loaded = module


def install(
    product: Connection, sealed: Callable[[Any], bool], roots: list[str], runner: list[str],
    own_names: frozenset[str] | None = None, hear: Hear | None = None,
) -> Finder:  # fmt: skip
    """Called with the import path as the policy has it.

    `roots` are the src roots, `runner` the places whose own imports get the runner's copies, `own_names` the top-level
    names that base's src has: another name is the product's only where nothing else has it. `hear` is the native
    module's ear for audit events.
    """
    finder = Finder(product, sealed, tuple(roots), tuple(runner), own_names)
    sys.path[:] = [entry for entry in sys.path if not finder._of_src(entry)]
    at = next((n for n, each in enumerate(sys.meta_path) if each is importlib.machinery.PathFinder), len(sys.meta_path))
    sys.meta_path.insert(at, finder)
    product.dependency = finder.dependency
    _by_importer(finder)
    _never_here(finder)
    follow.install(product)
    product.kept.judges(fail.Exception)
    ours = [entry.rstrip("/") + "/" for entry in sys.path if isinstance(entry, str) and entry.startswith("/")]
    Texts(lambda what: product.tamper("audit", what), sealed, finder._of_src, (_HERE, *runner, *ours)).install(hear)
    return finder


def _by_importer(finder: Finder) -> None:
    """A package that the runner loaded already, asked for by a sealed file that means the product's."""
    original = builtins.__import__
    taken: dict[str, bool] = {}
    theirs: set[str] = set()  # files of the runner's: what they import themselves is no sealed file's
    settled: set[str] = set()  # names in the standard library

    def clashes(top: str) -> bool:
        known = taken.get(top)
        if known is None:
            held = sys.modules.get(top)
            file = getattr(held, "__file__", None) or ""
            known = (
                held is not None and not isinstance(held, remote.RemoteModule) and str(file).startswith(finder._runner)
            )
            known = bool(known and finder.found(top) is not None)
            if held is not None:
                taken[top] = known
        return known

    def imported(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:  # noqa: A002
        if level == 0 and name not in settled and sys._getframe(1).f_code.co_filename not in theirs:
            top = name.partition(".")[0]
            if top in sys.stdlib_module_names:
                settled.add(name)
            elif top not in sys.modules:
                pass
            elif not finder._from_sealed(2):
                theirs.update(finder.runners(sys._getframe(1)))
            elif clashes(top):
                module = _kept(finder, name)
                if fromlist:
                    for item in fromlist:
                        if item != "*" and not hasattr(module, item):
                            _kept(finder, f"{name}.{item}", quiet=True)
                    return module
                return _kept(finder, top)
        return original(name, globals, locals, fromlist, level)

    builtins.__import__ = imported
    import_module = importlib.import_module

    def by_name(name: str, package: str | None = None) -> types.ModuleType:
        top = name.partition(".")[0]
        if not name.startswith(".") and top in sys.modules and finder._from_sealed(2) and clashes(top):
            module: types.ModuleType = _kept(finder, name)
            return module
        return import_module(name, package)

    importlib.import_module = by_name


def _kept(finder: Finder, name: str, quiet: bool = False) -> Any:
    module = finder.kept.get(name)
    if module is None:
        spec = finder.spec(name)
        if spec is None:
            if quiet:
                return None
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        assert spec.loader is not None
        module = spec.loader.create_module(spec)
        finder.kept[name] = module
    return module


def _never_here(finder: Finder) -> None:
    """Loading a file under a src root by its path loads it in the product."""
    create = importlib.machinery.SourceFileLoader.create_module
    execute = importlib.machinery.SourceFileLoader.exec_module

    def create_module(self: Any, spec: Any) -> Any:
        if finder.is_product(str(self.path)):
            return finder._product.request(asks.IMPORT, (spec.name, str(self.path)))
        return create(self, spec)

    def exec_module(self: Any, module: Any) -> None:
        if not isinstance(module, remote.RemoteModule):
            if finder.is_product(str(self.path)):
                raise ImportError(f"{self.path} is the product's and is not run here")
            execute(self, module)

    run_path = runpy.run_path

    def run_path_of(path_name: Any, init_globals: Any = None, run_name: Any = None) -> Any:
        file = os.path.abspath(path_name) if type(path_name) in _PATHS else ""
        if not finder.is_product(file) or init_globals is not None:
            return run_path(path_name, init_globals, run_name)
        return dict(finder._product.request(asks.IMPORT, (run_name or "<run_path>", file)).__dict__)

    runpy.run_path = run_path_of
    importlib.machinery.SourceFileLoader.create_module = create_module  # type: ignore[method-assign]
    importlib.machinery.SourceFileLoader.exec_module = exec_module  # type: ignore[method-assign]

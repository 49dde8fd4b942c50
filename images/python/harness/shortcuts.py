"""What pytest works out anew for every case and is the same each time: worked out once.

Each function here stands in for one of pytest's and gives what that one gives; nothing that a test or a conftest can
see is left out but text that would go to a terminal, which no attempt has. A zygote puts them in place; what they
remember is of one attempt, because nothing runs before the fork.
"""

import inspect
import platform
import sys
import weakref
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import _pytest.fixtures
from _pytest import compat
from _pytest._code import Code
from _pytest._code.code import ExceptionInfoFormatter
from _pytest.capture import CaptureManager
from _pytest.main import Session
from _pytest.terminal import TerminalReporter, TestShortLogReport

_PARSED = 4  # trees of files that are kept
_names_of, _path_of, _proxy_of = compat.getfuncargnames, Code.path, Session.gethookproxy


def install(tree: str) -> None:
    _pytest.fixtures.getfuncargnames = _argument_names()  # type: ignore[attr-defined]
    Code.path = property(_place_of_code(f"{tree}/"))  # type: ignore[assignment, method-assign]
    Session.gethookproxy = _hooks_by_path()  # type: ignore[method-assign]
    ExceptionInfoFormatter._getentrysource = _source_of_entries(f"{tree}/")  # type: ignore[method-assign]
    CaptureManager.item_capture = _fixtures  # type: ignore[assignment, method-assign]
    TerminalReporter.pytest_runtest_logstart = _nothing  # type: ignore[assignment, method-assign]
    TerminalReporter.pytest_runtest_logreport = _counted  # type: ignore[method-assign]


def remember_modules() -> None:
    """Once everything is imported: which of pytest's modules hold fixtures, and which file is whose module."""
    _pytest.fixtures.dir = _names_of_holders()  # type: ignore[attr-defined]
    # Tables that the first traceback, and the reporter of each session, would fill.
    inspect.getmodule(install.__code__)
    platform.python_version()


def _names_of_holders() -> Any:
    """pytest goes through all names of its own plug-ins for each session, to find the fixtures among them."""
    own = [module for name, module in sys.modules.items() if name.startswith("_pytest.") and type(module) is ModuleType]
    kinds = {kind for module in own for kind in vars(module).values() if _is_own_class(kind)}
    known = {id(holder): (holder, _size(holder), _fixtures_among(holder)) for holder in (*own, *kinds)}

    def names(holder: object) -> list[str]:
        # Of an object pytest looks at its class only.
        asked = holder if isinstance(holder, type | ModuleType) else type(holder)
        found = known.get(id(asked))
        if found is None or found[0] is not asked or found[1] != _size(asked):
            return dir(holder)
        return found[2]

    return names


def _is_own_class(value: object) -> bool:
    return isinstance(value, type) and str(value.__module__).startswith("_pytest.")


def _size(holder: type | ModuleType) -> int:
    return sum(len(vars(part)) for part in (holder.__mro__ if isinstance(holder, type) else (holder,)))


def _fixtures_among(holder: type | ModuleType) -> list[str]:
    kind = _pytest.fixtures.FixtureFunctionDefinition
    return [name for name in dir(holder) if type(inspect.getattr_static(holder, name, None)) is kind]


def _argument_names() -> Any:
    """A function that is nothing but its code has the same arguments as any other of that code."""
    known: dict[CodeType, tuple[str, ...]] = {}

    def names(function: Any, *, name: str = "", cls: type | None = None) -> tuple[str, ...]:
        if type(function) is not FunctionType or cls is not None or not _is_plain(function):
            return _names_of(function, name=name, cls=cls)
        found = known.get(function.__code__)
        if found is None:
            found = known[function.__code__] = _names_of(function, name=name)
        return found

    return names


def _is_plain(function: FunctionType) -> bool:
    return function.__defaults__ is None and function.__kwdefaults__ is None and not function.__dict__


def _place_of_code(tree: str) -> Any:
    """Files of the tree stay where they are, and as they are."""
    known: dict[str, Path | str] = {}
    plain: Any = _path_of.fget  # type: ignore[attr-defined]

    def path(code: Code) -> Path | str:
        name = code.raw.co_filename
        found = known.get(name)
        if found is None:
            found = plain(code)
            if name.startswith(tree):
                known[name] = found
        return found

    return path


def _source_of_entries(tree: str) -> Any:
    """A traceback parses the files that it passes: those of the tree that failed last are parsed once."""
    known: dict[Any, Any] = {}

    def source(formatter: ExceptionInfoFormatter, entry: Any) -> Any:
        inside = entry.frame.code.raw.co_filename.startswith(tree)
        found = entry.getsource(known if inside else formatter.astcache)
        while len(known) > _PARSED:
            del known[next(iter(known))]
        return None if found is None else found.deindent()

    return source


def _hooks_by_path() -> Any:
    """Which conftests are heard depends on the path and on the conftests that are loaded."""
    known: weakref.WeakKeyDictionary[Session, tuple[tuple[int, int], dict[Path, Any]]] = weakref.WeakKeyDictionary()

    def gethookproxy(session: Session, fspath: Any) -> Any:
        path = fspath if isinstance(fspath, Path) else Path(fspath)
        manager = session.config.pluginmanager
        loaded = len(manager._conftest_plugins), len(manager._dirpath2confmods)
        held = known.get(session)
        if held is None or held[0] != loaded:
            held = known[session] = (loaded, {})
        proxy = held[1].get(path)
        if proxy is None:
            proxy = held[1][path] = _proxy_of(session, path)
        return proxy

    return gethookproxy


def _fixtures(manager: CaptureManager, when: str, item: object) -> "_Fixtures":
    return _Fixtures(manager)


class _Fixtures:
    """`capsys` and its kin around a phase. What is captured besides is captured by PID 1."""

    __slots__ = ("_manager",)

    def __init__(self, manager: CaptureManager) -> None:
        self._manager = manager

    def __enter__(self) -> None:
        self._manager.activate_fixture()

    def __exit__(self, *_: object) -> None:
        self._manager.deactivate_fixture()


def _nothing(reporter: TerminalReporter) -> None:
    """A line that would begin here."""


def _counted(self: TerminalReporter, report: Any) -> None:
    """What a conftest may read of the reporter, without what it would write."""
    self._current_logreport = report
    self._tests_ran = True
    status = self.config.hook.pytest_report_teststatus(report=report, config=self.config)
    told = TestShortLogReport(*status)
    self._add_stats(told.category, [report])
    if told.letter or told.word:
        self._progress_nodeids_reported.add(report.id)

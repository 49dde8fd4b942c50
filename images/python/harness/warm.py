"""What a zygote imports ahead, so that attempts need not.

For an oracle pytest, Hypothesis and the parts of the standard library that most suites load; and, under
`preload = "auto"`, what the sealed files import from the project's own dependencies. For a product the same without
anything of the runner's. Candidate code is never imported: while this runs, the src roots are not on the import path.
"""

import ast
import importlib
import importlib.machinery
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from .layout import Layout
from .orders import Policy

if TYPE_CHECKING:
    from .session import Prepared

STANDARD = (
    "argparse", "array", "asyncio", "atexit", "bdb", "calendar", "collections.abc", "concurrent.futures",
    "contextlib", "contextvars", "copy", "csv", "dataclasses", "datetime", "decimal", "difflib", "enum",
    "faulthandler", "fnmatch", "fractions", "functools", "glob", "hashlib", "heapq", "importlib.metadata", "inspect",
    "io", "itertools", "json", "locale", "logging", "math", "multiprocessing", "numbers", "operator", "pathlib",
    "pickle", "platform", "pprint", "queue", "random", "re", "selectors", "shlex", "shutil", "signal", "socket",
    "ssl", "statistics", "string", "struct", "subprocess", "tempfile", "textwrap", "threading", "timeit", "tomllib",
    "traceback", "types", "typing", "unittest", "unittest.mock", "uuid", "warnings", "weakref", "xml.etree.ElementTree",
    "zipfile", "zoneinfo",
)  # fmt: skip
RUNNER = (
    "pytest", "_pytest.assertion.rewrite", "_pytest.assertion.util", "_pytest.capture", "_pytest.compat",
    "_pytest.debugging", "_pytest.deprecated", "_pytest.doctest", "_pytest.faulthandler", "_pytest.fixtures",
    "_pytest.helpconfig", "_pytest.junitxml", "_pytest.legacypath", "_pytest.logging", "_pytest.mark",
    "_pytest.monkeypatch", "_pytest.pastebin", "_pytest.python_api", "_pytest.recwarn", "_pytest.reports",
    "_pytest.runner", "_pytest.setuponly", "_pytest.setupplan", "_pytest.skipping", "_pytest.stepwise",
    "_pytest.subtests", "_pytest.terminal", "_pytest.terminalprogress", "_pytest.threadexception",
    "_pytest.tmpdir", "_pytest.unittest", "_pytest.unraisableexception", "_pytest.warnings",
    # What pytest imports once it is configured, and the first digest of a session.
    "pdb", "readline", "_sha2",
)  # fmt: skip


def up(layout: Layout, policy: Policy, files: tuple[str, ...]) -> tuple["Prepared", list[str]]:
    """An oracle's; also the modules of the project's dependencies that a product's may want."""
    path = list(sys.path)
    roots = set(layout.import_roots(policy.pythonpath))
    texts = [text for text in (_read(layout, file) for file in files) if text is not None]
    try:
        # The runner's own copies first, even where the project depends on another pytest.
        sys.path[:] = [entry for entry in path if entry not in roots and entry != layout.deps]
        _optional(STANDARD)
        importlib.import_module("pytest")
        _optional(RUNNER)
        from . import attempt, hypothesis_settings, session, shortcuts

        assert attempt
        if any(b"hypothesis" in text for text in texts):
            hypothesis_settings.warm(layout)
        prepared = session.prepare(layout, policy, files)
        sys.path[:] = [entry for entry in path if entry not in roots]
        wanted = sorted(third_party(layout, texts)) if policy.preload == "auto" else []
        _optional(wanted)
        shortcuts.remember_modules()
        hypothesis_settings.known_modules()
    finally:
        sys.path[:] = path
        sys.path_importer_cache.clear()
    return prepared, wanted


def standard(layout: Layout, policy: Policy) -> None:
    """A product's first part: the standard library, and the harness's own modules for it."""
    path = list(sys.path)
    roots = {*layout.import_roots(policy.pythonpath), layout.deps}
    try:
        sys.path[:] = [entry for entry in path if entry not in roots]
        _optional(STANDARD)
        from . import product

        assert product
    finally:
        sys.path[:] = path
        sys.path_importer_cache.clear()


def dependencies(layout: Layout, policy: Policy, names: Iterable[str]) -> None:
    """A product's second part."""
    path = list(sys.path)
    roots = set(layout.import_roots(policy.pythonpath))
    try:
        sys.path[:] = [entry for entry in path if entry not in roots]
        _optional(names)
    finally:
        sys.path[:] = path
        sys.path_importer_cache.clear()


def _read(layout: Layout, file: str) -> bytes | None:
    try:
        return Path(layout.tree, file).read_bytes()
    except OSError:
        return None  # the attempt will report it


def third_party(layout: Layout, texts: Iterable[bytes]) -> set[str]:
    """Modules of the project's dependencies that these files import at their top level, found by reading them."""
    wanted: set[str] = set()
    for text in texts:
        try:
            tree = ast.parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue  # the attempt will report it
        for node in tree.body:
            if isinstance(node, ast.Import):
                wanted.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                wanted.add(node.module)
    return {name for name in wanted if _is_dependency(layout, name.split(".")[0])}


def _is_dependency(layout: Layout, name: str) -> bool:
    return importlib.machinery.PathFinder.find_spec(name, [layout.deps]) is not None


def _optional(names: Iterable[str]) -> None:
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        except Exception as error:  # noqa: BLE001  a dependency that cannot be imported here fails in the attempt
            print(f"preload {name}: {error!r}"[:500], file=sys.stderr)

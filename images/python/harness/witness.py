"""The witness: loads the native module, tells it whose code is whose, and arms it for a shared part.

`images/witness` says what it sees. A zygote loads it, and has it watch where the policy names shared files; an attempt
gives it the record pipe in any case, because it is the only pen, and arms it where product code will run in its
process.
"""

import ctypes
import dis
import importlib.machinery
import importlib.util
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, Protocol, cast

from .layout import Layout
from .orders import Policy
from .source import Sides

NAME = "tribunal_witness"
PINNED = ("TZ", "SOURCE_DATE_EPOCH", "PYTHONHASHSEED", "PYTHON_CPU_COUNT")
# What `import *` runs as, then what stores or deletes a name.
_STORING = ("STORE_", "DELETE_")
_STORES = bytes(
    [
        dis.opmap["CALL_INTRINSIC_1"],
        *(code for name, code in dis.opmap.items() if name.startswith(_STORING) and code < 256),
    ]
)


class Native(Protocol):
    """What the module offers."""

    def watch(
        self, prefixes: list[tuple[str, str]], sealed: list[str], pinned: list[str], sample: object, proxy: object,
        foreign: object, stores: bytes, /,
    ) -> int: ...  # fmt: skip

    def open(self, key: int, records: int, /) -> None: ...

    def send(self, record: bytes, /) -> None: ...

    def arm(self, sender: FunctionType, /) -> None: ...

    def hear(self, events: tuple[str, ...], function: Callable[[str, tuple[Any, ...]], None], /) -> None: ...

    def also(self, name: str, values: dict[Any, Any], /) -> None: ...


def load(layout: Layout) -> Native:
    loaded = sys.modules.get(NAME)
    if loaded is None:
        path = f"{layout.lib}/{NAME}.so"
        loader = importlib.machinery.ExtensionFileLoader(NAME, path)
        spec = importlib.machinery.ModuleSpec(NAME, loader, origin=path)
        loaded = importlib.util.module_from_spec(spec)
        loader.exec_module(loaded)
        sys.modules[NAME] = loaded
    return cast(Native, loaded)


def watch(layout: Layout, policy: Policy, files: tuple[str, ...]) -> None:
    """From now on changes are looked at, and told once an attempt is armed. Everything that is loaded is watched."""
    sealed = {f"{layout.tree}/{file}" for file in files}
    for root in policy.sealed_roots:
        sealed.update(str(path) for path in Path(layout.tree, root).glob("**/*.py") if path.name != "__init__.py")
    foreign = type(ctypes.pythonapi.Py_IncRef).__mro__[1]
    pinned = [*policy.seed_env, *PINNED]
    load(layout).watch(prefixes(layout, policy), sorted(sealed), pinned, _Asked(), _locals(), foreign, _STORES)


def prefixes(layout: Layout, policy: Policy) -> list[tuple[str, str]]:
    """Which files are whose, as the native module takes it."""
    paths = sysconfig.get_paths()
    library = {"<frozen ", "/usr/lib/python3/", "/usr/local/lib/", f"{paths['stdlib']}/", f"{paths['platstdlib']}/"}
    return [
        *Sides(layout, policy).marked(),
        (f"{Path(__file__).resolve().parent}/", "harness"),
        (f"{layout.runner}/", "runner"),
        *((place, "library") for place in sorted({*library, f"{layout.deps}/"})),
    ]


class _Asked:
    """Its class shows which slots a comparison, a subtraction and a containment written in Python have."""

    def __eq__(self, other: object) -> bool:
        return self is other

    def __sub__(self, other: object) -> object:
        return other

    def __contains__(self, other: object) -> bool:
        return self is other

    __hash__ = None  # type: ignore[assignment]


def _locals() -> object:
    return sys._getframe().f_locals

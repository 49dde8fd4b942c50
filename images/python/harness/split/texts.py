"""Text that becomes code in the oracle: `eval(repr(x))`, `exec` of generated source, annotations, pickles.

A test may do all that with what the product gave it, and then the product's text runs where the tests are. It is
looked at before it runs. What reaches for more than values and public names is told, one name at a time: base's own
texts say the same names, a text that digs for the oracle's insides says others. Files under a src root, and what only
an attack unpickles, are not run here at all.
"""

from __future__ import annotations

import dis
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from . import remote
from .stdlib import SAFE

Hear = Callable[[tuple[str, ...], Callable[[str, tuple[Any, ...]], None]], None]

_STANDARD = os.path.dirname(os.__file__) + "/"
# These make code of names that are checked before: of fields, of members, of a signature's owner.
_MAKERS = tuple(
    _STANDARD + name for name in ("dataclasses.py", "collections/__init__.py", "enum.py", "unittest/mock.py")
)
_EVENTS = _EXEC, _FIND_CLASS = "exec", "pickle.find_class"
_MOST = 400  # names of one text that are looked at
_PUBLIC = frozenset(f"__{name}__" for name in ["init", "name", "repr", "str", "all", "doc", "slots", "version",
"post_init", "file", "annotations", "module", "qualname", "firstlineno", "static_attributes", "classcell",
"author"])  # fmt: skip
_REACHING = frozenset(
    ("type", "eval", "exec", "compile", "open", "getattr", "setattr", "delattr", "vars", "globals", "locals",
    "breakpoint", "input",
     "exit", "quit", "help", "format_map", "attrgetter", "methodcaller", "modules", "settrace", "setprofile",
     "f_back", "f_globals",
     "f_locals", "f_builtins", "f_code", "gi_frame", "cr_frame", "ag_frame", "tb_frame", "tb_next", "gi_yieldfrom",
     "mro",
     "get_objects", "get_referrers", "get_referents", "currentframe", "stack", "environ", "system", "import_module")
)  # fmt: skip
_HARMLESS = frozenset(
    ("datetime", "decimal", "fractions", "collections", "uuid", "pathlib", "re", "math", "numpy", "np", "enum",
    "typing", "json",
     "ipaddress", "zoneinfo", "dataclasses", "functools", "itertools", "statistics", "string", "cmath", "numbers",
     "textwrap")
)  # fmt: skip
_UNPICKLED = frozenset(
    ("copyreg", "_codecs", "collections", "datetime", "decimal", "fractions", "uuid", "pathlib", "pathlib._local",
    "re", "numpy",
     "ipaddress", "zoneinfo", "array", "enum", "types", "random")
)  # fmt: skip
_NEVER_UNPICKLED = frozenset(
    ("os", "posix", "nt", "subprocess", "_posixsubprocess", "sys", "importlib", "runpy", "code", "codeop", "ctypes",
    "_ctypes", "gc",
     "inspect", "pty", "shutil", "socket", "signal", "pdb", "bdb", "timeit", "profile", "cProfile", "pickle",
     "_pickle", "marshal",
     "pytest", "_pytest", "pluggy", "tribunal_harness", "harness", "atexit", "builtins", "operator", "_operator",
     "functools",
     "threading", "_thread", "webbrowser", "platform", "webbrowser", "logging", "multiprocessing", "asyncio")
)  # fmt: skip


class Texts:
    """Hears of every text that becomes code in this process, as an audit hook: nothing takes it out again."""

    def __init__(
        self, tell: Callable[[str], None], sealed: Callable[[Any], bool], of_src: Callable[[str], bool],
        trusted: tuple[str, ...],
    ) -> None:  # fmt: skip
        self._tell, self._sealed, self._of_src = tell, sealed, of_src
        self._trusted = ("<frozen ", _STANDARD, *trusted)
        self._restore = (remote.restore.__module__, remote.restore.__name__)

    def install(self, hear: Hear | None = None) -> None:
        """By the native module where there is one: a hook in Python is called for every event that there is."""
        if hear is None:
            sys.addaudithook(self._heard)
        else:
            hear(_EVENTS, self._heard)

    def _heard(self, event: str, args: tuple[Any, ...]) -> None:
        if event == _EXEC:
            self._run(args[0])
        elif event == _FIND_CLASS:
            self._unpickled(str(args[0]), str(args[1]))

    def _run(self, code: Any) -> None:
        if type(code) is not types.CodeType:
            return
        file = code.co_filename
        if self._of_src(file) and not self._sealed(file):
            raise PermissionError(f"{file} is the product's and is not run here")
        if file.startswith(self._trusted) or self._sealed(file):
            return
        frame = sys._getframe(2)
        if frame.f_code.co_filename in _MAKERS:
            return
        near = self._near(frame)
        if near is not None:
            for name, imported in _names(code):
                if (name.partition(".")[0] not in _HARMLESS) if imported else self._reaches(name, near):
                    self._tell(f"a text becomes code that says {name[:60]}")

    def _near(self, frame: types.FrameType | None) -> types.FrameType | None:
        """The sealed file's frame that has it run, if it is one's."""
        while frame is not None:
            file = frame.f_code.co_filename
            if self._sealed(file):
                return frame
            if file.startswith("<") or file.startswith(_STANDARD):
                frame = frame.f_back
                continue
            return None
        return None

    @staticmethod
    def _reaches(name: str, frame: types.FrameType) -> bool:
        if name.startswith("_"):
            return name not in _PUBLIC
        if name in _REACHING:
            return True
        held = frame.f_globals.get(name)
        if held is None or isinstance(held, (type, remote.RemoteFunction, remote.RemoteModule)):
            return False
        if type(held) is types.ModuleType:
            return name not in _HARMLESS and held.__name__ not in _HARMLESS
        return isinstance(held, (list, dict, set))

    def _unpickled(self, module: str, name: str) -> None:
        if (module, name) in SAFE or (module, name) == self._restore:
            return
        top = module.partition(".")[0]
        held = sys.modules.get(module)
        if self._sealed(getattr(held, "__file__", None)) or top in _UNPICKLED or isinstance(held, remote.RemoteModule):
            return
        if name == "getattr" and module == "builtins":
            return  # nested names and bound methods; what it is asked for is found by the same way
        self._tell(f"a pickle asks for {module[:60]}.{name[:60]}")
        if top in _NEVER_UNPICKLED and not (top == "functools" and name == "partial"):
            raise PermissionError(f"{module}.{name} is not unpickled here")


def _names(code: types.CodeType) -> Iterator[tuple[str, bool]]:
    """Every name that a text uses, once, and whether it imports it; `lambda` is one."""
    seen: set[tuple[str, bool]] = set()
    waiting = [code]
    while waiting and len(seen) < _MOST:
        one = waiting.pop()
        imports = {each.argval for each in dis.get_instructions(one) if each.opname == "IMPORT_NAME"}
        for name in [*one.co_names, *(["_lambda"] if one.co_name == "<lambda>" else [])]:
            told = name, name in imports
            if told not in seen:
                seen.add(told)
                yield told
        waiting += [const for const in one.co_consts if type(const) is types.CodeType]

"""What a sealed test does to its own process and means for the product's: patches of the standard library, children.

A patch that `monkeypatch` or `mock` puts into a standard module is put into the product's as well, and undone there.
Child processes are the product's: the program that a test starts is the product, mostly, and is kept from the oracle.
"""

from __future__ import annotations

import json.encoder
import os
import random
import sys
import types
from typing import TYPE_CHECKING, Any

from . import asks, mirror
from .stdlib import patched

if TYPE_CHECKING:
    from .connect import Connection

_UNDO = ("undo", "__exit__")  # of monkeypatch, and of mock's patches
_OWN = frozenset(("stdout", "stderr", "argv", "path", "modules", "meta_path", "path_hooks", "excepthook", "settrace"))


def install(product: Connection) -> None:
    """What needs no answer of the product's."""
    # Written in C it reads the insides of dictionaries, which those of the product's do not have here.
    json.encoder.c_make_encoder = None  # type: ignore[attr-defined]
    _patches(product)


def begin(product: Connection) -> None:
    """Once it answers."""
    _children(product)
    _draws(product)


def _draws(product: Connection) -> None:
    """A test that seeds `random` means what the product draws as well."""
    seed = random.seed

    def seeded(a: Any = None, version: int = 2) -> None:
        seed(a, version)
        if type(a) in (int, float, str, bytes, type(None)):
            product.seeded(a, version)

    random.seed = seeded


def _patches(product: Connection) -> None:
    import unittest.mock

    import _pytest.monkeypatch

    def followed(target: Any, name: str) -> bool:
        if type(target) is not types.ModuleType or (target is sys and name in _OWN):
            return False
        module = target.__name__
        standard = module.partition(".")[0] in sys.stdlib_module_names and sys.modules.get(module) is target
        return standard and not module.startswith(("unittest", "importlib", "asyncio"))

    def put(target: Any, name: str, value: Any) -> None:
        follow = followed(target, name)
        if follow:
            patched(target, name)
        setattr(target, name, value)
        if follow:
            product.request(asks.SETATTR, (target, name, value))

    def remove(target: Any, name: str) -> None:
        undone = sys._getframe(1).f_code.co_name in _UNDO
        if undone and isinstance(target, mirror.MirrorMeta) and product.patches.restore(target, name):
            return  # its mirror had nothing under that name
        delattr(target, name)
        if followed(target, name):
            product.request(asks.DELATTR, (target, name))

    for module in (unittest.mock, _pytest.monkeypatch):
        vars(module).update(setattr=put, delattr=remove)


def _children(product: Connection) -> None:
    import subprocess

    theirs = product.load("subprocess")
    subprocess.Popen = theirs.Popen  # type: ignore[misc]
    os.system = product.load("os").system

    def refuse(*_: Any, **__: Any) -> Any:
        raise PermissionError("a sealed test starts programs with `subprocess`: they are the product's")

    import _posixsubprocess

    _posixsubprocess.fork_exec = refuse
    for name in dir(os):
        if name.startswith(("exec", "spawn", "posix_spawn")):
            setattr(os, name, refuse)
    os.register_at_fork(after_in_child=product.leave_to_parent)

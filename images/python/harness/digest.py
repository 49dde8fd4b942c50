"""Bytecode digests: a sealed file's source to one digest per function, never by importing or executing it.

`v2` is SHA-256 over the function's code objects, recursively, with names, constants and flags but without file
names, line numbers and addresses, and over the syntax of its decorators, defaults and annotations. Each function is
compiled on its own, inside its classes and under the file's `__future__` flags, with every position set to one
place; so moving or reformatting a test does not change its digest. `short` is the older form: the first 16 hex
digits of SHA-256 over `co_code`, as the file compiles.
"""

import __future__

import ast
import copy
import dis
import hashlib
import json
import struct
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

from .frames import Message

Function = ast.FunctionDef | ast.AsyncFunctionDef
TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"


@dataclass(frozen=True)
class Found:
    """A function of a file, with the classes it stands in."""

    node: Function
    classes: tuple[ast.ClassDef, ...]

    @property
    def qualname(self) -> str:
        return ".".join([*(outer.name for outer in self.classes), self.node.name])

    @property
    def place(self) -> tuple[str, int]:
        """What a code object of it says of itself: qualified name and first line, decorators included."""
        return self.qualname, min([self.node.lineno, *(item.lineno for item in self.node.decorator_list)])


class Uncompilable(ValueError):
    """The file does not compile; the message says where."""


def of_source(source: bytes) -> dict[str, Message]:
    """Digests by qualified name: module-level functions and methods; the last definition of a name wins."""
    try:
        tree = ast.parse(source)
        module = compile(source, "<sealed>", "exec", dont_inherit=True, optimize=0)
        return _of_tree(tree, module)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise Uncompilable(f"{type(error).__name__}: {error}"[:500]) from error


def _of_tree(tree: ast.Module, module: CodeType) -> dict[str, Message]:
    flags = _future_flags(module)
    plain = dict(_plain_codes(module))
    # What the compiler dropped has no code object, and so no digest.
    compiled = {item.qualname: item for item in _functions(tree.body) if item.place in plain}
    out: dict[str, Message] = {}
    for name, found in _inherited(tree, compiled).items():
        alone = _compiled_alone(found, flags)
        if alone is None:
            continue
        code = plain[found.place]
        state = hashlib.sha256(b"tribunal-digest-v2\0")
        for piece in (*_code(alone), _syntax(found.node).encode()):
            state.update(piece)
        short = hashlib.sha256(code.co_code).hexdigest()[:16]
        out[name] = {"v2": f"v2:{TAG}:{state.hexdigest()}", "short": short}
    return out


def _functions(body: Iterable[ast.stmt], classes: tuple[ast.ClassDef, ...] = ()) -> Iterator[Found]:
    """In source order, through classes and the branches of statements, not into functions."""
    for node in body:
        if isinstance(node, Function):
            yield Found(node, classes)
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, (*classes, node))
        else:
            for inner in ast.iter_child_nodes(node):
                if isinstance(inner, ast.stmt):
                    yield from _functions([inner], classes)
                elif isinstance(inner, ast.ExceptHandler | ast.match_case):
                    yield from _functions(inner.body, classes)


def _inherited(tree: ast.Module, found: dict[str, Found]) -> dict[str, Found]:
    """Adds the methods a class has from bases defined in the same file: pytest collects those under its name."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}

    def methods(name: str, seen: tuple[str, ...]) -> dict[str, Found]:
        own: dict[str, Found] = {}
        for base in reversed(classes[name].bases):
            if isinstance(base, ast.Name) and base.id in classes and base.id not in seen:
                own |= methods(base.id, (*seen, base.id))
        prefix = f"{name}."
        return own | {
            key.removeprefix(prefix): item
            for key, item in found.items()
            if key.startswith(prefix) and "." not in key.removeprefix(prefix)
        }

    out = dict(found)
    for name in classes:
        for method, item in methods(name, (name,)).items():
            out.setdefault(f"{name}.{method}", item)
    return out


def _future_flags(module: CodeType) -> int:
    every = 0
    for name in __future__.all_feature_names:
        every |= getattr(__future__, name).compiler_flag
    return module.co_flags & every


def _plain_codes(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield (constant.co_qualname, constant.co_firstlineno), constant
            yield from _plain_codes(constant)


def _compiled_alone(found: Found, flags: int) -> CodeType | None:
    """The function's code object, from a module that holds nothing but it and the classes around it."""
    body: ast.stmt = copy.deepcopy(found.node)
    for outer in reversed(found.classes):
        body = ast.ClassDef(name=outer.name, bases=[], keywords=[], body=[body], decorator_list=[])
        body.type_params = []
    module = ast.Module([body], [])
    for node in ast.walk(module):
        if "lineno" in node._attributes:
            node.lineno, node.col_offset, node.end_lineno, node.end_col_offset = 1, 0, 1, 0  # type: ignore[attr-defined]
    code = compile(module, "<sealed>", "exec", flags=flags, dont_inherit=True, optimize=0)
    return _named(code, found.qualname)


def _named(code: CodeType, qualname: str) -> CodeType | None:
    for (name, _), inner in _plain_codes(code):
        if name == qualname:
            return inner
    return None


def _code(code: CodeType) -> Iterator[bytes]:
    """Everything a code object does, each part with its length, nothing of where it stands."""
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    yield struct.pack("<4sIIIQ", b"code", *counts)
    names = (code.co_name, *_lists(code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars))
    for part in (*(name.encode("utf-8", "surrogatepass") for name in names), code.co_code, code.co_exceptiontable):
        yield struct.pack("<I", len(part))
        yield part
    yield struct.pack("<I", len(code.co_consts))
    attributes = _static_attributes(code)
    for index, constant in enumerate(code.co_consts):
        yield b"".join(_constant(tuple(sorted(constant)) if index == attributes else constant))


def _lists(*lists: tuple[str, ...]) -> Iterator[str]:
    for names in lists:
        yield str(len(names))
        yield from names


def _static_attributes(code: CodeType) -> int | None:
    """The constant of a class body whose order follows the hash seed."""
    last = None
    for step in dis.get_instructions(code):
        if step.opname == "LOAD_CONST":
            last = step.arg
        elif step.opname == "STORE_NAME" and step.argval == "__static_attributes__":
            return last
    return None


def _constant(value: object) -> Iterator[bytes]:
    if isinstance(value, CodeType):
        yield from _code(value)
    elif isinstance(value, tuple | frozenset):
        parts = [b"".join(_constant(item)) for item in value]
        if isinstance(value, frozenset):
            parts.sort()
        yield struct.pack("<1sI", b"(" if isinstance(value, tuple) else b"{", len(parts))
        yield from parts
    elif isinstance(value, slice):
        yield b":"
        yield from _constant((value.start, value.stop, value.step))
    else:
        text = _scalar(value)
        yield struct.pack("<I", len(text))
        yield text


def _scalar(value: object) -> bytes:
    """Distinct for values that compare equal: 1, 1.0 and True, 0.0 and -0.0."""
    if isinstance(value, float):
        return b"float " + struct.pack("<d", value)
    if isinstance(value, complex):
        return b"complex " + struct.pack("<dd", value.real, value.imag)
    if isinstance(value, int):
        return f"{type(value).__name__} {value:x}".encode()
    if isinstance(value, str):
        return b"str " + value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return b"bytes " + value
    if value is None or value is Ellipsis:
        return repr(value).encode()
    raise ValueError(f"a constant of type {type(value).__name__}")


def _syntax(node: Function) -> str:
    """Decorators, defaults and annotations as syntax: they are not in the function's code object."""
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [extra for extra in (arguments.vararg, arguments.kwarg) if extra is not None]
    parts: dict[str, list[ast.AST | None]] = {
        "decorators": list(node.decorator_list),
        "defaults": list(arguments.defaults),
        "keyword defaults": list(arguments.kw_defaults),
        "annotations": [argument.annotation for argument in every],
        "returns": [node.returns],
        "type parameters": list(getattr(node, "type_params", [])),
    }
    return json.dumps({key: [item and ast.dump(item) for item in items] for key, items in parts.items()})


def main(files: list[str]) -> int:
    """`digest FILE...`: one JSON object of `FILE::qualname` to digests, for maintainers."""
    functions: dict[str, Message] = {}
    failed = 0
    for file in files:
        try:
            found = of_source(Path(file).read_bytes())
        except (OSError, Uncompilable) as error:
            print(f"{file}: {error}", file=sys.stderr)
            failed = 1
            continue
        functions |= {f"{file}::{name}": digest for name, digest in found.items()}
    print(json.dumps({"tag": TAG, "functions": functions}, indent=2))
    return failed

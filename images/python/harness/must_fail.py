"""Must-fail: sealed modules compiled so that each end of a test function raises.

A case that passes all the same was not decided by its test. Test functions are those whose names pytest or unittest
collects; one that a file did not define as such (a factory's, or one that it imports) is wrapped instead, when its
case is about to run.
"""

import ast
import fnmatch
import inspect
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

NAME = "@tribunal"  # no source can say it
Function = ast.FunctionDef | ast.AsyncFunctionDef


class MustFail(AssertionError):
    """A test function came to an end."""


def compiled(files: Iterable[str], patterns: Sequence[str]) -> dict[str, CodeType]:
    """Code by path; a file that does not compile is left to the collection, which will say so."""
    import _pytest.assertion.rewrite

    codes = {}
    for file in files:
        try:
            source = Path(file).read_bytes()
            tree = ast.parse(source, filename=file)
            turn(tree, patterns)
            _pytest.assertion.rewrite.rewrite_asserts(tree, source, file, None)
            codes[file] = compile(tree, file, "exec", dont_inherit=True)
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return codes


def turn(tree: ast.Module, patterns: Sequence[str]) -> None:
    for function in _functions(tree.body):
        if _is_test(function.name, patterns):
            body = [_Ends().visit(statement) for statement in function.body]
            flat = [each for item in body for each in (item if isinstance(item, list) else [item])]
            function.body = [*flat, _raise()]
    imported = ast.Import([ast.alias(f"{__package__}.must_fail", NAME)])
    tree.body.insert(_preamble(tree), imported)
    ast.fix_missing_locations(tree)


def _functions(body: Iterable[ast.stmt]) -> Iterator[Function]:
    """Those of the module and its classes, not those within functions."""
    for node in body:
        if isinstance(node, Function):
            yield node
            continue
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.stmt):
                yield from _functions([inner])
            elif isinstance(inner, ast.ExceptHandler | ast.match_case):
                yield from _functions(inner.body)


def _is_test(name: str, patterns: Sequence[str]) -> bool:
    return any(
        name.startswith(pattern) or ("*" in pattern and fnmatch.fnmatch(name, pattern))
        for pattern in ("test", *patterns)
    )


class _Ends(ast.NodeTransformer):
    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        first: list[ast.stmt] = [ast.Expr(node.value)] if node.value is not None else []
        return [*first, _raise()]

    def _other(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = _other  # noqa: N815


def _raise() -> ast.stmt:
    return ast.Raise(ast.Call(ast.Attribute(ast.Name(NAME, ast.Load()), "MustFail", ast.Load()), [], []))


def _preamble(tree: ast.Module) -> int:
    """After the docstring and the `__future__` imports, which must come first."""
    at = 0
    for node in tree.body:
        docstring = at == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not docstring and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
        at += 1
    return at


def wrap(item: "pytest.Item") -> None:
    """What was not compiled to raise is made to."""
    function = getattr(item, "obj", None)
    if callable(function) and not _raises(function):
        item.obj = _wrapped(function)  # type: ignore[attr-defined]


def _raises(function: Any) -> bool:
    for _ in range(20):
        code = getattr(function, "__code__", None)
        if isinstance(code, CodeType) and NAME in code.co_names:
            return True
        inner = getattr(getattr(function, "hypothesis", None), "inner_test", None)
        function = inner or getattr(function, "__func__", None) or getattr(function, "__wrapped__", None)
        if function is None:
            return False
    return False


def _wrapped(function: Any) -> Any:
    def test(*args: Any, **kwargs: Any) -> None:
        function(*args, **kwargs)
        raise MustFail

    async def async_test(*args: Any, **kwargs: Any) -> None:
        await function(*args, **kwargs)
        raise MustFail

    return async_test if inspect.iscoroutinefunction(function) else test

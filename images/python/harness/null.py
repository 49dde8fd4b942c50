"""The null product: src whose functions all raise, once cases run.

Every `def`, `async def` and `lambda` of a src module, methods, properties, nested and decorated ones too, first asks
a switch and raises `NullProduct` where it is on; a generator or coroutine does so when it is first resumed. What
stays: names, signatures, docstrings, decorators, default values, classes, constants, and what the standard library
generates (a dataclass's `__init__`); also `__del__`, whose failure nobody hears. While a module of src is being
imported the switch is off, and so it is before the first case: registrations and tables still come to be.
"""

import ast
import builtins
from typing import TypeVar

NAME = "__tribunal_null__"  # how src modules reach the switch: dunder, so no class mangles it
SPARED = frozenset({"__del__"})
Function = TypeVar("Function", ast.FunctionDef, ast.AsyncFunctionDef)


class NullProduct(Exception):
    """What a function of the null product raises."""


class Switch:
    """Off until the first case, and while a module of src is imported."""

    def __init__(self) -> None:
        self._armed = False
        self._importing = 0

    def arm(self) -> None:
        self._armed = True

    def enter(self) -> None:
        self._importing += 1

    def leave(self) -> None:
        self._importing -= 1

    def __call__(self) -> None:
        if self._armed and self._importing == 0:
            raise NullProduct("planted: this function does nothing")


SWITCH = Switch()


def install() -> None:
    """Before the first src module is imported."""
    setattr(builtins, NAME, SWITCH)


def nulled(tree: ast.Module) -> ast.Module:
    """The module with every function asking the switch first."""
    _Nuller().visit(tree)
    head = _prologue(tree.body)
    body = tree.body[head:]
    if body:
        guarded = ast.Try(body=[_ask("enter"), *body], handlers=[], orelse=[], finalbody=[_ask("leave")])
        tree.body[head:] = [guarded]
    return ast.fix_missing_locations(tree)


def functions(tree: ast.Module) -> int:
    """How many would raise."""
    return sum(1 for node in ast.walk(tree) if _raises(node))


def _raises(node: ast.AST) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name not in SPARED
    return isinstance(node, ast.Lambda)


class _Nuller(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        return self._function(node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        self.generic_visit(node)
        node.body = ast.BoolOp(op=ast.Or(), values=[_call(None), node.body])
        return node

    def _function(self, node: Function) -> Function:
        self.generic_visit(node)
        if _raises(node):
            node.body.insert(1 if _is_docstring(node.body[0]) else 0, _ask(None))
        return node


def _prologue(body: list[ast.stmt]) -> int:
    """The docstring and `from __future__` have to stay where they are."""
    head = 0
    for statement in body:
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not future and not (head == 0 and _is_docstring(statement)):
            break
        head += 1
    return head


def _is_docstring(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _call(method: str | None) -> ast.Call:
    switch: ast.expr = ast.Name(id=NAME, ctx=ast.Load())
    if method is not None:
        switch = ast.Attribute(value=switch, attr=method, ctx=ast.Load())
    return ast.Call(func=switch, args=[], keywords=[])


def _ask(method: str | None) -> ast.Expr:
    return ast.Expr(value=_call(method))

"""Places of a module where one small change makes another program: the mutants that can be planted in it.

Enumerates a syntax tree, always in the same order, and gives each site the means to change that tree in place. One
change each: arithmetic, comparison and boolean operators, constants (numbers by one, texts, truth values), returned
values, negated conditions. Never in docstrings, annotations, decorators, error messages, names for the type checker,
`if TYPE_CHECKING` and `__main__` blocks, overloads, or behind a `return`: nobody could notice a change there.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitAnd,
}  # fmt: skip
COMPARISON: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
UNHEARD_CALLS = frozenset({"TypeVar", "ParamSpec", "TypeVarTuple", "NewType", "getLogger", "cast", "warn"})
UNSEEN_DECORATORS = frozenset({"overload", "abstractmethod"})
ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
TOP = "<module>"


@dataclass(frozen=True)
class Site:
    """One place, and how to change it."""

    function: str  # dotted, or `<module>`
    line: int
    what: str
    apply: Callable[[], None]


def of_tree(tree: ast.Module) -> list[Site]:
    return list(_Walk().block(tree.body, TOP))


class _Walk:
    """Statements by block, so that what follows a `return` is known; expressions by field."""

    def block(self, body: list[ast.stmt], function: str) -> Iterator[Site]:
        for number, statement in enumerate(body):
            if number == 0 and _is_text(statement):
                continue  # a docstring, or a text that stands for nothing
            yield from self._statement(statement, function)
            if isinstance(statement, ENDS):
                return

    def _statement(self, node: ast.stmt, function: str) -> Iterator[Site]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not UNSEEN_DECORATORS & {_last_name(item) for item in node.decorator_list}:
                for default in [*node.args.defaults, *node.args.kw_defaults]:
                    yield from self._expressions(default, function)
                yield from self.block(node.body, _inside(function, node.name))
        elif isinstance(node, ast.ClassDef):
            yield from self.block(node.body, _inside(function, node.name))
        elif isinstance(node, ast.If):
            yield from self._if(node, function)
        elif isinstance(node, ast.Return):
            yield from self._return(node, function)
        elif isinstance(node, ast.Assert):
            yield from self._fields(node, function, skipped=("msg",))
        elif isinstance(node, ast.Raise):
            yield from self._raise(node, function)
        elif not _is_unread(node):
            if isinstance(node, ast.AugAssign):
                yield from self._operator(node, function)
            yield from self._fields(node, function, skipped=("annotation", "target", "targets"))

    def _if(self, node: ast.If, function: str) -> Iterator[Site]:
        constant = node.test.value if isinstance(node.test, ast.Constant) else None
        if _last_name(node.test) == "TYPE_CHECKING" or _is_main(node.test) or constant in (False, 0):
            yield from self.block(node.orelse, function)
            return
        yield from self._negated(node, function)
        yield from self._expressions(node.test, function)
        yield from self.block(node.body, function)
        yield from self.block(node.orelse, function)

    def _return(self, node: ast.Return, function: str) -> Iterator[Site]:
        value = node.value
        if value is None or (isinstance(value, ast.Constant) and value.value is None):
            return
        if not isinstance(value, ast.Constant):
            nothing = ast.copy_location(ast.Constant(value=None), value)
            yield Site(function, node.lineno, "returns None", lambda: setattr(node, "value", nothing))
        yield from self._expressions(value, function, (node, "value"))

    def _raise(self, node: ast.Raise, function: str) -> Iterator[Site]:
        """What is raised matters, what it says hardly: its texts stay."""
        for site in self._fields(node, function):
            if not site.what.startswith("text "):
                yield site

    def _fields(self, node: ast.AST, function: str, skipped: tuple[str, ...] = ()) -> Iterator[Site]:
        for name, value in ast.iter_fields(node):
            if name in skipped:
                continue
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield from self.block(value, function)
                continue
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, ast.expr):
                    place = None if isinstance(value, list) else (node, name)
                    yield from self._expressions(item, function, place)
                elif isinstance(item, ast.excepthandler | ast.match_case | ast.withitem | ast.comprehension):
                    yield from self._fields(item, function, ("pattern", "type", "optional_vars", "target"))
                elif isinstance(item, ast.keyword):
                    yield from self._fields(item, function)

    def _expressions(
        self, node: ast.expr | None, function: str, place: tuple[Any, str] | None = None
    ) -> Iterator[Site]:
        if node is None or isinstance(node, ast.JoinedStr) or _is_unheard(node):
            yield from self._formatted(node, function)
            return
        if isinstance(node, ast.BinOp):
            yield from self._operator(node, function)
        elif isinstance(node, ast.Compare):
            yield from self._comparison(node, function)
        elif isinstance(node, ast.BoolOp):
            yield from self._boolean(node, function)
        elif isinstance(node, ast.IfExp):
            yield from self._negated(node, function)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not) and place is not None:
            yield _unary(node, function, place)
        elif isinstance(node, ast.Constant):
            yield from _constant(node, function)
            return
        elif isinstance(node, ast.Lambda):
            yield from self._expressions(node.body, function, (node, "body"))
            return
        yield from self._fields(node, function)

    def _formatted(self, node: ast.expr | None, function: str) -> Iterator[Site]:
        """Of a formatted text only what is put into it."""
        if isinstance(node, ast.JoinedStr):
            for value in node.values:
                if isinstance(value, ast.FormattedValue):
                    yield from self._expressions(value.value, function)

    @staticmethod
    def _operator(node: ast.BinOp | ast.AugAssign, function: str) -> Iterator[Site]:
        other = ARITHMETIC.get(type(node.op))
        if other is not None:
            what = f"{_sign(type(node.op))} for {_sign(other)}"
            yield Site(function, node.lineno, what, lambda: setattr(node, "op", other()))

    @staticmethod
    def _comparison(node: ast.Compare, function: str) -> Iterator[Site]:
        other = COMPARISON.get(type(node.ops[0]))
        if other is not None:
            what = f"{_sign(type(node.ops[0]))} for {_sign(other)}"
            yield Site(function, node.lineno, what, lambda: node.ops.__setitem__(0, other()))

    @staticmethod
    def _boolean(node: ast.BoolOp, function: str) -> Iterator[Site]:
        other: type[ast.boolop] = ast.Or if isinstance(node.op, ast.And) else ast.And
        what = f"{_sign(type(node.op))} for {_sign(other)}"
        yield Site(function, node.lineno, what, lambda: setattr(node, "op", other()))

    @staticmethod
    def _negated(node: ast.If | ast.IfExp, function: str) -> Iterator[Site]:
        turned = ast.copy_location(ast.UnaryOp(op=ast.Not(), operand=node.test), node.test)
        yield Site(function, node.lineno, "condition negated", lambda: setattr(node, "test", turned))


def _unary(node: ast.UnaryOp, function: str, place: tuple[Any, str]) -> Site:
    owner, name = place
    what = "not dropped" if isinstance(node.op, ast.Not) else "minus dropped"
    return Site(function, node.lineno, what, lambda: setattr(owner, name, node.operand))


def _constant(node: ast.Constant, function: str) -> Iterator[Site]:
    value: Any = node.value
    changed: Any
    if isinstance(value, bool):
        changed, what = not value, f"{value} for {not value}"
    elif isinstance(value, int | float | complex):
        changed, what = value + 1, "number plus one"
        if changed == value:
            return
    elif isinstance(value, str):
        changed, what = (f"{value}~", "text longer") if not value else (value[:-1], "text shorter")
        what = f"text {what.removeprefix('text ')}"
    elif isinstance(value, bytes):
        changed, what = (b"~", "text longer") if not value else (value[:-1], "text shorter")
    else:
        return
    yield Site(function, node.lineno, what, lambda: setattr(node, "value", changed))


def _is_unread(node: ast.stmt) -> bool:
    """`__all__` and its like, `import`, and texts that stand for nothing."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.Global | ast.Nonlocal | ast.TypeAlias) or _is_text(node):
        return True
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return any(name.startswith("__") and name.endswith("__") for name in names)


def _is_unheard(node: ast.expr) -> bool:
    """What speaks to the type checker, a log or a warning."""
    if not isinstance(node, ast.Call):
        return False
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    logs = owner is not None and _last_name(owner) in {"log", "logger", "logging", "_log", "_logger", "LOG", "LOGGER"}
    return logs or _last_name(node.func) in UNHEARD_CALLS


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_main(test: ast.expr) -> bool:
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id == "__name__"
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value == "__main__"
    )


def _last_name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _inside(function: str, name: str) -> str:
    return name if function == TOP else f"{function}.{name}"


SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.Lt: "<", ast.LtE: "<=",
    ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is", ast.IsNot: "is not", ast.In: "in",
    ast.NotIn: "not in", ast.And: "and", ast.Or: "or",
}  # fmt: skip


def _sign(operator: type[ast.AST]) -> str:
    return SIGNS[operator]

"""What silences in a test's text: its syntax tree to counts by place, never imported.

It errs on the side of seeing too much: names are followed through imports, assignments, containers and small functions
without regard to scope or order. What it cannot follow (another file's alias, a hook) the run's own collection shows.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

RECURSION = 50_000
DYNAMIC = "?"  # an attribute whose name cannot be read
HERE = "<here>."  # before the name of a function of the text itself that silences

# Whoever defines them, these words silence.
WORDS = frozenset({"SkipTest", "skipTest", "skipIf", "skipUnless", "expectedFailure", "importorskip"})
OUTCOMES = frozenset({"pytest.skip", "pytest.xfail", "pytest.importorskip", "unittest.skip"})
MAGIC = frozenset({"__unittest_skip__", "__unittest_expecting_failure__"})
ADDERS = frozenset({"add_marker", "applymarker"})
# Calls whose arguments only name an exception or a type.
NAMING = frozenset(
    {"raises", "assertRaises", "assertRaisesRegex", "isinstance", "issubclass", "suppress", "RaisesGroup"}
)
CONDITIONAL = frozenset({"skipif", "skipIf", "skipUnless", "xfail"})
SURROUNDINGS = (
    "os.environ", "os.getenv", "os.name", "os.uname", "os.getuid", "os.geteuid", "os.cpu_count", "sys.platform",
    "sys.version", "sys.version_info", "sys.implementation", "platform", "shutil.which", "socket",
    "importlib.util.find_spec",
)  # fmt: skip
STARS = {
    "pytest": ("mark", "skip", "xfail", "importorskip", "param", "fixture"),
    "unittest": ("SkipTest", "skip", "skipIf", "skipUnless", "expectedFailure", "TestCase"),
}
SAME = (  # (how it may be reached, what it is)
    ("_pytest.mark.structures.MARK_GEN", "pytest.mark"),
    ("_pytest.mark.MARK_GEN", "pytest.mark"),
    ("_pytest.outcomes.Skipped", "pytest.skip.Exception"),
    ("_pytest.outcomes.XFailed", "pytest.xfail.Exception"),
    ("_pytest.outcomes", "pytest"),
    ("unittest.case", "unittest"),
    ("py.test", "pytest"),
    ("builtins.", ""),
)


BINDING = (
    ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.AugAssign, ast.For, ast.AsyncFor, ast.comprehension, ast.withitem,
)  # fmt: skip


@dataclass(frozen=True)
class Found:
    """One thing that silences, by its place: the function or class it is on or in."""

    scope: str
    what: str
    detail: str = ""  # of a condition: another one is another silence
    early: bool = False


class Unreadable(ValueError):
    """The text is no Python, or none that this interpreter can take."""


def of_text(text: bytes, forbidden: frozenset[str]) -> dict[Found, list[int]]:
    """Everything in it that silences, with its lines."""
    sys.setrecursionlimit(RECURSION)
    try:
        tree = ast.parse(text)
        names = _Names(tree, forbidden)
        visitor = _Visitor(names, forbidden)
        visitor.visit(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(f"{type(error).__name__}: {error}") from error
    return visitor.found


def gained(now: bytes, before: Sequence[bytes], forbidden: frozenset[str]) -> list[tuple[Found, int]]:
    """What `now` has more often than each earlier text, with a line of it. An earlier one that is no Python has none"""
    counts: Counter[Found] = Counter()
    for text in before:
        try:
            earlier = {found: len(lines) for found, lines in of_text(text, forbidden).items()}
        except Unreadable:
            continue
        counts |= Counter(earlier)
    found = of_text(now, forbidden).items()
    return sorted(((what, lines[-1]) for what, lines in found if len(lines) > counts[what]), key=lambda pair: pair[1])


class _Names:
    """What every name of a text may stand for, as dotted paths."""

    def __init__(self, tree: ast.Module, forbidden: frozenset[str]) -> None:
        self._forbidden = forbidden
        self._bound: dict[str, set[str]] = {}
        self._members: dict[str, set[str]] = {}  # of classes, and what is assigned as an attribute
        self.fixtures: set[str] = set()
        nodes = list(ast.walk(tree))
        bodies = (node.body for node in nodes if isinstance(node, ast.ClassDef))
        self._in_classes = {id(statement) for body in bodies for statement in body}
        self._import(nodes)
        binding = [node for node in nodes if isinstance(node, BINDING)]
        functions = [
            (node, _used(node))
            for node in nodes
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("test")
        ]
        for _ in range(8):  # an alias of an alias of an alias
            before = self._size()
            for node in binding:
                self._assign(node)
            for function, used in functions:
                self._define(function, used)
            if self._size() == before:
                break

    def _size(self) -> int:
        return sum(map(len, self._bound.values())) + sum(map(len, self._members.values()))

    def _bind(self, name: str, paths: set[str], member: bool = False) -> None:
        if paths:
            self._bound.setdefault(name, set()).update(paths)
        if paths and member:
            self._members.setdefault(name, set()).update(paths)

    def _import(self, nodes: list[ast.AST]) -> None:
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    self._bind(alias.asname or top, {canonical(alias.name if alias.asname else top)})
            elif isinstance(node, ast.ImportFrom):
                module = "." * node.level + (node.module or "")
                for alias in node.names:
                    if alias.name == "*":
                        for name in STARS.get(canonical(module), ()):
                            self._bind(name, {canonical(f"{module}.{name}")})
                    else:
                        self._bind(alias.asname or alias.name, {canonical(f"{module}.{alias.name}")})

    def _assign(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._unpack(target, node.value, id(node) in self._in_classes)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr | ast.AugAssign) and node.value is not None:
            self._unpack(node.target, node.value)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            self._unpack(node.target, node.iter)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self._unpack(node.optional_vars, node.context_expr)

    def _unpack(self, target: ast.expr, value: ast.expr, member: bool = False) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            pairwise = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
            values = value.elts if pairwise and isinstance(value, ast.Tuple | ast.List) else [value] * len(target.elts)
            for part, its in zip(target.elts, values, strict=True):
                self._unpack(part, its, member)
            return
        name = target.id if isinstance(target, ast.Name) else target.attr if isinstance(target, ast.Attribute) else ""
        if name:
            # An unknown value says nothing of the name; what it is called says more.
            member = member or isinstance(target, ast.Attribute)
            self._bind(name, {path for path in self.of(value) if self._telling(path)}, member)

    def _telling(self, path: str) -> bool:
        known = ("pytest", "unittest", "<here>", "os", "sys")
        return path.partition(".")[0] in known or silences(path, self._forbidden)

    def _define(self, function: ast.FunctionDef | ast.AsyncFunctionDef, used: list[ast.expr]) -> None:
        """A function that silences does it for whoever calls it, is decorated by it, or asks for it as a fixture."""
        if any(self.silencing(node) for node in used):
            self._bind(function.name, {f"{HERE}{function.name}"}, id(function) in self._in_classes)
            words = {path.rpartition(".")[2] for decorator in function.decorator_list for path in self.of(decorator)}
            if "fixture" in words:
                self.fixtures.add(function.name)

    def silencing(self, node: ast.expr) -> bool:
        return any(silences(path, self._forbidden) for path in self.of(node))

    def of(self, node: ast.expr | None) -> set[str]:
        """The paths that an expression may come to."""
        if isinstance(node, ast.Name):
            return self._bound.get(node.id) or {node.id}
        if isinstance(node, ast.Attribute):
            own = {canonical(f"{path}.{node.attr}") for path in self.of(node.value)}
            return own | {path for path in self._members.get(node.attr, ()) if silences(path, self._forbidden)}
        if isinstance(node, ast.Call):
            return self._called(node)
        if isinstance(node, ast.Subscript):
            return self.of(node.value) | self._attribute(self._dict_of(node.value), node.slice)
        if isinstance(node, ast.IfExp):
            return self.of(node.body) | self.of(node.orelse)
        if isinstance(node, ast.NamedExpr | ast.Starred | ast.Await):
            return self.of(node.value)
        if isinstance(node, ast.Lambda):
            return self.of(node.body)
        if isinstance(node, ast.BoolOp):
            return self._union(node.values)
        if isinstance(node, ast.BinOp):
            return self.of(node.left) | self.of(node.right)
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return self._union(node.elts)
        if isinstance(node, ast.Dict):
            return self._union(node.values)
        return set()

    def _union(self, nodes: Sequence[ast.expr | None]) -> set[str]:
        return set().union(*(self.of(node) for node in nodes))

    def _called(self, node: ast.Call) -> set[str]:
        functions = self.of(node.func)
        word = {path.rpartition(".")[2] for path in functions}
        first = node.args[0] if node.args else None
        if "getattr" in word or "__getattribute__" in word or "__getattr__" in word:
            holder = first if "getattr" in word else getattr(node.func, "value", None)
            name = node.args[1] if "getattr" in word and len(node.args) > 1 else first
            return self._attribute(self.of(holder), name)
        if ("__import__" in word or "import_module" in word) and isinstance(first, ast.Constant):
            return {canonical(str(first.value)), canonical(str(first.value).partition(".")[0])}
        if "partial" in word or "MarkDecorator" in word:
            return self.of(first)
        if "Mark" in word and isinstance(first, ast.Constant) and isinstance(first.value, str):
            return {f"pytest.mark.{first.value}"}
        if isinstance(node.func, ast.Call) and "attrgetter" in {p.rpartition(".")[2] for p in self.of(node.func.func)}:
            return self._attribute(self.of(first), node.func.args[0] if node.func.args else None)
        return {path for path in functions if silences(path, self._forbidden)}

    def _attribute(self, holders: set[str], name: ast.expr | None) -> set[str]:
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            return {canonical(f"{path}.{name.value}") for path in holders}
        return {f"{path}.{DYNAMIC}" for path in holders if path in ("pytest.mark", "pytest", "unittest")}

    def _dict_of(self, node: ast.expr) -> set[str]:
        """`vars(x)` and `x.__dict__`."""
        if isinstance(node, ast.Attribute) and node.attr == "__dict__":
            return self.of(node.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "vars" and node.args:
            return self.of(node.args[0])
        return set()


def _used(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.expr]:
    inside = (node for statement in function.body for node in ast.walk(statement))
    return [node for node in inside if isinstance(node, ast.Name | ast.Attribute | ast.Call)]


def canonical(path: str) -> str:
    for reached, means in SAME:
        if path == reached or path.startswith(f"{reached.rstrip('.')}."):
            return means + path[len(reached) :]
    return path


def silences(path: str, forbidden: frozenset[str]) -> bool:
    if path.startswith("pytest.mark."):
        name = path.split(".")[2]
        return name == DYNAMIC or name in forbidden
    if path.startswith(HERE) or path in ("pytest.?", "unittest.?"):
        return True
    return path.rpartition(".")[2] in WORDS or any(path == each or path.startswith(f"{each}.") for each in OUTCOMES)


class _Visitor(ast.NodeVisitor):
    def __init__(self, names: _Names, forbidden: frozenset[str]) -> None:
        self.found: dict[Found, list[int]] = {}
        self._names = names
        self._forbidden = forbidden
        self._scope: list[str] = []

    def _record(self, what: str, line: int, detail: str = "", early: bool = False) -> None:
        found = Found(".".join(self._scope), what, detail, early)
        self.found.setdefault(found, []).append(line)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._scoped(node, [*node.bases, *(keyword.value for keyword in node.keywords), *node.body])

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._scope.append(node.name)
        arguments = node.args
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            if argument.arg in self._names.fixtures:
                self._record(f"fixture {argument.arg}", node.lineno)
        if node.name.startswith("test"):
            for line, condition in self._early(node.body):
                self._record(condition, line, early=True)
        self._scope.pop()
        self._scoped(node, [node.args, *node.body])

    def _scoped(self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, inside: Sequence[ast.AST]) -> None:
        self._scope.append(node.name)
        for decorator in node.decorator_list:
            self._mark(decorator)
        for part in inside:
            self.visit(part)
        self._scope.pop()

    def _mark(self, node: ast.expr) -> None:
        """Where a mark is put on something, its bare name is enough."""
        target = node.func if isinstance(node, ast.Call) else node
        paths = self._names.of(target)
        named = {path for path in paths if path.rpartition(".")[2] in self._forbidden}
        if named and not any(silences(path, self._forbidden) for path in paths):
            self._seen(node, named)
        else:
            self.visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._magic(target)
        if any(isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets):
            marks = node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value]
            for mark in marks:
                self._mark(mark)
            return
        self.generic_visit(node)

    def _magic(self, target: ast.expr) -> None:
        name = target.id if isinstance(target, ast.Name) else getattr(target, "attr", "")
        if name in MAGIC:
            self._record(name, target.lineno)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        for statement in node.body:
            self.visit(statement)

    def visit_Call(self, node: ast.Call) -> None:
        paths = self._names.of(node.func)
        words = {path.rpartition(".")[2] for path in paths}
        if isinstance(node.func, ast.Attribute):
            words.add(node.func.attr)
        constants = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
        texts = {value for value in constants if isinstance(value, str)}
        if words & {"exec", "eval"}:
            self._nested(texts, node)
        if words & ADDERS:
            for text in sorted(texts & self._forbidden):
                self._record(f"pytest.mark.{text}", node.lineno)
            for argument in node.args:
                self._mark(argument)
            return
        if "usefixtures" in words:
            for text in sorted(texts & self._names.fixtures):
                self._record(f"fixture {text}", node.lineno)
        if "setattr" in words and texts & MAGIC:
            self._record(min(texts & MAGIC), node.lineno)
        for keyword in node.keywords:
            if keyword.arg == "marks":
                marks = keyword.value.elts if isinstance(keyword.value, ast.List | ast.Tuple) else [keyword.value]
                for mark in marks:
                    self._mark(mark)
        rest = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg != "marks")]
        if words & NAMING:
            self.visit(node.func)
        elif self._names.silencing(node.func):
            self._seen(node, paths)
        elif self._names.silencing(node):  # getattr and its kin
            self._seen(node, self._names.of(node))
        else:
            self.visit(node.func)
            for part in rest:
                self.visit(part)

    def _nested(self, texts: set[str], node: ast.Call) -> None:
        for text in sorted(texts):
            try:
                tree = ast.parse(text)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
            for part in ast.walk(tree):
                if hasattr(part, "lineno"):
                    part.lineno = node.lineno
            self.visit(tree)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, ast.Load) and self._names.silencing(node):
            self._seen(node, self._names.of(node))
        else:
            self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and self._names.silencing(node):
            self._seen(node, self._names.of(node))

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.ctx, ast.Load) and self._names.silencing(node):
            self._seen(node, self._names.of(node))
            self.visit(node.slice)
        else:
            self.generic_visit(node)

    def _seen(self, node: ast.expr, paths: set[str]) -> None:
        """One silence, whatever chain of calls and attributes spells it; what is in its arguments counts by itself."""
        telling = sorted(path for path in paths if silences(path, self._forbidden)) or sorted(paths)
        what = telling[0].removesuffix(".Exception")
        detail = ""
        inner: ast.expr = node
        while isinstance(inner, ast.Call | ast.Attribute):
            if isinstance(inner, ast.Call):
                if what.rpartition(".")[2] in CONDITIONAL:
                    detail += _condition(inner, what)
                if inner is node or not isinstance(inner.func, ast.Name):
                    for argument in [*inner.args, *(keyword.value for keyword in inner.keywords)]:
                        if not isinstance(argument, ast.Constant) and not self._names.silencing(argument):
                            self.visit(argument)
            inner = inner.func if isinstance(inner, ast.Call) else inner.value
        self._record(what, node.lineno, detail)

    def _early(self, body: list[ast.stmt]) -> Iterator[tuple[int, str]]:
        for statement in body:
            if isinstance(statement, ast.If):
                leaves = any(isinstance(inner, ast.Return) for inner in statement.body)
                if leaves and self._surroundings(statement.test):
                    yield statement.lineno, ast.unparse(statement.test)[:120]
                yield from self._early([*statement.body, *statement.orelse])
            elif isinstance(statement, ast.With | ast.AsyncWith | ast.Try):
                yield from self._early(statement.body)

    def _surroundings(self, test: ast.expr) -> bool:
        for node in ast.walk(test):
            if isinstance(node, ast.Name | ast.Attribute):
                for path in self._names.of(node):
                    if any(path == each or path.startswith(f"{each}.") for each in SURROUNDINGS):
                        return True
        return False


def _condition(call: ast.Call, what: str) -> str:
    """When it silences; why is free to be reworded."""
    arguments = call.args[:1] if what.rpartition(".")[2] in ("skipIf", "skipUnless") else call.args
    keywords = sorted((keyword for keyword in call.keywords if keyword.arg != "reason"), key=lambda k: str(k.arg))
    parts = [ast.dump(argument) for argument in arguments]
    return "|".join([*parts, *(f"{keyword.arg}={ast.dump(keyword.value)}" for keyword in keywords)])

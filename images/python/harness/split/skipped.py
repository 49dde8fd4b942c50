"""What a sealed file had still to assert where an exception left it.

Code of the tests that the product calls, or that stands in its `with` blocks, can be left by an exception of the
product's own, which the product then swallows: what follows is never asserted, and the case is green. Read from the
file's text; a file that cannot be read asserts nothing. An assertion of what is always false marks a line that must not
be reached, and is none.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterator
from typing import Any

_With = ast.With | ast.AsyncWith


class Skipped:
    def __init__(self, sealed: Callable[[Any], bool]) -> None:
        self._sealed = sealed
        self._files: dict[str, ast.Module | None] = {}
        self._ends: dict[types.CodeType, int] = {}  # the last line of the last assertion; 0 where there is none

    def of(self, error: BaseException, block: types.FrameType | None = None) -> types.CodeType | None:
        """The code that was left with something to assert; `block` is the frame whose `with` block ended so."""
        trace = error.__traceback__
        while trace is not None:
            frame, line = trace.tb_frame, trace.tb_lineno
            trace = trace.tb_next
            code = frame.f_code
            if not self._sealed(code.co_filename):
                continue
            end = self._end(code) if frame is not block else self._end_of_block(code, frame.f_lineno)
            if end >= line:
                return code
        return None

    def caller(self, frame: types.FrameType | None) -> types.FrameType | None:
        """The nearest frame of a sealed file."""
        while frame is not None and not self._sealed(frame.f_code.co_filename):
            frame = frame.f_back
        return frame

    def _tree(self, file: str) -> ast.Module | None:
        if file not in self._files:
            try:
                with open(file, "rb") as opened:
                    self._files[file] = ast.parse(opened.read())
            except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
                self._files[file] = None
        return self._files[file]

    def _end(self, code: types.CodeType) -> int:
        if code not in self._ends:
            lines = {at for _, _, at in code.co_lines() if at is not None}
            self._ends[code] = self._last(code, lines)
        return self._ends[code]

    def _end_of_block(self, code: types.CodeType, line: int) -> int:
        """The same of the `with` block that this line enters."""
        lines: set[int] = set()
        for node in ast.walk(self._tree(code.co_filename) or ast.Module([], [])):
            if isinstance(node, _With) and any(
                part.context_expr.lineno <= line <= (part.context_expr.end_lineno or 0) for part in node.items
            ):
                lines.update(range(node.body[0].lineno, (node.body[-1].end_lineno or 0) + 1))
        return self._last(code, lines)

    def _last(self, code: types.CodeType, lines: set[int]) -> int:
        tree = self._tree(code.co_filename)
        if tree is None:
            return 0
        return max((node.end_lineno or 0 for node in _asserting(tree) if node.lineno in lines), default=0)


def _asserting(tree: ast.Module) -> Iterator[ast.stmt]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            if not (isinstance(node.test, ast.Constant) and not node.test.value):
                yield node
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = node.value.func
            if isinstance(called, ast.Attribute) and called.attr.startswith("assert"):
                yield node

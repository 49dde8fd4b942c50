"""The null product: what raises, when, and what stays."""

import ast
import asyncio
import builtins
import inspect
import sys
import textwrap
import types

import pytest

from harness import null

SOURCE = '''
"""What the module is."""
from __future__ import annotations

import dataclasses
import functools

TABLE = {}


def register(function):
    TABLE[function.__name__] = function
    return function


@register
def double(x: int, by: int = 2) -> int:
    """Twice."""
    return x * by


def steps(n):
    yield from range(n)


async def later():
    return 1


triple = lambda x: x * 3
MADE = double(4)


class Money:
    limit = 3

    def __init__(self, amount):
        self.amount = amount

    @property
    def half(self):
        return self.amount / 2

    @classmethod
    def zero(cls):
        return cls(0)

    @staticmethod
    def sign():
        return "$"

    @functools.cached_property
    def cached(self):
        return 1

    def __del__(self):
        pass


@dataclasses.dataclass
class Plain:
    x: int = 1
'''


@pytest.fixture
def product(monkeypatch):
    switch = null.Switch()
    monkeypatch.setattr(builtins, null.NAME, switch, raising=False)
    module = types.ModuleType("product")
    monkeypatch.setitem(sys.modules, "product", module)
    space = vars(module)
    tree = null.nulled(ast.parse(textwrap.dedent(SOURCE)))
    exec(compile(tree, "product.py", "exec"), space)
    yield switch, space


def test_it_imports_and_works_until_the_first_case(product):
    _, space = product
    assert space["MADE"] == 8 and space["double"](3) == 6 and space["TABLE"]["double"] is space["double"]
    assert space["__doc__"] == "What the module is." and space["double"].__doc__ == "Twice."
    assert str(inspect.signature(space["double"])) == "(x: 'int', by: 'int' = 2) -> 'int'"


CALLS = {
    "function": "double(1)",
    "generator": "list(steps(2))",
    "coroutine": "asyncio.run(later())",
    "lambda": "triple(1)",
    "init": "Money(1)",
    "classmethod": "Money.zero()",
    "staticmethod": "Money.sign()",
    "property": "made.half",
    "cached property": "made.cached",
    "decorated": "TABLE['double'](1)",
}


@pytest.mark.parametrize("name", CALLS)
def test_every_function_raises_once_cases_run(product, name):
    switch, space = product
    space.update(asyncio=asyncio, made=space["Money"](4))
    assert eval(CALLS[name], space) is not null
    space["made"] = space["Money"](4)
    switch.arm()
    with pytest.raises(null.NullProduct):
        eval(CALLS[name], space)


def test_what_is_no_function_of_src_stays(product):
    switch, space = product
    switch.arm()
    assert space["Plain"](5).x == 5 and space["Money"].limit == 3 and space["MADE"] == 8


def test_a_module_imported_in_a_case_is_imported(product):
    switch, _ = product
    switch.arm()
    source = "def f(x=1):\n    return x\nMADE = f()\nclass C:\n    made = f(2)\n"
    space: dict = {}
    exec(compile(null.nulled(ast.parse(source)), "late.py", "exec"), space)
    assert space["MADE"] == 1 and space["C"].made == 2
    with pytest.raises(null.NullProduct):
        space["f"]()


def test_a_module_that_fails_leaves_the_switch_as_it_was(product):
    switch, space = product
    with pytest.raises(ZeroDivisionError):
        exec(compile(null.nulled(ast.parse("1 / 0")), "broken.py", "exec"), {})
    switch.arm()
    with pytest.raises(null.NullProduct):
        space["double"](1)


@pytest.mark.parametrize("source", ["", '"""doc"""', "from __future__ import annotations", "x = 1", "from os import *"])
def test_small_modules_compile(source):
    compile(null.nulled(ast.parse(source)), "m.py", "exec")


def test_functions_are_counted():
    assert null.functions(ast.parse(SOURCE)) == 10 and null.functions(ast.parse("X = 1")) == 0

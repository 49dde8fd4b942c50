"""The null product behind the split: alive while tests are collected, raising once cases run."""

import ast
from importlib.machinery import SourceFileLoader

import pytest
from conftest import Pair

from harness import null


def plant():
    null.install()
    SourceFileLoader.source_to_code = lambda self, data, path: compile(null.nulled(ast.parse(data)), path, "exec")


def test_it_raises_from_the_first_case_on():
    pair = Pair(plant)
    try:
        assert pair.product.echo(3) == 3
        pair.connection.between_cases()
        with pytest.raises(Exception, match="planted: this function does nothing") as caught:
            pair.product.echo(3)
        assert type(caught.value).__name__ == "NullProduct"
        pair.connection.between_cases()
        with pytest.raises(Exception, match="planted"):
            pair.product.echo(3)
        assert pair.tampers == []
    finally:
        pair.end()

"""Mutants: one change each, where code runs, drawn by the seed over all files and functions."""

import ast
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from harness import mutate, sites
from harness.layout import Layout
from harness.orders import Policy


def mutants(source: str) -> dict[str, str]:
    """What each site makes of it."""
    source = textwrap.dedent(source)
    made = {}
    for number, site in enumerate(sites.of_tree(ast.parse(source))):
        tree = ast.parse(source)
        sites.of_tree(tree)[number].apply()
        compile(ast.fix_missing_locations(tree), "m.py", "exec")
        made[f"{site.function}:{site.line} {site.what}"] = ast.unparse(tree)
    return made


CHANGES = {
    "x = a + b": {"x = a - b"},
    "x = a - b": {"x = a + b"},
    "x = a * b": {"x = a // b"},
    "x = a / b": {"x = a * b"},
    "x = a % b": {"x = a * b"},
    "x **= a": {"x *= a"},
    "x += a": {"x -= a"},
    "x = a < b": {"x = a <= b"},
    "x = a >= b": {"x = a > b"},
    "x = a == b": {"x = a != b"},
    "x = a in b": {"x = a not in b"},
    "x = a is b": {"x = a is not b"},
    "x = a and b": {"x = a or b"},
    "x = a or b": {"x = a and b"},
    "x = not a": {"x = a"},
    "x = -a": {"x = a"},
    "x = 1": {"x = 2"},
    "x = 1.5": {"x = 2.5"},
    "x = True": {"x = False"},
    "x = 'ab'": {"x = 'a'"},
    "x = ''": {"x = '~'"},
    "x = b'ab'": {"x = b'a'"},
    "x = a if b else c": {"x = a if not b else c"},
    "x[a] = b[1:]": {"x[a] = b[2:]"},
    "x = [1, a]": {"x = [2, a]"},
    "f(a, k=1)": {"f(a, k=2)"},
    "x = lambda a: a + b": {"x = lambda a: a - b"},
    "x = [a for a in b if a < c]": {"x = [a for a in b if a <= c]"},
    "x = f'{a + b} c'": {"x = f'{a - b} c'"},
    "with f(1) as x:\n    pass": {"with f(2) as x:\n    pass"},
    "try:\n    a + b\nexcept E:\n    a - b": {
        "try:\n    a - b\nexcept E:\n    a - b",
        "try:\n    a + b\nexcept E:\n    a + b",
    },
    "match a:\n    case 1:\n        a + b": {"match a:\n    case 1:\n        a - b"},
    "while a < b:\n    f()": {"while a <= b:\n    f()"},
}


@pytest.mark.parametrize("source", CHANGES)
def test_each_kind_of_change(source):
    assert set(mutants(source).values()) == {ast.unparse(ast.parse(text)) for text in CHANGES[source]}


def test_returns_and_conditions():
    made = mutants("def f(a):\n    if a:\n        return g(a)\n    return None\n")
    assert {key.partition(" ")[2] for key in made} == {"condition negated", "returns None"}
    assert {key.partition(":")[0] for key in made} == {"f"}


UNNOTICED = [
    '"""Doc 1."""',
    "def f():\n    '''Doc.'''",
    "class A:\n    '''Doc.'''",
    "__all__ = ['f']\n__version__ = '1.0'",
    "class A:\n    __slots__ = ('a',)",
    "if TYPE_CHECKING:\n    x = 1",
    "if typing.TYPE_CHECKING:\n    x = 1",
    "if __name__ == '__main__':\n    main(1)",
    "if False:\n    x = 1",
    "def f():\n    return\n    x = 1",
    "def f():\n    raise E\n    x = 1",
    "def f():\n    raise E('message')",
    "assert a, 'message'",
    "x: Literal['a'] = f()",
    "def f(a: Literal['a']) -> Literal[1]:\n    pass",
    "@overload\ndef f(a=1):\n    return 1",
    "T = TypeVar('T')",
    "logger.info('message', 1)",
    "type A = list[Literal[1]]",
    "from a import b",
    "@decorator(1)\ndef f():\n    pass",
    "def f():\n    return None",
]


@pytest.mark.parametrize("source", UNNOTICED)
def test_nothing_is_planted_where_nobody_could_notice(source):
    assert mutants(source) == {}


def test_the_rest_of_a_guarded_block_is_seen():
    assert len(mutants("if TYPE_CHECKING:\n    x = 1\nelse:\n    x = 2\n")) == 1


def lay(tmp_path: Path, files: dict[str, str]) -> tuple[Layout, Policy]:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    policy = {
        "src_roots": ["src/", "one.py"], "sealed_roots": ["src/tests/"], "pythonpath": ["."], "timezone": "UTC",
        "seed_env": [], "attempt_timeout_ms": 1, "case_timeout_ms": 1, "output_bytes": 1, "preload": "", "cpus": 1,
    }  # fmt: skip
    return Layout(tree=str(tmp_path), srcfiles=str(tmp_path / "none")), Policy.parse(policy)


MANY = {f"src/m{n}.py": "\n".join(f"def f{k}(a):\n    return a + {k}\n" for k in range(9)) for n in range(3)}


def test_they_are_spread_over_files_and_functions(tmp_path):
    paths = mutate.files_of(*lay(tmp_path, MANY))
    chosen = mutate.plan(paths, 7, 20)
    assert len(chosen) == 20 and len(set(chosen)) == 20
    assert sorted(Counter(one.path for one in chosen).values()) == [6, 7, 7]
    assert max(Counter((one.path, one.function) for one in chosen).values()) == 1


def test_the_seed_and_nothing_else_draws_them(tmp_path):
    paths = mutate.files_of(*lay(tmp_path, MANY))
    assert mutate.plan(paths, 7, 20) == mutate.plan(list(reversed(paths)), 7, 20)
    assert mutate.plan(paths, 7, 20) != mutate.plan(paths, 8, 20)


def test_src_and_only_src_is_changed(tmp_path):
    files = {
        "src/a.py": "X = 1\n", "src/tests/test_a.py": "X = 1\n", "src/data.txt": "1", "one.py": "X = 1\n",
        "other.py": "X = 1\n", "src/broken.py": "def (:\n", "src/deep/b.py": "X = 1\n", "src/empty.py": "",
    }  # fmt: skip
    paths = mutate.files_of(*lay(tmp_path, files))
    assert [path.removeprefix(f"{tmp_path}/") for path in paths] == [
        "one.py", "src/a.py", "src/broken.py", "src/deep/b.py", "src/empty.py",
    ]  # fmt: skip
    chosen = mutate.plan(paths, 0, 20)
    assert sorted(Path(one.path).name for one in chosen) == ["a.py", "b.py", "one.py"]


def test_a_mutant_changes_its_file_alone(tmp_path):
    paths = mutate.files_of(*lay(tmp_path, {"src/a.py": "X = 1\n", "src/b.py": "X = 1\n"}))
    planted = next(one for one in mutate.plan(paths, 0, 2) if one.path.endswith("a.py"))
    transform = mutate.mutant(planted)
    made = [ast.unparse(transform(ast.parse("X = 1"), path)) for path in paths if path.startswith(f"{tmp_path}/src/")]
    assert made == ["X = 2", "X = 1"]

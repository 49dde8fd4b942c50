"""What is collected, under which names, and what a file that cannot be collected leaves behind."""

ODD = "a::b", "x]y[z", "tab\there", "caf\u00e9", "", "dup", "dup", "sp ace", 'q"uote', "new\nline", "\ud800"


def test_ids_of_any_kind_are_unique_and_stable(open_room):
    room = open_room(
        {
            "tests/sealed/test_ids.py": f"""
import pytest
IDS = {ODD!r}
@pytest.mark.parametrize("k", range(len(IDS)), ids=IDS)
def test_echo(k): assert IDS[k] != "a::b"
@pytest.mark.parametrize("k", ["x" * 90_000, "\\0", "\\ud800", b"\\xff"], ids=repr)
def test_raw(k): pass
class TestTwin:
    def test_same(self): pass
TestOther = TestTwin
"""
        }
    )
    first, second = room.attempt(0), room.attempt(1)
    assert first.end["end"] == second.end["end"] == "finished"
    assert first.nodes == second.nodes
    assert len(set(first.nodes)) == len(first.nodes) == len(ODD) + 4 + 2
    assert sorted(first.cases) == sorted(first.nodes)
    assert first.outcome("tests/sealed/test_ids.py::test_echo[a::b]") == "failed"
    assert [node for node in first.nodes if first.outcome(node) == "failed"] == [
        "tests/sealed/test_ids.py::test_echo[a::b]"
    ]


def test_equal_ids_get_numbers(attempt):
    ran = attempt(
        {
            "tests/sealed/conftest.py": """
def pytest_collection_modifyitems(items):
    for item in items:
        plain = item.nodeid.split("[")[0]
        item.__class__ = type("Same", (type(item),), {"nodeid": property(lambda self: plain)})
""",
            "tests/sealed/test_a.py": """
import pytest
@pytest.mark.parametrize("n", [1, 2, 3])
def test_n(n): assert n != 2
""",
        }
    )
    name = "tests/sealed/test_a.py::test_n"
    assert ran.outcomes() == {name: "passed", f"{name}#2": "failed", f"{name}#3": "passed"}


def test_files_in_manifest_order_with_equal_basenames_and_packages(attempt):
    ran = attempt(
        {
            "conftest.py": "import pytest\n@pytest.fixture\ndef top(): return 'top'\n",
            "tests/sealed/conftest.py": "import pytest\n@pytest.fixture\ndef near(): return 'near'\n",
            "tests/sealed/helpers.py": "VALUE = 'beside'\n",
            "tests/sealed/test_Z.py": "def test_z(): pass\n",
            "tests/sealed/a/test_x.py": "WHERE = 'a'\ndef test_where(top, near): assert WHERE == 'a' and near == 'near'\n",
            "tests/sealed/b/conftest.py": "import pytest\n@pytest.fixture\ndef near(): return 'b'\n",
            "tests/sealed/b/test_x.py": "WHERE = 'b'\ndef test_where(top, near): assert WHERE == 'b' and near == 'b'\n",
            "tests/sealed/pkg/__init__.py": "NAME = __name__\n",
            "tests/sealed/pkg/tools.py": "def tool(): return 'tool'\n",
            "tests/sealed/pkg/test_x.py": """
from .tools import tool
from . import NAME
def test_relative(near): assert tool() == 'tool' and NAME == 'pkg' and __name__ == 'pkg.test_x'
""",
            "tests/sealed/test_a.py": "import helpers\ndef test_beside(): assert helpers.VALUE == 'beside'\n",
            "tests/sealed/json/__init__.py": "",
            "tests/sealed/json/test_stdlib_name.py": """
import json
def test_name(): assert __name__ == 'tests_sealed_json.test_stdlib_name' and json.loads('1') == 1
""",
        }
    )
    assert ran.collected["errors"] == []
    assert [node.split("::")[0] for node in ran.nodes] == [
        "tests/sealed/a/test_x.py",
        "tests/sealed/b/test_x.py",
        "tests/sealed/json/test_stdlib_name.py",
        "tests/sealed/pkg/test_x.py",
        "tests/sealed/test_Z.py",
        "tests/sealed/test_a.py",
    ]
    assert set(ran.outcomes().values()) == {"passed"}, ran.failures()


def test_errors_of_collection_leave_the_other_files_alone(attempt):
    ran = attempt(
        {
            "src/lib.py": "import sys\ndef leave(): sys.exit(0)\n",
            "src/worse.py": "raise KeyboardInterrupt\n",
            "tests/sealed/test_a.py": "def test_a(): pass\n",
            "tests/sealed/test_exit.py": "import lib\nlib.leave()\ndef test_never(): pass\n",
            "tests/sealed/test_import.py": "import nonesuch\ndef test_never(): pass\n",
            "tests/sealed/test_interrupt.py": "import worse\ndef test_never(): pass\n",
            "tests/sealed/test_pytest_exit.py": "import pytest\npytest.exit('bye', returncode=0)\n",
            "tests/sealed/test_syntax.py": "def test_never(:\n",
            "tests/sealed/test_z.py": "def test_z(): pass\n",
            "tests/sealed/test_zero.py": "x = 1 / 0\n",
        }
    )
    errors = {error["file"]: error["exception"] for error in ran.collected["errors"]}
    assert {file: error["type"] for file, error in errors.items()} == {
        "tests/sealed/test_exit.py": "SystemExit",
        "tests/sealed/test_import.py": "ModuleNotFoundError",
        "tests/sealed/test_interrupt.py": "KeyboardInterrupt",
        "tests/sealed/test_pytest_exit.py": "Exit",
        "tests/sealed/test_syntax.py": "SyntaxError",
        "tests/sealed/test_zero.py": "ZeroDivisionError",
    }
    assert "nonesuch" in errors["tests/sealed/test_import.py"]["message"]
    assert ran.end["end"] == "finished"
    assert ran.outcomes() == {"tests/sealed/test_a.py::test_a": "passed", "tests/sealed/test_z.py::test_z": "passed"}


def test_nothing_but_errors(attempt):
    ran = attempt({"src/lib.py": "raise SystemExit(0)\n", "tests/sealed/test_a.py": "import lib\ndef test_a(): pass\n"})
    assert [error["exception"]["type"] for error in ran.collected["errors"]] == ["SystemExit"]
    assert (ran.end["end"], ran.nodes, ran.cases) == ("finished", [], {})


def test_a_conftest_that_cannot_be_imported_is_named(attempt):
    ran = attempt(
        {
            "src/lib.py": "raise RuntimeError('product is broken')\n",
            "tests/sealed/conftest.py": "import lib\n",
            "tests/sealed/test_a.py": "def test_a(): pass\n",
        }
    )
    assert ran.cases == {}
    (error,) = ran.collected["errors"]
    assert error["file"] == "tests/sealed/conftest.py"
    assert error["exception"]["type"] == "RuntimeError"
    assert ran.end["end"] == "finished"


def test_configuration_of_the_base_without_what_would_choose_the_result(attempt):
    ran = attempt(
        {
            "pyproject.toml": """
[tool.pytest.ini_options]
addopts = "--collect-only -k nothing -p no:python --maxfail=1 --deselect tests/sealed/test_a.py"
required_plugins = ["pytest-rerunfailures"]
testpaths = ["elsewhere"]
python_functions = ["test_*", "check_*"]
python_files = ["nothing_*.py"]
markers = ["mine: a mark"]
log_file = "somewhere/log.txt"
filterwarnings = ["error::UserWarning"]
strict_markers = true
xfail_strict = true
""",
            "tests/sealed/test_a.py": """
import pytest, warnings
def test_first(): assert False
def check_named(): pass
@pytest.mark.mine
def test_marked(): pass
def test_warns(): warnings.warn("as error")
@pytest.mark.xfail
def test_strict(): pass
@pytest.mark.asyncio
async def test_async(): pass
""",
        }
    )
    name = "tests/sealed/test_a.py::"
    assert ran.collected["errors"] == []
    assert ran.outcomes() == {
        name + "test_first": "failed",
        name + "check_named": "passed",
        name + "test_marked": "passed",
        name + "test_warns": "failed",
        name + "test_strict": "failed",
        name + "test_async": "passed",
    }


def test_conftests_under_src_are_not_loaded(attempt):
    ran = attempt(
        {
            "src/conftest.py": "raise RuntimeError('loaded')\n",
            "src/tests/conftest.py": "raise RuntimeError('loaded')\n",
            "src/tests/test_inside.py": "def test_inside(): pass\n",
            "tests/sealed/test_a.py": "def test_a(): pass\n",
        }
    )
    assert ran.collected["errors"] == []
    assert set(ran.outcomes().values()) == {"passed"}, ran.failures()


def test_sealed_paths_inside_a_src_root(attempt):
    ran = attempt(
        {
            "src/lib/__init__.py": "import pytest\ndef skip(): pytest.skip('product')\n",
            "src/lib/tests/__init__.py": "",
            "src/lib/tests/conftest.py": "import pytest\n@pytest.fixture\ndef there(): return True\n",
            "src/lib/tests/test_inside.py": """
import pytest
from .. import skip
def test_fixture(there): assert there
def test_sealed(): pytest.skip("sealed")
def test_product(): skip()
""",
        },
        {"sealed_roots": ["src/lib/tests/"]},
    )
    name = "src/lib/tests/test_inside.py::"
    assert ran.outcome(name + "test_fixture") == "passed"
    assert ran.phase(name + "test_sealed", "call")["by"] == "sealed"
    assert ran.phase(name + "test_product", "call")["by"] == "product"


def test_a_src_root_that_is_one_file(attempt, tmp_path):
    tree = {
        "tests/sealed/test_a.py": "import parse, pytest\ndef test_a(): assert parse.VALUE == 3\ndef test_skip(): parse.skip()\n",
    }
    (tmp_path / "tree0").mkdir()
    from room import Room, lay

    place = lay(tmp_path / "tree0", tree)
    (place / "parse.py").symlink_to("/srcfiles/parse.py")
    with Room(place, {"src_roots": ["parse.py"], "pythonpath": ["."]}) as room:
        import io
        import tarfile

        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            body = b"import pytest\nVALUE = 3\ndef skip(): pytest.skip('product')\n"
            member = tarfile.TarInfo("parse.py")
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))
        assert room.configure(out.getvalue())["type"] == "configured"
        ran = room.attempt()
    assert ran.outcomes() == {
        "tests/sealed/test_a.py::test_a": "passed",
        "tests/sealed/test_a.py::test_skip": "skipped",
    }
    assert ran.phase("tests/sealed/test_a.py::test_skip", "call")["by"] == "product"


def test_bytecode_that_lies_about_is_not_read(attempt, tmp_path):
    import importlib.util
    import py_compile

    from room import Room, lay

    tree = lay(
        tmp_path / "tree0",
        {
            "src/lib.py": "VALUE = 'source'\n",
            "tests/sealed/helper.py": "VALUE = 'source'\n",
            "tests/sealed/test_a.py": "import lib, helper\ndef test_a(): assert lib.VALUE == helper.VALUE == 'source'\n"
            "def test_gone():\n    import only_bytecode\n",
        },
    )
    (tmp_path / "other.py").write_text("VALUE = 'cache'\n")
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    for source in ("src/lib.py", "tests/sealed/helper.py"):
        for tag in ("cpython-313", "cpython-312"):
            cache = tree / source.rpartition("/")[0] / "__pycache__" / f"{source.rpartition('/')[2][:-3]}.{tag}.pyc"
            py_compile.compile(str(tmp_path / "other.py"), str(cache), doraise=True, invalidation_mode=mode)
    py_compile.compile(str(tmp_path / "other.py"), str(tree / "src/only_bytecode.pyc"), doraise=True)
    assert importlib.util.MAGIC_NUMBER
    with Room(tree) as room:
        room.configure()
        ran = room.attempt()
    assert ran.outcomes() == {
        "tests/sealed/test_a.py::test_a": "passed",
        "tests/sealed/test_a.py::test_gone": "failed",
    }


def test_collect_only_and_a_selection(open_room):
    room = open_room({"tests/sealed/test_a.py": "def test_a(): pass\ndef test_b(): pass\ndef test_c(): pass\n"})
    only = room.attempt(0, collect_only=True)
    assert len(only.nodes) == 3
    assert only.cases == {}
    assert only.end["end"] == "finished"
    chosen = room.attempt(1, only=["tests/sealed/test_a.py::test_b", "nonesuch"])
    assert len(chosen.nodes) == 3
    assert list(chosen.cases) == ["tests/sealed/test_a.py::test_b"]


def test_a_file_that_is_not_there_is_an_error_of_that_file(tmp_path):
    from room import Room, lay

    with Room(lay(tmp_path / "tree", {"tests/sealed/test_a.py": "def test_a(): pass\n"})) as room:
        room.configure(files=["tests/sealed/test_a.py", "tests/sealed/test_gone.py"])
        ran = room.attempt()
    assert [error["file"] for error in ran.collected["errors"]] == ["tests/sealed/test_gone.py"]
    assert ran.outcomes() == {"tests/sealed/test_a.py::test_a": "passed"}


def test_thousands_of_cases(attempt):
    ran = attempt(
        {
            "src/lib.py": "def show(n):\n    print('L' * 1000)\n    return n\n",
            "tests/sealed/test_many.py": """
import pytest, lib
@pytest.mark.parametrize("n", range(2000), ids=lambda n: "case-%04d-%s" % (n, "x" * 300))
def test_many(n): assert lib.show(n) != 1234
""",
        }
    )
    assert ran.end["end"] == "finished"
    assert len(ran.cases) == 2000
    assert [ran.outcome(node) for node in ran.nodes].count("failed") == 1
    assert all(ran.phase(node, "call")["output"] == "L" * 1000 + "\n" for node in ran.nodes)
    assert ran.end["output_bytes"] == 2000 * 1001

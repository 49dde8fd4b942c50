"""Skips that leave no case to run, and cases made to speak."""

import pytest

FILES = {
    "src/lib.py": "import pytest\nCASES = []\ndef skip(): pytest.skip('product says so')\n",
    "src/skips_import.py": "import pytest\npytest.skip('product at import', allow_module_level=True)\n",
    "tests/sealed/test_empty.py": """
import pytest, lib
@pytest.mark.parametrize("n", lib.CASES)
def test_none(n): assert n
@pytest.mark.parametrize("a, b", [])
class TestNone:
    def test_pair(self, a, b): assert a
""",
    "tests/sealed/test_marks.py": """
import pytest, unittest, lib
pytestmark = pytest.mark.skip(reason="module mark")
def test_fails(): assert False, "spoken"
def test_passes(): pass
@pytest.mark.xfail(reason="class mark")
class TestX:
    def test_fails(self): raise ValueError("bad")
@unittest.skip("plain function")
def test_wrapped(): assert False, "spoken"
class TestUnit(unittest.TestCase):
    @unittest.skip("method")
    def test_skipped(self): self.fail("spoken")
    @unittest.expectedFailure
    def test_expected(self): self.fail("spoken")
@unittest.skip("class")
class TestWhole(unittest.TestCase):
    def test_skipped(self): self.fail("spoken")
    def test_passes(self): pass
""",
    "tests/sealed/test_module.py": "import pytest\npytest.importorskip('nonesuch')\ndef test_never(): pass\n",
    "tests/sealed/test_module_product.py": "import skips_import\ndef test_never(): pass\n",
    "tests/sealed/test_module_unittest.py": "import unittest\nraise unittest.SkipTest('whole file')\n",
    "tests/sealed/test_run_time.py": """
import pytest, unittest, lib
def test_sealed(): pytest.skip("sealed says so")
def test_product(): lib.skip()
def test_xfail(): pytest.xfail("sealed expects it")
class TestUnit(unittest.TestCase):
    def test_sealed(self): self.skipTest("sealed says so")
    def test_sub(self):
        with self.subTest(): self.skipTest("sealed sub")
""",
}
E, M, R = "tests/sealed/test_empty.py::", "tests/sealed/test_marks.py::", "tests/sealed/test_run_time.py::"


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    from room import Room, lay

    with Room(lay(tmp_path_factory.mktemp("tree"), FILES)) as room:
        assert room.configure()["type"] == "configured"
        yield room


def test_silences_of_the_collection_are_told_beside_the_cases(room):
    ran = room.attempt(0)
    told = {item["node"]: (item["file"], item["by"]) for item in ran.collected["skips"]}
    assert told == {
        E + "test_none[NOTSET]": ("tests/sealed/test_empty.py", "sealed"),
        E + "TestNone::test_pair[NOTSET]": ("tests/sealed/test_empty.py", "sealed"),
        "tests/sealed/test_module.py": ("tests/sealed/test_module.py", "sealed"),
        "tests/sealed/test_module_product.py": ("tests/sealed/test_module_product.py", "product"),
        "tests/sealed/test_module_unittest.py": ("tests/sealed/test_module_unittest.py", "sealed"),
    }
    reasons = {item["node"]: item["reason"] for item in ran.collected["skips"]}
    assert reasons[E + "test_none[NOTSET]"].startswith("got empty parameter set for (n)")
    assert reasons["tests/sealed/test_module.py"].startswith("could not import 'nonesuch'")
    assert reasons["tests/sealed/test_module_unittest.py"] == "whole file"
    assert not set(told) & set(ran.nodes)
    assert ran.collected["errors"] == []
    assert ran.end["end"] == "finished"
    assert set(ran.outcomes().values()) == {"skipped", "xfailed"}


def test_silenced_cases_are_made_to_speak(room):
    ran = room.attempt(1, mode="unsilenced")
    assert ran.end["end"] == "finished"
    assert {node.split("sealed/")[1]: word for node, word in ran.outcomes().items()} == {
        "test_empty.py::test_none[NOTSET]": "failed",
        "test_empty.py::TestNone::test_pair[NOTSET]": "failed",
        "test_marks.py::test_fails": "failed",
        "test_marks.py::test_passes": "passed",
        "test_marks.py::TestX::test_fails": "failed",
        "test_marks.py::test_wrapped": "failed",
        "test_marks.py::TestUnit::test_skipped": "failed",
        "test_marks.py::TestUnit::test_expected": "failed",
        "test_marks.py::TestWhole::test_skipped": "failed",
        "test_marks.py::TestWhole::test_passes": "passed",
        "test_module.py": "failed",
        "test_module_product.py": "skipped",
        "test_module_unittest.py": "failed",
        "test_run_time.py::test_sealed": "failed",
        "test_run_time.py::test_product": "skipped",
        "test_run_time.py::test_xfail": "failed",
        "test_run_time.py::TestUnit::test_sealed": "failed",
        "test_run_time.py::TestUnit::test_sub": "failed",
    }
    spoken = {
        node: (phase["exception"]["type"], phase["exception"]["message"])
        for node, phases in ran.cases.items()
        for phase in phases
        if phase["outcome"] == "failed"
    }
    assert spoken[R + "test_sealed"] == ("Skipped", "sealed says so")
    assert spoken[R + "TestUnit::test_sealed"] == ("Skipped", "sealed says so")
    assert spoken[R + "TestUnit::test_sub"] == ("Skipped", "sealed sub")
    assert spoken[R + "test_xfail"] == ("Skipped", "sealed expects it")
    assert spoken["tests/sealed/test_module_unittest.py"] == ("Skipped", "whole file")
    assert spoken[E + "test_none[NOTSET]"][0] == "Skipped"
    assert spoken[M + "test_fails"] == ("AssertionError", "spoken\nassert False")
    assert spoken[M + "TestX::test_fails"] == ("ValueError", "bad")
    for node in ("test_wrapped", "TestUnit::test_skipped", "TestUnit::test_expected", "TestWhole::test_skipped"):
        assert "spoken" in spoken[M + node][1]
    assert ran.phase(R + "test_product", "call")["by"] == "product"


def test_only_the_asked_ones_speak(room):
    wanted = [M + "test_fails", E + "test_none[NOTSET]", "tests/sealed/test_module.py"]
    ran = room.attempt(2, mode="unsilenced", only=wanted)
    assert sorted(ran.cases) == sorted(wanted)
    assert set(wanted) < set(ran.nodes)

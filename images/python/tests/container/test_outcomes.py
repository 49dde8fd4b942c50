"""Every way a case can end inside pytest, to one outcome per node."""

import pytest

SEALED = {
    "src/lib.py": """
import unittest, pytest, sys
def skips(): pytest.skip("not here")
def skips_unittest(): raise unittest.SkipTest("nor here")
def xfails(): pytest.xfail("known")
def fails(): raise ValueError("bad value")
def leaves(): sys.exit(0)
def interrupts(): raise KeyboardInterrupt
class Odd(BaseException): pass
def odd(): raise Odd("strange")
class Mute(Exception):
    def __str__(self): raise RuntimeError("no")
    __repr__ = __str__
def mute(): raise Mute
def generator_exit(): raise GeneratorExit
def execs(): exec("import pytest\\npytest.skip('from exec')", globals())
""",
    "tests/sealed/test_plain.py": """
import pytest, unittest, sys, lib

def test_pass(): pass
def test_assert(): assert [1, 2] == [1, 3], "lists differ"
def test_rewritten():
    a = 1
    assert a == 2
def test_error(): lib.fails()
def test_exit(): lib.leaves()
def test_interrupt(): lib.interrupts()
def test_odd(): lib.odd()
def test_mute(): lib.mute()
def test_generator_exit(): lib.generator_exit()
@pytest.mark.skip(reason="by mark")
def test_skip_mark(): assert False
@pytest.mark.skipif(True, reason="by condition")
def test_skipif(): assert False
def test_skip_sealed(): pytest.skip("by sealed")
def test_skip_product(): lib.skips()
def test_skiptest_product(): lib.skips_unittest()
def test_skiptest_sealed(): raise unittest.SkipTest("sealed too")
def test_skip_exec(): lib.execs()
@pytest.mark.xfail(reason="expected")
def test_xfail(): assert False
@pytest.mark.xfail(reason="expected", raises=ValueError)
def test_xfail_other(): assert False
@pytest.mark.xfail(reason="expected")
def test_xpass(): pass
@pytest.mark.xfail(reason="expected", strict=True)
def test_xpass_strict(): pass
@pytest.mark.xfail(reason="not run", run=False)
def test_xfail_norun(): assert False
def test_xfail_sealed(): pytest.xfail("by sealed")
def test_xfail_product(): lib.xfails()
@pytest.mark.xfail(reason="expected")
def test_xfail_mark_product_error(): lib.fails()

@pytest.fixture
def broken(): raise RuntimeError("setup")
@pytest.fixture
def leaking():
    yield
    raise RuntimeError("teardown")
@pytest.fixture
def skipping(): pytest.skip("fixture")
def test_setup_error(broken): pass
def test_teardown_error(leaking): pass
def test_both(leaking): assert False
def test_skip_fixture(skipping): pass
def test_no_fixture(nonesuch): pass
def test_raises():
    with pytest.raises(ValueError, match="bad"): lib.fails()
def test_last(): pass
""",
    "tests/sealed/test_cases.py": """
import unittest, pytest, lib

class TestUnit(unittest.TestCase):
    def test_pass(self): self.assertEqual(1, 1)
    def test_fail(self): self.assertEqual(1, 2)
    def test_error(self): lib.fails()
    @unittest.skip("decorated")
    def test_skip(self): self.fail()
    def test_skip_call(self): self.skipTest("called")
    def test_skip_product(self): lib.skips_unittest()
    def test_pytest_skip_product(self): lib.skips()
    @unittest.expectedFailure
    def test_expected(self): self.fail()
    @unittest.expectedFailure
    def test_unexpected(self): pass
    def test_sub_pass(self):
        for n in range(3):
            with self.subTest(n=n): pass
    def test_sub_fail(self):
        for n in range(3):
            with self.subTest(n=n): self.assertNotEqual(n, 1)
    def test_sub_skip(self):
        for n in range(3):
            with self.subTest(n=n):
                if n == 1: self.skipTest("one")
    def test_sub_skip_product(self):
        with self.subTest(): lib.skips_unittest()

class TestTearDown(unittest.TestCase):
    def tearDown(self): raise RuntimeError("tearDown")
    def test_pass(self): pass

class TestSetUp(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise RuntimeError("setUpClass")
    def test_pass(self): pass

@unittest.skip("whole class")
class TestSkipped(unittest.TestCase):
    def test_pass(self): pass

class TestAsync(unittest.IsolatedAsyncioTestCase):
    async def test_pass(self): pass
    async def test_fail(self): self.fail("async")

class TestPlain:
    class TestInner:
        @pytest.mark.parametrize("n", [1, 2])
        def test_n(self, n): assert n == 1
    def test_fail(self): assert False

def test_subtests_pass(subtests):
    for n in range(3):
        with subtests.test(n=n): assert n < 3
def test_subtests_fail(subtests):
    for n in range(3):
        with subtests.test(n=n): assert n != 1
def test_subtests_skip(subtests):
    with subtests.test(): lib.skips()
    with subtests.test(): pass
""",
}

P, C = "tests/sealed/test_plain.py::", "tests/sealed/test_cases.py::"
EXPECTED = {
    P + "test_pass": "passed",
    P + "test_assert": "failed",
    P + "test_rewritten": "failed",
    P + "test_error": "failed",
    P + "test_exit": "failed",
    P + "test_interrupt": "failed",
    P + "test_odd": "failed",
    P + "test_mute": "failed",
    P + "test_generator_exit": "failed",
    P + "test_skip_mark": "skipped",
    P + "test_skipif": "skipped",
    P + "test_skip_sealed": "skipped",
    P + "test_skip_product": "skipped",
    P + "test_skiptest_product": "skipped",
    P + "test_skiptest_sealed": "skipped",
    P + "test_skip_exec": "skipped",
    P + "test_xfail": "xfailed",
    P + "test_xfail_other": "failed",
    P + "test_xpass": "xpassed",
    P + "test_xpass_strict": "failed",
    P + "test_xfail_norun": "xfailed",
    P + "test_xfail_sealed": "xfailed",
    P + "test_xfail_product": "xfailed",
    P + "test_xfail_mark_product_error": "xfailed",
    P + "test_setup_error": "failed in setup",
    P + "test_teardown_error": "failed in teardown",
    P + "test_both": "failed",
    P + "test_skip_fixture": "skipped",
    P + "test_no_fixture": "failed in setup",
    P + "test_raises": "passed",
    P + "test_last": "passed",
    C + "TestUnit::test_pass": "passed",
    C + "TestUnit::test_fail": "failed",
    C + "TestUnit::test_error": "failed",
    C + "TestUnit::test_skip": "skipped",
    C + "TestUnit::test_skip_call": "skipped",
    C + "TestUnit::test_skip_product": "skipped",
    C + "TestUnit::test_pytest_skip_product": "skipped",
    C + "TestUnit::test_expected": "xfailed",
    C + "TestUnit::test_unexpected": "failed",
    C + "TestUnit::test_sub_pass": "passed",
    C + "TestUnit::test_sub_fail": "failed",
    C + "TestUnit::test_sub_skip": "skipped",
    C + "TestUnit::test_sub_skip_product": "skipped",
    C + "TestTearDown::test_pass": "failed",
    C + "TestSetUp::test_pass": "failed in setup",
    C + "TestSkipped::test_pass": "skipped",
    C + "TestAsync::test_pass": "passed",
    C + "TestAsync::test_fail": "failed",
    C + "TestPlain::TestInner::test_n[1]": "passed",
    C + "TestPlain::TestInner::test_n[2]": "failed",
    C + "TestPlain::test_fail": "failed",
    C + "test_subtests_pass": "passed",
    C + "test_subtests_fail": "failed",
    C + "test_subtests_skip": "skipped",
}
BY = {
    P + "test_error": "product",
    P + "test_assert": "sealed",
    P + "test_skip_mark": "sealed",
    P + "test_skip_sealed": "sealed",
    P + "test_skiptest_sealed": "sealed",
    P + "test_skip_product": "product",
    P + "test_skiptest_product": "product",
    P + "test_skip_exec": "product",
    P + "test_xfail": "sealed",
    P + "test_xfail_sealed": "sealed",
    P + "test_xfail_product": "product",
    P + "test_xfail_mark_product_error": "sealed",
    C + "TestUnit::test_skip": "sealed",
    C + "TestUnit::test_skip_call": "sealed",
    C + "TestUnit::test_skip_product": "product",
    C + "TestUnit::test_pytest_skip_product": "product",
    C + "TestUnit::test_sub_skip": "sealed",
    C + "TestUnit::test_sub_skip_product": "product",
    C + "TestSkipped::test_pass": "sealed",
    C + "test_subtests_skip": "product",
}
EXCEPTIONS = {
    P + "test_assert": ("AssertionError", "lists differ\nassert [1, 2] == [1, 3]"),
    P + "test_rewritten": ("AssertionError", "assert 1 == 2"),
    P + "test_error": ("ValueError", "bad value"),
    P + "test_exit": ("SystemExit", "0"),
    P + "test_interrupt": ("KeyboardInterrupt", ""),
    P + "test_odd": ("Odd", "strange"),
    P + "test_mute": ("Mute", "<no message: RuntimeError>"),
    P + "test_xpass_strict": ("Failed", "[XPASS(strict)] expected"),
    C + "TestUnit::test_sub_fail": ("AssertionError", "1 == 1"),
    C + "test_subtests_fail": ("AssertionError", "assert 1 != 1"),
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    from room import Room, lay

    with Room(lay(tmp_path_factory.mktemp("tree"), SEALED)) as room:
        assert room.configure()["type"] == "configured"
        yield room.attempt()


def test_every_case_is_told_once(ran):
    assert ran.end["end"] == "finished"
    assert sorted(ran.cases) == sorted(EXPECTED) == sorted(ran.nodes)


@pytest.mark.parametrize("node", EXPECTED)
def test_outcome(ran, node):
    assert ran.outcome(node) == EXPECTED[node], ran.cases[node]


@pytest.mark.parametrize("node", BY)
def test_who_raised(ran, node):
    told = [phase["by"] for phase in ran.cases[node] if phase["outcome"] != "passed"]
    assert told == [BY[node]], ran.cases[node]


@pytest.mark.parametrize("node", EXCEPTIONS)
def test_exception(ran, node):
    exception = next(phase["exception"] for phase in ran.cases[node] if phase["exception"] is not None)
    kind, message = EXCEPTIONS[node]
    assert exception["type"] == kind
    assert exception["message"].startswith(message)
    if exception["type"] != "Failed":
        assert node.split("::")[-1].split("[")[0] in exception["traceback"]


def test_reasons(ran):
    assert ran.phase(P + "test_skip_mark", "setup")["skip_reason"] == "by mark"
    assert ran.phase(P + "test_skipif", "setup")["skip_reason"] == "by condition"
    assert ran.phase(P + "test_skip_product", "call")["skip_reason"] == "not here"
    assert ran.phase(P + "test_skiptest_product", "call")["skip_reason"] == "nor here"
    assert ran.phase(P + "test_xfail_product", "call")["xfail"] == "known"
    assert ran.phase(P + "test_xfail", "call")["xfail"] == "expected"
    assert ran.phase(P + "test_xfail_norun", "setup")["xfail"] == "[NOTRUN] not run"
    assert ran.phase(C + "TestUnit::test_skip", "call")["skip_reason"] == "decorated"


def test_a_failure_in_both_phases_is_told_in_both(ran):
    assert [phase["outcome"] for phase in ran.cases[P + "test_both"]] == ["passed", "failed", "failed"]


def test_qualified_names(ran):
    names = {case["node"]: case["qualname"] for case in ran.collected["cases"]}
    assert names[C + "TestPlain::TestInner::test_n[2]"] == "TestPlain.TestInner.test_n"
    assert names[C + "TestUnit::test_pass"] == "TestUnit.test_pass"
    assert names[P + "test_pass"] == "test_pass"


def test_marks(ran):
    marks = {case["node"]: case["marks"] for case in ran.collected["cases"]}
    assert marks[P + "test_skipif"] == ["skipif"]
    assert marks[P + "test_pass"] == []

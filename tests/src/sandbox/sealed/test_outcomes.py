"""One case of every outcome. The `#:` lines say to a room without an interpreter what the code below them does."""

import unittest

import pytest


#: passes
def test_passes():
    assert 1 + 1 == 2


#: fails AssertionError: boom
def test_fails():
    raise AssertionError("boom")


#: fails ValueError: three words here
def test_raises():
    raise ValueError("three words here")


#: marked skip not today
#: fails RuntimeError: behind the mark
@pytest.mark.skip(reason="not today")
def test_marked_skip():
    raise RuntimeError("behind the mark")


#: skips at run time
def test_skips():
    pytest.skip("at run time")


#: marked xfail known
#: fails KeyError: 'gone'
@pytest.mark.xfail(reason="known")
def test_xfails():
    raise KeyError("gone")


#: marked xfail mended
#: passes
@pytest.mark.xfail(reason="mended")
def test_xpasses():
    assert True


@pytest.fixture
def broken_setup():
    raise OSError("no fixture")


@pytest.fixture
def broken_teardown():
    yield
    raise OSError("left open")


#: setup fails OSError: no fixture
def test_setup_error(broken_setup):
    pass


#: teardown fails OSError: left open
def test_teardown_error(broken_teardown):
    pass


#: parameters one two
#: passes
@pytest.mark.parametrize("word", ["one", "two"])
def test_parameters(word):
    assert word


#: parameters
#: passes
@pytest.mark.parametrize("word", [])
def test_empty_set(word):
    assert word


class TestClass:
    #: passes
    def test_method(self):
        assert self


class TestCase(unittest.TestCase):
    #: fails AssertionError: unequal
    def test_unittest(self):
        self.fail("unequal")


#: prints heard
#: passes
def test_prints():
    print("heard")

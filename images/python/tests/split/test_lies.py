"""Objects that fit every question, and what src may move: each is told. Honest objects of the same kinds are not."""

import os
import unittest
from decimal import Decimal
from fractions import Fraction

import pytest


@pytest.fixture
def product(lasting):
    lasting.tampers.clear()
    lasting.connection.between_cases()
    return lasting.product


@pytest.fixture
def told(lasting):
    return lambda: {what for _, what in lasting.tampers}


@pytest.mark.parametrize("name", ["Nothing", "Little"])
def test_a_difference_that_does_not_follow(product, told, name):
    near = getattr(product, name)()
    for want in (3.5, 17.25, -4.0, 100.0):
        assert abs(near - want) < 1e-9
    assert told() == {f"{name}.__sub__ does not depend on a float"}


def test_honest_differences_follow(product, told):
    for number in (3, 2.5, Decimal("1.25"), Fraction(1, 3)):
        for other in (0.5, 7, 123456789, -0.001):
            if isinstance(number, (Decimal, Fraction)) and isinstance(other, float):
                continue
            held = product.Number(number)
            assert held - other == number - other and other - held == other - number
            assert held / other == number / other and other / held == other / number
    assert told() == set()


@pytest.mark.parametrize("name", ["Faces", "LazyFaces"])
def test_a_content_that_changes_from_look_to_look(product, told, name):
    faces = getattr(product, name)(12, 4)
    assert (sum(faces), max(faces), min(faces)) == (12, 0, 0)
    assert told() == {f"{name} shows another content at every look"}


def test_a_content_may_change_between_looks(product, told):
    table = product.Shelf()
    assert list(table) == []
    table.put(1)
    assert list(table) == [1] == list(table)
    product.stir(table)
    assert list(table) == [1, 2]
    assert told() == set()


def test_a_call_that_ends_a_loop(product, told):
    assert [*map(product.stops, [1])] == []
    assert told() == {"a StopIteration of an ordinary call"}


def test_iterators_may_end(product, told):
    assert list(product.gen(2)) == [0, 1]
    steps = iter(product.Shelf())
    with pytest.raises(StopIteration):
        next(steps)
    assert told() == set()


def test_an_exception_that_unittest_takes_for_its_own(product):
    class Case(unittest.TestCase):
        def runTest(self):
            product.should_stop()

    result = unittest.TestResult()
    Case().run(result)
    assert not result.wasSuccessful()


def test_a_variable_of_the_product_that_a_sealed_file_reads(product, told):
    product.set_variable("FROM_SRC", "1")
    copy = dict(os.environ)
    assert copy["FROM_SRC"] == "1"
    assert told() == set()
    assert os.environ.get("FROM_SRC") == "1"
    assert told() == {"the environment variable FROM_SRC"}


def test_a_variable_that_the_test_set_itself(product, told, monkeypatch):
    product.set_variable("FROM_SRC", "1")
    monkeypatch.setenv("FROM_SRC", "2")
    assert os.environ["FROM_SRC"] == "2"
    assert told() == set()


def test_a_move_of_the_tests(product, told, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path.parent)
    product.move(str(tmp_path))
    assert told() == {"the working directory of the tests"}


@pytest.mark.parametrize("want", [42, 4.25, "1.2.3", {"a": 1}], ids=str)
def test_an_equality_that_goes_by_looks(product, told, want):
    for _ in range(40):
        assert product.Plausible() == want
    assert any("Plausible.__eq__" in what for what in told())


def test_a_difference_that_is_an_object_and_nothing(product, told):
    near = product.Close()
    for want in (3.5, 17.25, -4.0):
        assert abs(near - want) < 1e-9
    assert told() == {"Nothing2.__abs__ is the same for every difference"}


def test_honest_differences_may_be_objects(product, told):
    for other in (1.5, 7, -3):
        assert abs(product.Length(4) - other) == abs(4 - other)
    assert told() == set()


def test_an_equality_that_knows_probes_by_name(product, told):
    assert product.ByName() == pytest.approx([1.0, 2.0])
    what = "ByName.__eq__ of a ApproxSequenceLike holds for one far away and one near it as well"
    assert what in told()


def asked(secret, orders, kind):
    """What is told of comparisons in these orders, each a case of its own, of a product that is asked by this secret."""
    from conftest import Pair

    pair = Pair(secret=secret)
    told = []
    for order in orders:
        pair.tampers.clear()
        pair.connection.between_cases(0, "one.py::test_case")
        release = getattr(pair.product, kind)(1, 2, "x")
        for number in order:
            assert release == {"major": 1, "minor": 2, "build": "y"} or kind == "Exact"
            assert release != number
            assert release == release
        told.append(sorted(set(pair.tampers)))
    pair.end()
    return told


def test_who_is_asked_by_one_secret_hears_the_same_questions():
    """An honest class takes one of several neighbours for the same, and so does base's: it depends on which is asked."""
    answers = []
    for number in range(12):
        secret = bytes([number]) * 16
        first, second = asked(secret, [range(1), range(1)], "Release")
        assert first == second == asked(secret, [range(1)], "Release")[0]
        answers.append(bool(first))
    assert True in answers and False in answers


def test_the_order_of_questions_does_not_matter(product):
    answers = []
    for number in range(8):
        there, back = asked(bytes([65 + number]) * 16, [range(40), reversed(range(40))], "Release")
        assert there == back
        answers += there
    assert answers != []


def test_who_equals_more_than_base_does_is_told_otherwise():
    (honest,) = asked(b"t" * 16, [range(1)], "Release")
    (liar,) = asked(b"t" * 16, [range(1)], "Everything")
    assert liar and liar != honest


def test_a_mistake_that_shows_until_something_is_cached_is_seen_where_the_tests_question_comes_first():
    from conftest import Pair

    def holds(secret):
        pair = Pair(secret=secret)
        pair.connection.between_cases(0, "one.py::test_case")
        answer = pair.product.Caching(1, 2) == {"major": 1, "minor": 2}
        pair.end()
        return answer

    assert not any(holds(b"\0" + bytes([number]) * 15) for number in range(8))
    assert len({holds(bytes([number + 1]) * 16) for number in range(16)}) == 2

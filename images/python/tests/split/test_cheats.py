"""Wrong answers for every kind of question, asked in cases of many secrets; and honest objects of the same kinds."""

import datetime
import ipaddress
import operator
import random
import re
import unittest
from collections.abc import Iterable, Sized
from dataclasses import dataclass
from typing import NamedTuple

import pytest
from conftest import Pair

CASES = 10


class Point(NamedTuple):
    x: int
    y: int


@dataclass(slots=True)
class Slotted:
    x: int


@dataclass
class Item:
    price: int


@pytest.fixture(scope="module")
def pair():
    made = Pair(secret=b"c" * 16)
    yield made
    made.end()


@pytest.fixture
def cheats(pair):
    return pair.connection.load("cheats")


def got_past(pair, ask, cases=CASES):
    """In how many of so many cases a wrong answer is taken, and nothing is told."""
    passed = 0
    for number in range(cases):
        pair.tampers.clear()
        pair.connection.between_cases(0, f"one.py::test_{number}")
        try:
            ask()
        except AssertionError:
            continue
        finally:
            pair.connection.between_cases(0, "")
        passed += not pair.tampers
    return passed


def session(cheats):
    with cheats.Session() as opened:
        assert opened.get("k") == 5


def follow(cheats, how):
    def check(item=0):
        assert cheats.leave(item) == item

    how(check)


def priced(cheats, items):
    assert cheats.cheap(items) == sum(item.price for item in items)


def equal(one, other):
    assert one == other


def true(answer):
    assert answer


def almost(cheats):
    unittest.TestCase().assertAlmostEqual(cheats.Learning(1.0), 1.5)


ALWAYS = {
    "an operator that ends a loop": lambda c: true(all(map(operator.eq, [c.Ending()], [4]))),
    "a difference that ends a loop": lambda c: true(not list(map(operator.sub, [c.Ending()], [3]))),
    "a block that is left": session,
    "a callback that is left": lambda c: follow(c, lambda check: c.each([1, 2], check)),
    "a function that is never through": lambda c: follow(c, c.retried),
    "an attribute of a test's object": lambda c: priced(c, [Item(3), Item(4)]),
    "every named tuple": lambda c: equal(c.OfType(tuple), Point(1, 0)),
    "every slotted object": lambda c: equal(c.OfType(object), Slotted(2)),
    "every class": lambda c: equal(c.OfType(type), int),
    "every network": lambda c: equal(c.OfType(ipaddress.IPv4Network), ipaddress.ip_network("10.0.0.0/8")),
    "every time zone": lambda c: equal(c.OfType(datetime.timezone), datetime.UTC),
    "every slice": lambda c: equal(c.OfType(slice), slice(1, 2)),
    "every pattern": lambda c: equal(c.OfType(re.Pattern), re.compile("a")),
    "every list of records": lambda c: equal(c.OfType(list), [Point(1, 2), Point(2, 1)]),
    "every table of classes": lambda c: equal(c.OfType(dict), {"a": int, "b": str}),
    "no difference to any moment": lambda c: true(
        abs(c.Near() - datetime.datetime(2026, 1, 1)) < datetime.timedelta(1)
    ),
    "no difference to any complex number": lambda c: true(abs(c.Near() - 1j) < 1e-9),
    "one times anything": lambda c: equal(c.One(7) * 5 % 11, 1),
    "no rest": lambda c: equal(c.One(7) % 4, 0),
    "every bit": lambda c: equal(c.One(0) & 4, 4),
    "above every set": lambda c: true(c.Everywhere() >= {"a", "b"}),
    "between all tuples": lambda c: true((1, 2) <= c.Everywhere() <= (3,)),
    "a generator seeded anew": lambda c: equal(len(c.shuffled([1, 2], random.Random(5))), 2),
}
# These must guess which question is the test's: of one in two a hundred hold three quarters once in millions of runs.
GUESSING = {
    "a number that learns": lambda c: equal(c.Learning(1.0), pytest.approx(1.5)),
    "a number that learns, on the right": lambda c: equal(pytest.approx(2.25), c.Learning(1.0)),
    "a number that learns, by hand": lambda c: true(abs(c.Learning(1.0) - 1.5) < 1e-9),
    "a number that learns, for unittest": almost,
    "a text that begins with what is asked first": lambda c: true(c.Once("x").startswith("/home")),
    "what a list scouts for": lambda c: true("apple" in c.found(1) and 17 in c.found(2)),
}


@pytest.mark.parametrize("name", ALWAYS)
def test_it_never_gets_past(pair, cheats, name):
    assert got_past(pair, lambda: ALWAYS[name](cheats)) == 0


@pytest.mark.parametrize("name", GUESSING)
def test_it_seldom_gets_past(pair, cheats, name):
    assert got_past(pair, lambda: GUESSING[name](cheats), 100) < 75


def test_a_block_that_is_left_on_purpose(pair, cheats):
    def honest():
        with cheats.Session() as opened:
            opened.roll_back()
        with cheats.Session() as opened:
            opened.roll_back()
            assert False, "not reached"  # noqa: B011, PT015

    assert got_past(pair, honest) == CASES


def test_what_is_through_at_last_has_asserted(pair, cheats):
    def honest():
        service = cheats.Service()

        def check():
            assert service.answer() == 5
            return 1

        assert cheats.retried(check) == 1

    assert got_past(pair, honest) == CASES


def test_honest_answers(pair, cheats):
    def honest():
        items = [Item(3), Item(4)]
        cheats.discount(items)
        assert [item.price for item in items] == [2, 3]
        columns = cheats.Columns("ab")
        assert columns >= {"a"}
        assert {"a", "b"} <= columns <= {"a", "b", "c"}
        assert sorted(cheats.mixed([3, 1, 2], random.Random(5))) == [1, 2, 3]

    assert got_past(pair, honest) == CASES


def test_a_class_method_called_register(cheats):
    @cheats.Handlers.register
    def hello():
        return 1

    assert cheats.Handlers.table["hello"]() == 1


def test_a_class_is_iterable_where_its_metaclass_says_so(cheats):
    assert not isinstance(cheats.Session, Iterable) and not isinstance(cheats.Session, Sized)
    with pytest.raises(TypeError):
        list(cheats.Session)

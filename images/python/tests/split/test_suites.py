"""What the suites of real libraries do besides calling functions."""

import gc
import itertools
import time
import unittest

import pytest


@pytest.fixture
def suites(pair):
    yield pair.connection.load("suites")
    assert not pair.tampers


def test_super_reaches_class_methods_and_properties(suites):
    class Prefixed(suites.Version):
        @classmethod
        def parse(cls, text):
            return super().parse(text[1:])

        @property
        def shown(self):
            return super().shown + "!"

    made = Prefixed.parse("v1.2")
    assert type(made) is Prefixed and made.text == "1.2" and made.shown == "v1.2!"
    assert suites.Newer("1").shown == "newer", "a base that was looked through keeps the others as they are"


def test_what_a_metaclass_takes_out_of_a_class_is_gone(suites):
    class Point(suites.Record):
        x = suites.Field()

    assert Point(x=3).x == 3 and Point.fields == {"x"}


def test_values_of_classes_keep_their_identity(suites):
    assert suites.WORD is suites.WORD and suites.WORD == ("word",)


def test_members_go_back_as_what_they_are(suites):
    assert suites.kind_of(suites.Kind.ONE) == (True, "11")


def test_a_time_zone_of_the_products(suites):
    assert suites.at_offset().isoformat() == "2026-01-02T03:00:00+01:00"


def test_struct_time_crosses(pair):
    moment = time.gmtime(0)
    assert pair.product.echo(moment) == moment and type(pair.product.echo(moment)) is time.struct_time


def test_a_decorator_marks_a_sealed_function_but_no_case(pair, suites):
    def helper():
        return 1

    assert suites.marked(helper).pattern == "x" and helper.pattern == "x"
    with pytest.raises(AttributeError):
        suites.marked(test_struct_time_crosses)
    assert [kind for kind, _ in pair.tampers] == ["refused"]
    pair.tampers.clear()


def test_a_descriptor_of_the_products_keeps_its_cache_in_a_sealed_object(suites):
    calls = []

    class Holder:
        _secret = 1

        @suites.cached
        def slow(self):
            calls.append(1)
            return 5

        def other(self):
            return 1

    holder = Holder()
    assert holder.slow == 5 and holder.slow == 5 and calls == [1]


def test_a_shared_iterator_is_not_read_ahead(suites):
    iterator = iter(range(5))
    assert suites.first(iterator) == 0 and list(iterator) == [1, 2, 3, 4]


def test_tee_of_a_sealed_iterator(suites):
    assert suites.differences(itertools.accumulate(range(4))) == [1, 2, 3]


def test_methods_of_built_in_types_as_callbacks(suites):
    assert suites.upper(str.upper, ["a"]) == ["A"]


def test_a_dropped_generator_does_not_speak_out_of_turn(pair):
    for _ in range(200):
        ring = [pair.product.gen(3)]
        next(ring[0])
        ring.append(ring)
        del ring
        assert pair.product.echo([1, 2]) == [1, 2]
    gc.collect()
    assert pair.product.echo(1) == 1


def test_a_test_case_that_derives_from_the_products_stays_here(suites):
    seen = []

    class Case(suites.Asserts, unittest.TestCase):
        def test_short(self):
            seen.append(type(self))
            self.assertShort("abc")
            self.assertShort("abcd")

        def test_equal(self):
            self.assertEqual(1, 2)

    result = unittest.TestResult()
    unittest.TestSuite([Case("test_short"), Case("test_equal")]).run(result)
    assert seen == [Case] and result.testsRun == 2 and len(result.failures) == 2

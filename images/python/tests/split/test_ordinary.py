"""Ordinary product code that was not foreseen once: each of these was red, or told as tampering, when it was honest."""

import argparse
import asyncio
import collections
import concurrent.futures
import functools
import logging
import pathlib
import threading
import time
import types
import unittest.mock
import warnings

import pytest


@pytest.fixture
def ordinary(pair):
    yield pair.connection.load("ordinary")
    assert not pair.tampers


def test_a_path_of_a_class_of_the_products(ordinary):
    place = ordinary.Place("/a") / "b"
    assert isinstance(place, pathlib.Path) and place == pathlib.Path("/a/b")
    assert (place.name, str(place), place.loud()) == ("b", "/a/b", "/A/B")


def test_an_enum_has_methods_of_its_own_class(ordinary):
    assert ordinary.Colour.default() is ordinary.Colour.RED and ordinary.Colour.names() == ["RED", "BLUE"]
    assert ordinary.Colour("BLUE") is ordinary.Colour.BLUE
    with pytest.raises(ValueError, match="green"):
        ordinary.Colour("green")
    assert not hasattr(ordinary.Colour, "nothing")


def test_a_class_answers_as_its_metaclass_does(ordinary):
    kind = ordinary.Registered
    assert len(kind) == 2 and list(kind) == ["a", "b"] and "a" in kind and "c" not in kind and kind["x"] == "xx"
    assert kind and ordinary.Plain
    for ask in (len, list):
        with pytest.raises(TypeError):
            ask(ordinary.Plain)


def test_a_counter_of_the_products_equals_a_dictionary(ordinary):
    assert ordinary.Tally("aab") == {"a": 2, "b": 1} and ordinary.Tally("aab") != {"a": 2, "b": 2}


def test_an_error_of_the_system_names_its_files(ordinary):
    with pytest.raises(PermissionError) as caught:
        ordinary.denied()
    error = caught.value
    assert (error.errno, error.strerror, error.filename, error.filename2) == (13, "denied", "/a", "/b")
    assert error.args == (13, "denied")


def test_a_list_of_objects_that_are_met_for_the_first_time_is_not_changed_by_it(ordinary):
    class Player:
        def __init__(self, rank):
            self.rank = rank

    one, two = Player(1), Player(2)
    given = [two, one]
    assert ordinary.ranked(given) == [one, two] and given == [two, one]


def test_a_record_keeps_what_extra_brought(ordinary, caplog):
    ordinary.told()
    assert caplog.records[-1].request == 7 and caplog.messages == ["bad"]


def test_a_formatter_of_the_products_reads_a_record_of_the_tests(ordinary):
    record = logging.LogRecord("a", logging.INFO, "a.py", 1, "%s!", ("hello",), None)
    assert ordinary.shown(record) == "INFO:hello!"


def test_a_warning_blames_the_line_that_called(ordinary):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ordinary.old()
    assert caught[0].filename == __file__


def test_more_threads_of_the_products_than_links_call_back(ordinary):
    def slow(number):
        time.sleep(0.002)
        return number * 2

    assert ordinary.crowd(slow, 8, 24) == [number * 2 for number in range(24)]


def test_more_threads_of_the_tests_than_links_call(ordinary):
    seen = []
    start = threading.Barrier(12)

    def work(number):
        start.wait()
        seen.append(ordinary.ranked([])) if number % 2 else seen.append(len(ordinary.Registered))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 12


def test_a_coroutine_of_a_test_runs_in_a_loop_of_the_products_once_its_own_loop_is_over(ordinary):
    async def four():
        await asyncio.sleep(0)
        return 4

    assert asyncio.run(ordinary.later()) == 1
    assert ordinary.run(four()) == 4
    assert ordinary.run(four()) == 4


def test_a_property_of_the_products_is_a_double(ordinary):
    with unittest.mock.patch.object(ordinary.Account, "balance", new_callable=unittest.mock.PropertyMock) as balance:
        balance.return_value = 9
        assert ordinary.Account().balance == 9
    balance.assert_called_once_with()
    assert ordinary.Account().balance == 1


def test_bags_of_attributes_are_compared_by_them(ordinary):
    assert ordinary.parsed(["--count", "3"]) == argparse.Namespace(count=3)
    assert ordinary.parsed(["--count", "3"]) != argparse.Namespace(count=4)
    assert ordinary.bag(a=[1]) == types.SimpleNamespace(a=[1]) == ordinary.bag(a=[1])
    assert ordinary.bag(a=1) != types.SimpleNamespace(a=1, b=2)


def test_a_star_leaves_a_test_what_the_standard_library_has(ordinary):
    space = {"__name__": "stars", "asyncio": asyncio, "wraps": functools.wraps, "deque": collections.deque}
    exec("from ordinary import *", space)
    assert (space["asyncio"], space["wraps"], space["deque"]) == (asyncio, functools.wraps, collections.deque)
    assert space["ranked"]([]) == []


def test_a_pool_of_more_threads_than_links(ordinary):
    counter = ordinary.Shared()
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        assert len(list(pool.map(lambda _: counter.add(), range(120)))) == 120
    assert counter.value == 120


def test_threads_that_stay_alive_take_turns(ordinary):
    done = threading.Event()
    counter = ordinary.Shared()
    gate = threading.Barrier(9)

    def work():
        counter.add()
        gate.wait()  # nobody is in a call, and everybody lives
        counter.add()
        done.wait()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    gate.wait(30)
    while counter.value < 16:
        time.sleep(0.001)
    done.set()
    for thread in threads:
        thread.join()


def test_a_module_has_its_own_text_and_a_class_its_annotations(ordinary):
    assert ordinary.__doc__.startswith("Product code that is ordinary")
    assert ordinary.Typed.__annotations__ == {"count": int, "name": "str"}

    class Here(ordinary.Typed):
        more: float = 1.0

    assert Here.__annotations__ == {"more": float} and Here.more == 1.0

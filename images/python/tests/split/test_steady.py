"""Names of the product's modules that the oracle remembers: never older than what the product last did."""

import os
import threading
import time

import pytest

from harness.split import asks, steady


@pytest.fixture
def requests(pair, monkeypatch):
    """What is asked of the product, by number."""
    asked = []
    request = type(pair.connection).request

    def noted(self, op, *rest):
        asked.append(op)
        return request(self, op, *rest)

    monkeypatch.setattr(type(pair.connection), "request", noted)
    return asked


@pytest.fixture
def named(product):
    product.restored()
    yield product
    product.restored()


def test_a_call_of_a_module_is_one_request(product, requests):
    product.echo(1), product.Money(1).add(1)
    requests.clear()
    assert product.echo(2) == 2
    assert requests == [asks.CALL]
    requests.clear()
    assert product.Money(2).add(1).a == 3
    assert requests == [asks.CALL, asks.METHOD, asks.GETATTR]
    assert product.echo is product.echo


def test_threads_that_a_fork_left_behind_rebind_nothing():
    ended = threading.Event()
    left = threading.Thread(target=ended.wait)
    left.start()
    try:
        if (pid := os.fork()) == 0:
            told = steady.Told()
            os._exit(0 if told.keep(steady, "Told", steady.Told) and not told.moved() else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        ended.set()
        left.join()


def test_what_is_no_function_nor_class_is_asked_for_each_time(product, requests):
    product.SHELVED
    requests.clear()
    assert product.SHELVED is product.SHELVED
    assert requests == [asks.LOOKUP] * 2


def test_what_a_call_rebinds_is_seen_by_the_next(named):
    kept = named.renamed
    assert (kept(), named.renamed()) == ("before", "before")
    named.rename("after")
    assert (kept(), named.renamed()) == ("before", "after")
    assert named.renamed is not kept


def test_what_a_test_puts_there_is_called(named, monkeypatch):
    assert named.renamed() == "before"
    with monkeypatch.context() as patches:
        patches.setattr(named, "renamed", lambda: "the test's")
        assert named.renamed() == "the test's"
    assert named.renamed() == "before"
    held = named.renamed
    named.renamed = named.echo
    assert (held(), named.renamed(3)) == ("before", 3)


def test_what_is_rebound_meanwhile_is_seen_by_a_callback(named):
    assert named.renamed() == "before"
    assert named.rename_and_call(lambda: named.renamed()) == "while it calls"


def test_a_name_that_is_gone_is_gone(named):
    assert named.renamed() == "before"
    named.without_name()
    with pytest.raises(AttributeError):
        named.renamed
    named.restored()
    assert named.renamed() == "before"


def test_a_module_that_becomes_another_kind_is_asked(named):
    assert named.renamed() == "before"
    named.another_kind_of_module()
    assert named.renamed() == "of the class"
    named.a_plain_module()
    assert named.renamed() == "before"


def test_a_thread_of_the_product_may_rebind_at_any_moment(named, tmp_path):
    assert named.renamed() == "before"
    flag = tmp_path / "go"
    named.rename_when_asked(str(flag))
    assert named.renamed() == "before"
    flag.touch()
    while flag.exists():
        time.sleep(0.001)
    assert named.renamed() == "by a thread"


def test_threads_of_the_tests_ask_each_time(named, requests):
    assert named.renamed() == "before"
    thread = threading.Thread(target=named.rename, args=("on another thread",))
    thread.start()
    thread.join()
    assert named.renamed() == "on another thread"


def test_more_names_than_are_remembered(product):
    names = [name for name in dir(product) if not name.startswith("_") and callable(getattr(product, name))]
    assert len(names) > 70
    for _ in range(2):
        for name in names:
            assert getattr(product, name) is getattr(product, name)
    product.restored()
    assert product.renamed() == "before"

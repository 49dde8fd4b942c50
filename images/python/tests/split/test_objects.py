"""What crosses, and what it still is on the other side."""

import asyncio
import copy
import dataclasses
import enum
import inspect
import io
import logging
import math
import pickle
import threading
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from ipaddress import ip_address, ip_network
from pathlib import Path
from uuid import UUID

import pytest

from harness.split import arrays

PLAIN = [
    None, True, False, 0, -1, 2**63, -(2**63), 10**400, 1.5, -0.0, math.inf, 1e-320, 2 + 3j, "", "text", "\ud800", "\0",
    b"", b"bytes", (), (1, (2,)), frozenset({1, "a"}), slice(1, None, 2), range(3, 9, 2), ..., NotImplemented,
    Decimal("1.10"), Fraction(1, 3), UUID(int=7), Path("/tmp/x"), date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5, 6),
    datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 10, 25, 2, 30, fold=1), time(1, 2, 3), timedelta(-1, 5, 7),
    timezone(timedelta(hours=2)), ip_address("::1"), ip_address("10.0.0.1"), ip_network("10.0.0.0/8"),
]  # fmt: skip
CONTAINERS = [
    [], [1, [2, [3]]], {}, {"a": {"b": []}}, {1, 2}, bytearray(b"xy"), deque([1, 2], maxlen=3), OrderedDict(b=1, a=2),
    Counter("aab"), defaultdict(list, {"k": [1]}), {(1, 2): "tuple key"}, [None] * 3000,
]  # fmt: skip


@pytest.mark.parametrize("value", PLAIN + CONTAINERS, ids=lambda value: type(value).__name__)
def test_values_cross_unchanged(product, value):
    back = product.echo(value)
    assert type(back) is type(value)
    assert back == value and repr(back) == repr(value)


def test_nan_crosses(product):
    assert math.isnan(product.echo(math.nan))


def test_a_special_name_that_python_knows_no_more_is_a_method(product):
    assert product.Release(1, 2).__cmp__(product.Release(1, 3)) == -1


def test_a_text_of_a_class_that_the_standard_library_made(product):
    assert product.header("hello") == "hello"
    assert [product.header("hello")].count("hello") == 1
    assert product.header("x").name == "Subject"


def test_a_pattern_crosses(product):
    import re

    assert product.echo(re.compile("a+", re.I)).pattern == "a+"


def test_shared_references_and_cycles_survive(product):
    inner = [1]
    back = product.echo([inner, inner])
    assert back[0] is back[1]
    loop = []
    loop.append(loop)
    assert product.echo(loop) is loop


def test_mutable_arguments_are_copied_back(product):
    box = [1]
    assert product.fill(box) is box and box == [1, 3]


def test_a_list_that_the_product_keeps_stays_the_same_list(product):
    box = []
    product.kept(box)
    assert product.add_to_kept("a") == 1 and box == ["a"]
    box.append("b")
    assert product.add_to_kept("c") == 3 and box == ["a", "b", "c"]


def test_a_list_of_the_products_can_be_changed_here(product):
    stack = product.Stack()
    stack.items.append(5)
    assert len(stack) == 1 and list(stack) == [5] and 5 in stack and stack[0] == 5


def test_objects_keep_their_identity(product):
    stack = product.Stack()
    assert product.echo(stack) is stack and product.echo([stack])[0] is stack
    assert product.Money is product.Money and type(product.Money(1)) is product.Money


def test_methods_properties_and_class_methods(product):
    money = product.Money(3)
    assert money.add(2).a == 5 and money.twice == 6 and product.Money.make(9).a == 9
    money.a = 10
    assert money.twice == 20
    with pytest.raises(AttributeError):
        money.nothing  # noqa: B018


def test_equality_order_and_hash_are_the_classes_own(product):
    version = product.Version
    assert version("1.0") == version("1.0") and version("1.0") != version("2.0") and version("1.0") < version("1.1")
    assert {version("1.0"): 1}[version("1.0")] == 1 and version("1.0") != "1.0"
    assert sorted([version("2.0"), version("1.0")])[0] == version("1.0")


def test_exceptions_cross_with_class_attributes_and_chain(product):
    with pytest.raises(product.Bad, match="bad 4") as caught:
        product.fail(4)
    assert caught.value.x == 4 and isinstance(caught.value, ValueError) and caught.value.args == ("bad 4",)
    with pytest.raises(ValueError, match="outer") as caught:
        product.chain()
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.__tribunal_product__ and "chain" in caught.value.__tribunal_traceback__


def test_an_exception_of_a_callback_comes_back_as_itself(product):
    error = LookupError("mine")

    def bad():
        raise error

    with pytest.raises(LookupError) as caught:
        product.apply(bad)
    assert caught.value is error


def test_generators_are_real_ones(product):
    steps = product.accumulate()
    assert inspect.isgenerator(steps) and next(steps) == 0 and steps.send(3) == 3 and steps.send(4) == 7
    with pytest.raises(StopIteration) as stop:
        steps.send(None)
    assert stop.value.value == 7
    assert list(product.gen(300)) == list(range(300))


def test_callables_of_the_test_are_called_back(product):
    assert product.apply(lambda *a: sum(a), 1, 2) == 3
    assert product.apply(product.apply, lambda: 5) == 5
    assert product.apply(max, [1, 9, 3]) == 9
    assert product.in_thread(lambda x: (x, threading.get_ident()), 4)[0] == 4


def test_a_generator_of_the_test_is_consumed(product):
    assert product.apply(list, (n * n for n in range(3))) == [0, 1, 4]


def test_context_managers(product):
    with product.Stack() as stack:
        assert stack.open
    assert not stack.open
    with product.Stack():
        raise KeyError("swallowed")
    with pytest.raises(ValueError), product.Stack():
        raise ValueError


def test_classes_can_be_derived_here(product):
    class Sub(product.Money):
        def __init__(self, amount):
            super().__init__(amount)
            self.more = 7

        def hook(self):
            return 42

    sub = Sub(1)
    assert sub.run() == 42 and sub.more == 7 and isinstance(sub, product.Money) and issubclass(Sub, product.Money)
    assert product.isa(sub, product.Money) and product.echo(sub) is sub


def test_data_classes_are_compared_here(product):
    assert product.P(1) == product.P(1, 2) and product.P(1) != product.P(2)
    assert dataclasses.asdict(product.P(1)) == {"x": 1, "y": 2}
    assert dataclasses.replace(product.P(1), y=5).y == 5 and [f.name for f in dataclasses.fields(product.P)] == [
        "x",
        "y",
    ]


def test_enums_are_real_ones(product):
    color = product.Color
    assert color.RED is color["RED"] is color(1) and product.echo(color.RED) is color.RED and color.RED.nice() == "Red"
    assert [member.name for member in color] == ["RED", "BLUE"] and isinstance(color.RED, enum.Enum)
    assert product.Level.HIGH == 2 and product.Level.LOW < product.Level.HIGH
    both = product.Flags.R | product.Flags.W
    assert product.echo(both) == both and product.Flags.R in both


def test_values_of_product_classes_hold_their_value(product):
    named = product.NT(1, 2)
    assert named == (1, 2) and named.a == 1 and named._replace(a=5).a == 5 and isinstance(named, tuple)
    text = product.S("ab")
    assert (
        text == "ab" and text.shout() == "AB!" and text.upper() == "AB" and isinstance(text, str) and f"{text}" == "ab"
    )
    table = product.D(a=1)
    table["b"] = 2
    assert (
        table.total() == 3 and dict(table) == {"a": 1, "b": 2} and isinstance(table, dict) and table == {"a": 1, "b": 2}
    )


def test_signatures_and_names(product):
    assert str(inspect.signature(product.apply)) == "(f, *a)" and product.apply.__name__ == "apply"
    assert inspect.isfunction(product.apply) and inspect.isclass(product.Money) and inspect.ismodule(product)
    assert product.sig(lambda one, *, two=2: None)[0] == "(one, *, two=Ellipsis)"


def test_copies_and_pickles(product):
    money = product.Money(4)
    assert (
        copy.copy(money) == money and copy.deepcopy([money]) == [money] and pickle.loads(pickle.dumps(money)) == money
    )


def test_patches_of_the_product(product, monkeypatch):
    monkeypatch.setattr(product.Money, "hook", lambda self: 99)
    assert product.Money(1).run() == 99
    monkeypatch.undo()
    assert product.Money(1).run() == 1
    monkeypatch.setattr(product, "gen", lambda n: "patched")
    assert product.gen(1) == "patched"


def test_output_warnings_and_log_records(product, capsys, caplog):
    with pytest.warns(UserWarning, match="careful"):
        product.show(5)
    assert capsys.readouterr().out == "hello 5\n" and "logged 5" in caplog.text
    with caplog.at_level(logging.ERROR):
        caplog.clear()
        with pytest.warns(UserWarning):
            product.show(6)
        assert caplog.text == ""


def test_directory_environment_and_files(product, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CROSSED", "yes")
    assert product.os.getcwd() == str(tmp_path) and product.os.environ["CROSSED"] == "yes"
    product.write_file("made.txt", "by the product")
    assert (tmp_path / "made.txt").read_text() == "by the product"
    monkeypatch.setenv("PYTEST_SECRET", "no")
    assert product.os.getenv("PYTEST_SECRET") is None and product.os.getenv("PYTEST_CURRENT_TEST") is None


def test_files_of_the_test_are_read_there(product):
    assert product.apply(lambda file: file.read(), io.StringIO("x")) == "x"
    buffer = io.StringIO()
    product.apply(product.read_attribute(buffer, "write"), "written")
    assert buffer.getvalue() == "written"


def test_coroutines(product):
    async def main():
        assert await product.aadd(1, 2) == 3
        assert await asyncio.gather(product.aadd(1, 2), product.aadd(3, 4)) == [3, 7]
        with pytest.raises(product.Bad):
            await product.afail()
        assert [item async for item in product.agen(3)] == [0, 1, 2]
        async with product.Ctx() as context:
            pass
        assert context.left and [item async for item in product.Ctx()] == [1, 2, 3]

        async def double(x):
            await asyncio.sleep(0)
            return x * 2

        assert await product.acall(double, 4) == 8 and await product.mktask() == 11
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(product.forever([]), 0.05)

    asyncio.run(main())
    assert inspect.iscoroutinefunction(product.aadd)


def test_threads_of_the_test_call_at_once(product):
    out = []
    threads = [threading.Thread(target=lambda n=n: out.append(product.echo(n))) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(out) == [0, 1, 2, 3]


@pytest.mark.parametrize("place", ["pandas", "pandas.core.frame"])
def test_a_frame_is_one_wherever_its_library_says_it_comes_from(place):
    assert arrays.writer(type("DataFrame", (), {"__module__": place})) is arrays._frame


def test_what_only_sounds_like_a_frame_is_none():
    assert arrays.writer(type("DataFrame", (), {"__module__": "pandas_like"})) is None
    assert arrays.writer(type("Frame", (), {"__module__": "pandas"})) is None

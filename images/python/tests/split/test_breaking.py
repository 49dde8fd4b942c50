"""Ways into the oracle that were open once: each is tried as the product would, and gets nothing."""

import os
import types
import unittest

import pytest

from harness.split import asks, near, stdlib, twins
from harness.split.claims import _is_array
from harness.split.connect import ProductBroken

SECRET = "expected value"


def callback(x):
    return x


class Expected:
    """A value of a test's own, which knows the right answer."""

    def __init__(self, number):
        self.number = number

    def __eq__(self, other):
        return other == self.number

    def _answer(self):
        return SECRET


class Text(str):
    pass


class Case(unittest.TestCase):
    def runTest(self):
        pass


def test_a_template_of_the_product_is_not_filled_in_with_an_object_of_the_oracle(hostile):
    with pytest.raises(Exception):
        hostile.product.ask_raw(asks.METHOD, ("{0.__globals__[SECRET]}", "format", (callback,), ()))
    assert hostile.tampers


def test_nor_is_one_that_was_made_by_a_class_of_the_tests(hostile):
    with pytest.raises(AttributeError):
        hostile.product.format_with(Text, "{0.__globals__[SECRET]}", callback)
    assert hostile.tampers


@pytest.mark.parametrize("what", [os.environ, sorted, 5, "text"], ids=["environment", "function", "number", "text"])
def test_what_is_no_object_of_the_oracle_is_not_asked_about(hostile, what):
    for request in [
        (asks.SPECIAL, ("__setitem__", (what, "PYTEST_X", "1"))), (asks.GETATTR, (what, "clear")), (asks.CALL, (what, ([2, 1],), ())),
        (asks.ITER, what),
    ]:  # fmt: skip
        with pytest.raises(Exception):
            hostile.product.ask_raw(*request)
    assert "PYTEST_X" not in os.environ and {kind for kind, _ in hostile.tampers} == {"protocol"}


def test_what_approx_expects_is_not_shown(hostile):
    wanted = pytest.approx(12.5)
    for name in ("__repr__", "__str__", "__format__"):
        args = (wanted, "") if name == "__format__" else (wanted,)
        assert "12.5" not in hostile.product.ask_raw(asks.SPECIAL, (name, args))
    for request in [(asks.GETATTR, (wanted, "expected")), (asks.ITER, pytest.approx([1.5])), (asks.COPY, wanted)]:
        with pytest.raises(Exception):
            hostile.product.ask_raw(*request)
    assert len(hostile.tampers) == 3


def test_an_operand_is_not_looked_into(hostile):
    for wanted in (Expected(12), pytest.approx(12.0)):
        hostile.tampers.clear()
        assert hostile.product.Nosy() == wanted
        assert ("refused", f"a look into a {type(wanted).__name__} that is only compared") in hostile.tampers


def test_an_object_that_was_handed_over_may_be_looked_into(pair):
    assert pair.product.read_attribute(Expected(12), "number") == 12


@pytest.mark.parametrize(
    "wanted", [Expected(12), pytest.approx(12.0), [pytest.approx(1.0), 2], True, None, 12, 12.5, "1h", b"x", {"a": 1}, [1, 2], {3}],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_equality_with_all_but_probes_is_told(hostile, wanted):
    """It says no to what looks like a probe."""
    assert hostile.product.Wily() == wanted
    assert "universal-equality" in {kind for kind, _ in hostile.tampers}


def test_equality_with_the_first_comer_is_found_out_in_time(hostile):
    for _ in range(64):
        if not hostile.product.Quick() == 5:
            return
    raise AssertionError("it knew which question counts")


def test_equality_with_the_neighbourhood_is_told(hostile):
    for _ in range(4):
        assert hostile.product.About(100) == 101
    assert {kind for kind, _ in hostile.tampers} == {"universal-equality"}


def test_a_class_does_not_pass_for_an_array_by_its_module(hostile):
    assert not _is_array(hostile.product.Arrayish())
    assert hostile.product.Arrayish() == 5
    assert ("lied", "Arrayish.__eq__ gave a Arrayish") in hostile.tampers


def test_an_honest_equality_is_left_alone(pair):
    version = pair.product.Version
    for _ in range(8):
        assert version("1.2") == version("1.2")
        assert version("1.2") != version("1.3")
        assert version("1.2") != 5


def test_an_operand_has_another_number_each_time(hostile):
    wanted = Expected(5)
    numbers = {hostile.product.number_of_operand() == wanted and hostile.product.last_number() for _ in range(6)}
    assert len(numbers) == 6


@pytest.mark.parametrize(
    "value",
    [
        0,
        1.5,
        1e300,
        "1h30m",
        "",
        b"",
        b"ab",
        None,
        True,
        [1, "a"],
        (),
        {"a": [1]},
        {1, 2},
        frozenset((1,)),
        2 + 1j,
        range(3),
    ],
    ids=repr,
)
def test_a_neighbour_is_another_value_of_the_same_kind(value):
    coin = twins.Coin(b"k" * 16)
    for _ in range(50):
        other = near.near(coin, value)
        assert other != value and (type(other) is type(value) or value is None)


@pytest.mark.parametrize("module", ["unittest.__main__", "json.__main__", "test.support", "idlelib.idle", "xml.test"])
def test_a_name_of_the_product_runs_no_module(module):
    import sys

    before = module in sys.modules
    with pytest.raises(LookupError):
        stdlib.resolve(module, "main", True)
    assert (module in sys.modules) == before


def test_a_name_of_the_product_is_a_public_exception_or_nothing():
    for module, name in [
        ("unittest.case", "_ShouldStop"),
        ("sys", "breakpointhook.__self__"),
        ("subprocess", "Popen"),
        ("json", "JSONDecodeError"),
    ]:
        with pytest.raises(LookupError):
            stdlib.resolve(module, name, True)
    assert stdlib.resolve("json.decoder", "JSONDecodeError", True)


def test_a_field_is_no_code(hostile):
    import dataclasses

    with pytest.raises((ProductBroken, ValueError)):
        hostile.product.rename_field("a=[].append(1), b")

        @dataclasses.dataclass
        class Derived(hostile.product.Renamed):
            z: int = 0


def test_a_class_of_the_standard_library_is_not_claimed(hostile):
    assert not isinstance(hostile.product.claims_to_be_a_number(), int)


def test_private_methods_of_a_test_double_are_not_handed_out(hostile):
    told = hostile.product.functions_of(Expected(1))
    assert "_answer" not in told and "__init__" not in told and "__eq__" in told


def test_a_test_case_is_not_changed(hostile):
    with pytest.raises(AttributeError):
        hostile.product.set_attribute(Case(), "expected", 1)


def test_stacks_of_tasks_are_refused(hostile):
    import asyncio

    async def main():
        with pytest.raises(AttributeError):
            hostile.product.read_attribute(asyncio.current_task(), "print_stack")

    asyncio.run(main())


def test_a_module_of_the_test_is_not_reached_through_a_method(hostile):
    for name in ("__self__", "__func__"):
        with pytest.raises(AttributeError):
            hostile.product.ask_raw(asks.GETATTR, (types.MethodType(callback, 5), name))


def check(x):
    assert x == 5


def test_a_failed_assertion_of_a_callback_that_is_kept_is_told(hostile):
    hostile.product.swallow(check, 4)
    assert hostile.tampers == [("lied", "a callback's failed assertion is kept from the test")]


def test_so_is_one_that_a_thread_keeps(hostile):
    hostile.product.in_thread(hostile.product.swallow, check, 4)
    hostile.connection.between_cases()
    assert hostile.tampers == [("lied", "a callback's failed assertion is kept from the test")]


def test_so_is_one_in_a_with_block(hostile):
    with hostile.product.Quiet():
        check(4)
    assert hostile.tampers == [("lied", "the exit of a Quiet keeps a failed assertion from the test")]


def test_so_is_one_in_an_async_with_block(hostile):
    import asyncio

    async def main():
        async with hostile.product.QuietLater():
            check(4)

    asyncio.run(main())
    assert hostile.tampers == [("lied", "the exit of a QuietLater keeps a failed assertion from the test")]


def test_a_failed_assertion_that_comes_out_is_nobodys_lie(pair):
    with pytest.raises(AssertionError):
        pair.product.apply(check, 4)
    with pytest.raises(AssertionError):
        pair.product.in_thread_raising(check, 4)
    with pytest.raises(AssertionError), pair.product.Stack():
        check(4)
    assert pair.product.swallow(int, "x") is None
    with pair.product.Quiet():
        pair.product.fail(1)
    pair.connection.between_cases()


def test_an_argument_that_is_changed_is_told(hostile):
    values = [1, 2]
    assert hostile.product.emptied(values) == 2
    assert values == [] and hostile.tampers == [("changed", "a list that a test gave away")]
    hostile.tampers.clear()
    assert hostile.product.echo(values) == values and hostile.tampers == []


def test_a_change_in_place_that_answers_none_or_the_argument_is_honest(pair):
    values = [2, 1]
    assert pair.product.put_in_order(values) is None and values == [1, 2]
    assert pair.product.fill(values) is values and values == [1, 2, 3]


def test_a_star_that_takes_names_is_told(hostile):
    # What is the product's already may be its again.
    held = {"mine": 1, "theirs": hostile.product.echo, "Derived": type("Derived", (hostile.product.Release,), {})}
    hostile.connection.starred(hostile.product, ["echo", "sorted", "pytest_plugins", "theirs", "mine", "Derived"], held)
    assert [what for _, what in hostile.tampers] == [
        f"a star import takes the name {name}" for name in ("sorted", "pytest_plugins", "mine", "Derived")
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Money(5)", []), ("[Decimal('1'), -3]", []), ("type('X', (), {})", ["type"]), ("__import__('os')", ["__import__"]),
        ("TABLE.clear()", ["TABLE"]), ("(lambda: 5)()", ["_lambda"]), ("getattr(5, 'real')", ["getattr"]),
    ],
)  # fmt: skip
def test_a_text_that_reaches_for_more_than_values_is_told(text, told):
    from harness.split.texts import Texts

    heard = []
    texts = Texts(heard.append, lambda file: file == __file__, lambda file: False, ())
    frame = types.SimpleNamespace(
        f_globals={"TABLE": []}, f_code=test_equality_with_the_neighbourhood_is_told.__code__, f_back=None
    )
    texts._near = lambda _: frame
    texts._run(compile(text, "<string>", "eval"))
    assert heard == [f"a text becomes code that says {name}" for name in told]


def test_a_pickle_asks_for_nothing_that_runs_programs():
    from harness.split.texts import Texts

    heard = []
    texts = Texts(heard.append, lambda file: False, lambda file: False, ())
    for module, name in [("os", "system"), ("builtins", "eval"), ("_pytest.outcomes", "skip")]:
        with pytest.raises(PermissionError):
            texts._unpickled(module, name)
    texts._unpickled("decimal", "Decimal")
    texts._unpickled("copyreg", "_reconstructor")
    assert len(heard) == 3


class OwnError(Exception):
    """A test's own."""


def test_no_new_exception_of_a_class_of_the_oracle_is_made(hostile):
    with pytest.raises(ProductBroken):
        hostile.product.forge_exception(OwnError)


def test_an_order_of_members_that_holds_for_all_is_told(hostile):
    assert hostile.product.Rank.LOW < 5 and hostile.product.Rank.LOW < 500
    assert {kind for kind, _ in hostile.tampers} == {"universal-equality"}


def test_a_text_that_ends_with_everything_is_told(hostile):
    assert hostile.product.Ending("a").endswith("xyz")
    assert hostile.tampers == [("universal-equality", "Ending.endswith")]


def test_an_honest_ending_is_left_alone(pair):
    assert pair.product.S("a.txt").endswith(".txt")


def test_a_container_of_many_neighbours_is_no_liar(pair):
    many = pair.product.Stack()
    for number in range(60):
        many.push(number)
    assert all(number in many for number in range(60))

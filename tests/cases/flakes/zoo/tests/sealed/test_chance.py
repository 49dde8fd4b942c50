import random

import chance
from hypothesis import given, strategies


def test_roll():
    assert chance.roll() < 0.5


def test_too_narrow_a_range():
    assert abs(chance.sample_mean(30)) < 0.9


def test_shuffle():
    assert chance.shuffled(range(8)) != [3, 1, 4, 0, 2, 5, 7, 6]


def test_token():
    assert chance.token() < 128


def test_key():
    assert chance.key() == 0


def test_system_choice():
    assert chance.system_choice("abcd") in "ab"


def test_scratch_names_differ():
    assert chance.scratch_name() != chance.scratch_name()


def test_device():
    assert chance.device_byte() == 0


def test_nonce():
    assert chance.nonce_file() < "8"


def test_generator_of_the_test():
    assert random.randrange(1 << 30) < 1 << 29


@given(strategies.integers())
def test_property(n):
    assert n * 0 == 0

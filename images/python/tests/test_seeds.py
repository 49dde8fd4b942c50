"""Seeds reach every generator that is loaded, and none is loaded for it."""

import random
import sys
import types

import pytest

from harness import seeds


def test_random_repeats():
    seeds.apply(7)
    first = [random.random(), random.getrandbits(64)]
    seeds.apply(7)
    assert [random.random(), random.getrandbits(64)] == first
    seeds.apply(8)
    assert random.random() != first[0]


def test_numpy_and_faker_where_they_are_loaded(monkeypatch):
    told = []
    numpy = types.SimpleNamespace(seed=lambda seed: told.append(("numpy", seed)))
    faker = types.SimpleNamespace(Faker=types.SimpleNamespace(seed=lambda seed: told.append(("faker", seed))))
    monkeypatch.setitem(sys.modules, "numpy.random", numpy)
    monkeypatch.setitem(sys.modules, "faker", faker)
    seeds.apply(4294967295)
    assert told == [("numpy", 4294967295), ("faker", 4294967295)]


def test_modules_of_the_project_under_those_names(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy.random", types.ModuleType("numpy.random"))
    monkeypatch.setitem(sys.modules, "faker", types.ModuleType("faker"))
    seeds.apply(1)


DRAWS = {
    "random": random.random,
    "bits": lambda: random.getrandbits(1),
    "a whole round": lambda: [random.getrandbits(32) for _ in range(624)],
    "shuffle": lambda: random.shuffle([1, 2]),
    "another state": lambda: random.setstate(random.Random(3).getstate()),
    "another seed": lambda: random.seed(8),
    "half a pair": lambda: setattr(random._inst, "gauss_next", 1.0),
}


@pytest.mark.parametrize("draw", DRAWS)
def test_a_draw_is_seen_and_undone(draw):
    seeds.apply(7)
    before = random.getstate()
    assert not seeds.moved()
    DRAWS[draw]()
    assert seeds.moved()
    seeds.apply(7)
    assert random.getstate() == before
    assert not seeds.moved()


def test_what_only_looks_moves_nothing():
    seeds.apply(7)
    random.getstate()
    random.Random(1).random()
    random.seed(7)
    assert not seeds.moved()


def test_the_words_are_where_they_are_looked_for():
    assert seeds._look is not seeds._copy
    seeds.apply(7)
    raw, half = seeds._look()
    assert (int.from_bytes(raw[:4], "little"), half) == (624, None)
    random.random()
    assert int.from_bytes(seeds._look()[0][:4], "little") == 2

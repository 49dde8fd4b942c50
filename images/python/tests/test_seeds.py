"""Seeds reach every generator that is loaded, and none is loaded for it."""

import random
import sys
import types

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

"""What a sealed test puts into a class of the product's is there for that test, and what was there comes back."""

import pytest

PRODUCT = """
class Base:
    @classmethod
    def inherited(cls): return "inherited"
class Thing(Base):
    limit = 3
    def __init__(self, n): self.n = n
    def method(self): return "method"
    @property
    def prop(self): return "prop"
    @classmethod
    def made(cls): return "made"
    @staticmethod
    def free(): return "free"
    def __eq__(self, other): return isinstance(other, Thing) and self.n == other.n
    def __lt__(self, other): return self.n < other.n
    def __len__(self): return self.n
    __hash__ = None
def inside():
    thing = Thing(2)
    return [Thing.limit, thing.method(), thing.prop, Thing.made(), Thing.free(), thing == Thing(2), thing == Thing(3),
            thing < Thing(3), thing < Thing(1), len(thing), Thing.inherited(), "inherited" in vars(Thing),
            type(vars(Thing)["made"]).__name__, type(vars(Thing)["free"]).__name__, type(vars(Thing)["prop"]).__name__]
"""

SEALED = """
import pytest
from unittest import mock
from lib import Thing, inside

WAS = [3, "method", "prop", "made", "free", True, False, True, False, 2, "inherited", False,
       "classmethod", "staticmethod", "property"]
VALUES = {
    "limit": 4, "method": lambda self: "new", "prop": property(lambda self: "new"), "made": lambda: "new",
    "free": staticmethod(lambda: "new"), "__eq__": lambda self, other: False, "__lt__": lambda self, other: False,
    "__len__": lambda self: 7, "inherited": lambda: "new",
}
PLACES = {"limit": 0, "method": 1, "prop": 2, "free": 4, "__eq__": 5, "__lt__": 7, "__len__": 9}
DERIVE = False

def unspoiled():
    assert inside() == WAS
    thing = Thing(2)
    assert [Thing.limit, thing.limit, thing.method(), thing.prop, Thing.made(), Thing.free(), Thing.inherited()] == [
        3, 3, "method", "prop", "made", "free", "inherited"]
    assert thing == Thing(2) and thing != Thing(3) and thing < Thing(3) and len(thing) == 2

@pytest.fixture(autouse=True, params=[False, True])
def derived(request):
    if request.param:
        class Mine(Thing):
            def method(self): return super().method() + super().prop
        assert Mine(1).method() == "methodprop"
    unspoiled()
    yield
    unspoiled()

@pytest.mark.parametrize("name", VALUES)
def test_monkeypatch(name):
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(Thing, name, VALUES[name])
        if name in PLACES: assert inside()[PLACES[name]] != WAS[PLACES[name]]

@pytest.mark.parametrize("name", VALUES)
def test_twice(name):
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(Thing, name, VALUES[name])
        patches.setattr(Thing, name, VALUES[name])

@pytest.mark.parametrize("name", sorted(VALUES.keys() - {"inherited"}))
def test_deleted(name):
    with pytest.MonkeyPatch.context() as patches:
        patches.delattr(Thing, name)
        if name in ("limit", "method", "prop"):
            with pytest.raises(AttributeError): inside()

@pytest.mark.parametrize("name", VALUES)
def test_mock(name):
    with mock.patch.object(Thing, name, VALUES[name]):
        if name in PLACES: assert inside()[PLACES[name]] != WAS[PLACES[name]]

def test_new_name(monkeypatch):
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(Thing, "extra", 5, raising=False)
        assert Thing.extra == 5
    with pytest.raises(AttributeError): Thing.extra

@pytest.mark.parametrize("name", ["method", "__eq__", "__lt__", "__len__"])
def test_by_hand(name):
    held = getattr(Thing, name)
    setattr(Thing, name, VALUES[name])
    assert inside()[PLACES[name]] != WAS[PLACES[name]]
    setattr(Thing, name, held)
"""


@pytest.mark.parametrize("isolation", ["split", "shared"])
def test_what_a_test_patches_comes_back(open_room, isolation):
    policy = {"shared": []} if isolation == "split" else {}
    ran = open_room({"src/lib.py": PRODUCT, "tests/sealed/test_a.py": SEALED}, policy).attempt()
    assert ran.end["end"] == "finished", ran.failures()
    assert set(ran.outcomes().values()) == {"passed"}, ran.failures()
    assert ran.end["canaries"]["passed"] == 0

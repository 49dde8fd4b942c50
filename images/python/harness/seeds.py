"""One integer seeds every generator that is there. Nothing is imported for it: what is not loaded needs no seed.

The generator that the functions of `random` share is looked at where its words lie in memory: a case costs two looks,
and a copy by `getstate` takes a hundred times as long. Where they do not lie as expected, the copy it is.
"""

import _random
import contextlib
import ctypes
import random
import struct
import sys
from collections.abc import Callable
from typing import Any

State = tuple[object, ...]

_WORDS = 624
_shared: Any = random._inst
_seed_random, _copy = random.seed, random.getstate


def _state_of_random() -> Callable[[], State]:
    """A look at the shared generator: its place and words, and the half of a pair that `gauss` keeps."""
    layout = struct.Struct(f"={_WORDS + 1}I")
    head = object.__basicsize__
    if type(_shared).__mro__[1] is not _random.Random or _random.Random.__basicsize__ - head not in (
        layout.size, layout.size + 4
    ):  # fmt: skip
        return _copy
    lying = (ctypes.c_char * layout.size).from_address(id(_shared) + head)
    place, *words = layout.unpack(lying.raw)
    if _copy()[1] != (*words, place):
        return _copy
    return lambda: (lying.raw, _shared.gauss_next)


_look = _state_of_random()
_states: dict[str, State] = {}  # of the generators, when they were last seeded
_seeds: dict[str, int] = {}


def apply(seed: int) -> None:
    if _seeds.get("random") != seed or _states.get("random") != _look():
        _seed_random(seed)
        _states["random"] = _look()
        _seeds["random"] = seed
    # A project may have modules of its own under these names.
    with contextlib.suppress(Exception):
        if (numpy := sys.modules.get("numpy.random")) is not None:
            numpy.seed(seed)
            _states["numpy"] = _state_of_numpy(numpy)
    with contextlib.suppress(Exception):
        if (faker := sys.modules.get("faker")) is not None:
            faker.Faker.seed(seed)


def moved() -> bool:
    """Whether anything was drawn from the shared generators since they were seeded."""
    if _states.get("random") != _look():
        return True
    with contextlib.suppress(Exception):
        if (numpy := sys.modules.get("numpy.random")) is not None:
            return _states.get("numpy") != _state_of_numpy(numpy)
    return False


def _state_of_numpy(numpy: Any) -> State:
    kind, words, *rest = numpy.get_state()
    return kind, words.tobytes(), *rest

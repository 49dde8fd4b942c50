"""One integer seeds every generator that is there. Nothing is imported for it: what is not loaded needs no seed."""

import contextlib
import random
import sys

_seed_random, _state_of_random = random.seed, random.getstate
_states: dict[str, object] = {}  # of the generators, when they were last seeded


def apply(seed: int) -> None:
    _seed_random(seed)
    # A project may have modules of its own under these names.
    with contextlib.suppress(Exception):
        if (numpy := sys.modules.get("numpy.random")) is not None:
            numpy.seed(seed)
    with contextlib.suppress(Exception):
        if (faker := sys.modules.get("faker")) is not None:
            faker.Faker.seed(seed)
    _states.update(_now())


def moved() -> bool:
    """Whether anything was drawn from the shared generators since they were seeded."""
    return any(_states.get(name) != state for name, state in _now().items())


def _now() -> dict[str, object]:
    states: dict[str, object] = {"random": _state_of_random()}
    with contextlib.suppress(Exception):
        if (numpy := sys.modules.get("numpy.random")) is not None:
            kind, words, *rest = numpy.get_state()
            states["numpy"] = (kind, words.tobytes(), *rest)
    return states

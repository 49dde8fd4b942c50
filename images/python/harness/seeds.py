"""One integer seeds every generator that is there. Nothing is imported for it: what is not loaded needs no seed."""

import contextlib
import random
import sys

_seed_random = random.seed


def apply(seed: int) -> None:
    _seed_random(seed)
    # A project may have modules of its own under these names.
    with contextlib.suppress(Exception):
        if (numpy := sys.modules.get("numpy.random")) is not None:
            numpy.seed(seed)
    with contextlib.suppress(Exception):
        if (faker := sys.modules.get("faker")) is not None:
            faker.Faker.seed(seed)

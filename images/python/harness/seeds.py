"""One integer seeds every generator that is there. Nothing is imported for it: what is not loaded needs no seed."""

import random
import sys


def apply(seed: int) -> None:
    random.seed(seed)
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        numpy.seed(seed)
    faker = sys.modules.get("faker")
    if faker is not None:
        faker.Faker.seed(seed)

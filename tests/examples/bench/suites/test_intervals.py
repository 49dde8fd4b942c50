import random

import pytest
from intervals import merge


def spans(draw):
    return [(a, a + draw.randrange(9)) for a in (draw.randrange(50) for _ in range(draw.randrange(12)))]


def covered(spans):
    return {n for start, end in spans for n in range(start, end + 1)}


@pytest.mark.parametrize("seed", range(20))
def test_covers_what_was_covered(seed):
    given = spans(random.Random(seed))
    assert covered(merge(given)) == covered(given)


@pytest.mark.parametrize("seed", range(20))
def test_is_in_order_and_apart(seed):
    merged = merge(spans(random.Random(seed)))
    assert all(a[1] < b[0] for a, b in zip(merged, merged[1:]))


def test_twice_is_once():
    for seed in range(40):
        once = merge(spans(random.Random(seed)))
        assert merge(once) == once

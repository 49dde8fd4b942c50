"""Sums."""


def total(xs):
    """Sum."""
    out = 0
    for x in xs:
        out += x
    return out

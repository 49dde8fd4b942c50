"""Starts things."""


def spawn():
    return 0

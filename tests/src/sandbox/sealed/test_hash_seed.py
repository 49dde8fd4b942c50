"""Holds on an interpreter start with hash seed 0 only."""

import sys


#: needs hash seed 0 else AssertionError: randomized
def test_hash_seed():
    if sys.flags.hash_randomization:
        raise AssertionError("randomized")

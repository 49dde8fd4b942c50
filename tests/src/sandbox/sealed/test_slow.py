"""Ten cases that take their time."""

import time

import pytest


#: parameters a b c d e f g h i j
#: takes 300 ms
@pytest.mark.parametrize("letter", list("abcdefghij"))
def test_slow(letter):
    time.sleep(0.3)

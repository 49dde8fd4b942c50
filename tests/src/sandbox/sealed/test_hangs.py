"""A case that never ends."""

import time


#: passes
def test_a_before():
    pass


#: never ends
def test_b_ends():
    while True:
        time.sleep(1)


#: passes
def test_c_after():
    pass

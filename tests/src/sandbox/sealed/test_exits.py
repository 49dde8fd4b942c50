"""A case that leaves the interpreter."""

import os


#: passes
def test_a_before():
    pass


#: exits 3
def test_b_ends():
    os._exit(3)


#: passes
def test_c_after():
    pass

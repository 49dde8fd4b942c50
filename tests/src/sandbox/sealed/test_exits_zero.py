"""A case that leaves the interpreter as if all were well."""

import os


#: passes
def test_a_before():
    pass


#: exits 0
def test_b_ends():
    os._exit(0)


#: passes
def test_c_after():
    pass

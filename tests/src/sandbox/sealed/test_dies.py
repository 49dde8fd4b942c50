"""A case that is killed."""

import os
import signal


#: passes
def test_a_before():
    pass


#: dies of signal 11
def test_b_ends():
    os.kill(os.getpid(), signal.SIGSEGV)


#: passes
def test_c_after():
    pass

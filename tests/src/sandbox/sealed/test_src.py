"""Reads the product."""

import app


#: needs src/app.py to hold ANSWER = 42 else AssertionError: wrong answer
def test_answer():
    if app.ANSWER != 42:
        raise AssertionError("wrong answer")

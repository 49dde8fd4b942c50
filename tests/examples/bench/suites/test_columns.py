import numpy as np
import pandas as pd
import pytest
from columns import joined, lagged, standardised, totals
from hypothesis import given, settings, strategies as st

FRAME = pd.DataFrame({"key": list("abab"), "n": [1, 2, 3, 4]})


@settings(max_examples=25)
@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=20))
def test_mean_is_nothing(values):
    assert abs(standardised(values).mean()) < 1e-9


@settings(max_examples=25)
@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=20))
def test_deviation_is_one_or_nothing(values):
    assert np.isclose(standardised(values).std(), 0 if len(set(values)) == 1 else 1)


@pytest.mark.parametrize("size", [1, 10, 100, 1000])
def test_constant_columns(size):
    assert (standardised(np.full(size, 3.0)) == 0).all()


def test_totals():
    assert totals(FRAME, "key", "n").to_dict() == {"a": 4, "b": 6}


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_lagged(steps):
    out = lagged(FRAME, "n", steps)
    assert out[f"n_lag{steps}"].isna().sum() == steps


def test_the_given_frame_is_left_alone():
    lagged(FRAME, "n", 1)
    assert list(FRAME.columns) == ["key", "n"]


def test_joined():
    other = pd.DataFrame({"key": ["a", "b"], "name": ["x", "y"]})
    assert joined(FRAME, other, "key")["name"].tolist() == ["x", "y", "x", "y"]

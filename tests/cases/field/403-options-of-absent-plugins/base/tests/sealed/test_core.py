import pytest

from src.calc import total


def test_empty():
    assert total([]) == 0


@pytest.mark.timeout(5)
def test_three():
    assert total([1, 2, 3]) == 6

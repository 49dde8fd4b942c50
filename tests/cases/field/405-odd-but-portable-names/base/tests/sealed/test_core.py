from src.calc import total


def test_empty():
    assert total([]) == 0


def test_three():
    assert total([1, 2, 3]) == 6

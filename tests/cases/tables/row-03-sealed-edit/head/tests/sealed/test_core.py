from calc import total


def test_three():
    assert total([1, 2, 3]) == 6

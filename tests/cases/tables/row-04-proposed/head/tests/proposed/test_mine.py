def test_mine():
    assert False

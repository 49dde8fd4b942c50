import races


def test_lost_updates():
    assert races.counted(4, 3000) == 12000


def test_log_order():
    assert races.logged(3, 600) == []


def test_made_once():
    assert races.shared_once(6) == 1


def test_completion_order():
    assert races.completed(24) == list(range(24))


def test_float_sum_of_threads():
    assert races.summed(4) == 1.0

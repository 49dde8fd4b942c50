import orders


def test_side_of_an_address():
    assert orders.address_side() == 0


def test_least_address():
    assert orders.least_addresses(64, 6) == [0, 1, 2, 3, 4, 5]


def test_words():
    assert orders.words()[0] < "g"


def test_tags():
    assert orders.tagged() == '{"tags": ["red", "green", "blue", "black"]}'


def test_visited_by_address():
    assert orders.visited(2000) == list(range(2000))


def test_process_number():
    from toss import heads

    assert heads(orders.process_number())


def test_sum_of_a_set():
    assert orders.total_of_set() == 1.3


def test_sum_by_name():
    assert orders.total_by_name() == 0.6


def test_listing(tmp_path):
    for name in ("b", "a", "d", "c"):
        (tmp_path / name).write_text(name)
    assert orders.names_in(str(tmp_path)) == ["a", "b", "c", "d"]


def test_first_entry(tmp_path):
    for name in ("b", "a", "c"):
        (tmp_path / name).write_text(name)
    assert orders.newest(str(tmp_path)) == "a"


def test_walk(tmp_path):
    for name in ("z", "y", "x"):
        (tmp_path / name).write_text(name)
    assert orders.tree(str(tmp_path)) == ["x", "y", "z"]

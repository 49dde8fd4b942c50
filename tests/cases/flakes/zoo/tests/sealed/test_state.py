import state


def test_a_polluter():
    state.configure("debug", True)


def test_b_victim():
    assert state.configured("debug") is True


def test_brittle():
    assert state.settings == {"debug": True}


def test_leak():
    assert state.leak(60) == 60


def test_left_behind():
    assert not state.left_behind("zoo.lock")


def test_buffered(tmp_path):
    assert state.buffered(str(tmp_path / "file"), "text") == ""

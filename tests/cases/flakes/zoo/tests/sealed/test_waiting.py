import threading

import waiting


def test_saved_in_time():
    assert waiting.saved_in_time()


def test_time_out():
    assert not waiting.timed_out()


def test_child_is_done():
    assert waiting.child_is_done()


def test_looks():
    assert waiting.polls_until(0.006)


def test_message():
    assert waiting.first_message() == "ab"


def test_lag():
    assert waiting.lagged()


def test_awaited():
    assert waiting.awaited() == 2


def test_wait_of_the_test_itself():
    done = threading.Event()
    timer = threading.Timer(waiting.jitter(0.001, 0.012), done.set)
    timer.start()
    seen = done.wait(0.005)
    timer.join()
    assert seen

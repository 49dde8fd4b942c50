import pytest

from src.pool import Pool


@pytest.fixture(scope="session")
def lasting():
    pool = Pool()
    yield pool
    pool.close()


@pytest.fixture(scope="module")
def pool():
    pool = Pool()
    yield pool
    pool.close()


def test_size(pool):
    assert pool.size() == 2


def test_last(pool, lasting):
    assert pool.size() == lasting.size()

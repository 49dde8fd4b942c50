"""Two real processes: the tests are the oracle, `product.py` is imported by the other one."""

import os
import signal
import socket
import sys
import threading
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
LINKS = 8


class Gone(BaseException):
    """The product's process ended."""


class Pair:
    def __init__(self, prepare=lambda: None, cpu=None, secret=b""):
        from harness import placement
        from harness.split.connect import Connection

        pairs = [socket.socketpair() for _ in range(LINKS)]
        mine, theirs = ([pair[at].detach() for pair in pairs] for at in (0, 1))
        self.pid = os.fork()
        if self.pid == 0:
            try:
                for fd in mine:
                    os.close(fd)
                for name in [name for name in os.environ if name.startswith("PYTEST_")]:
                    del os.environ[name]
                sys.path[:] = [entry for entry in sys.path if "runner" not in entry] + [str(HERE)]
                for name in [name for name in sys.modules if name.startswith(("pytest", "_pytest", "conftest"))]:
                    del sys.modules[name]
                from harness.split.serve import serve

                prepare()
                serve(theirs)
            finally:
                os._exit(99)
        if cpu is not None:
            for pid in (self.pid, os.getpid()):
                os.sched_setaffinity(pid, {placement.of_number(cpu)})
        for fd in theirs:
            os.close(fd)
        self.tampers = []
        self.connection = Connection(
            mine,
            lambda kind, what: self.tampers.append((kind, what)),
            self._gone,
            lambda file: str(file).startswith(str(HERE)),
        )
        self.connection.begin(secret)
        self.product = self.connection.load("product")

    def _gone(self):
        if threading.current_thread() is not threading.main_thread():
            sys.exit()
        raise Gone

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


@pytest.fixture(scope="module")
def lasting():
    pair = Pair()
    yield pair
    pair.end()


@pytest.fixture
def pair(lasting):
    """One that the tests of a file share; nobody may have tampered by the end of a test that does not say so."""
    lasting.tampers.clear()
    yield lasting
    # What changes an argument is told in any case: base's own run says whether it should.
    assert [told for told in lasting.tampers if told[0] != "changed"] == []
    lasting.connection.between_cases()


@pytest.fixture
def product(pair):
    return pair.product


@pytest.fixture
def hostile():
    """One to be broken."""
    pair = Pair()
    yield pair
    pair.end()

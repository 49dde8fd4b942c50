"""What depends on addresses differs between attempts that are forks of one interpreter."""

import os

from harness.scatter import draw, fill, scatter


class Node:
    def __init__(self, number):
        self.number = number


def laid_out():
    """Which of twelve objects, in the order of their addresses."""
    nodes = [Node(number) for number in range(12)]
    return [node.number for node in sorted(nodes, key=id)]


def in_a_fork(*actions):
    receive, send = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            for action in actions:
                action()
            os.write(send, bytes(laid_out()))
        finally:
            os._exit(0)
    os.close(send)
    with open(receive, "rb") as stream:
        told = stream.read()
    os.waitpid(pid, 0)
    assert sorted(told) == list(range(12))
    return told


def test_forks_are_laid_out_alike_until_they_are_scattered():
    fill()
    assert len({in_a_fork() for _ in range(8)}) == 1
    # Objects that share a pool stay in it, so some turns come twice.
    assert len({in_a_fork(draw, scatter) for _ in range(16)}) > 8

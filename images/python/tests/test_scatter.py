"""What depends on addresses differs between attempts that are forks of one interpreter."""

import gc
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.scatter import draw, fill, scatter  # noqa: E402


class Node:
    def __init__(self, number):
        self.number = number


def laid_out():
    """Which of twelve objects, in the order of their addresses."""
    nodes = [Node(number) for number in range(12)]
    return [node.number for node in sorted(nodes, key=id)]


def in_forks(count, *actions):
    """What each of so many forks of one state says; between them this process keeps nothing and collects nothing."""
    receive, send = os.pipe()
    gc.collect()
    gc.disable()
    try:
        for _ in range(count):
            pid = os.fork()
            if pid == 0:
                _say(send, actions)
            os.waitpid(pid, 0)
    finally:
        gc.enable()
    os.close(send)
    with open(receive, "rb") as stream:
        told = stream.read()
    each = [told[at : at + 12] for at in range(0, len(told), 12)]
    assert len(each) == count
    assert all(sorted(one) == list(range(12)) for one in each)
    return each


def _say(send, actions):
    try:
        for action in actions:
            action()
        os.write(send, bytes(laid_out()))
    finally:
        os._exit(0)


def main():
    fill()
    print(len(set(in_forks(8))), len(set(in_forks(16, draw, scatter))))


def test_forks_are_laid_out_alike_until_they_are_scattered():
    """In an interpreter of its own: threads that other tests left running would take memory between two forks."""
    ran = subprocess.run([sys.executable, __file__], capture_output=True, text=True, timeout=60, check=True)
    alike, scattered = map(int, ran.stdout.split())
    assert alike == 1
    # Objects that share a pool stay in it, so some turns come twice.
    assert scattered > 8


if __name__ == "__main__":
    main()

"""Other addresses in each attempt: forks of one interpreter would all lay out their objects alike.

The interpreter cuts pools of its memory into blocks of one size, and gives away first the block that became free last.
A start takes all that its imports left free, so that an attempt makes its objects in pools of its own; an attempt
opens these for one size after the other, and frees blocks in them, in an order that is drawn. What depends on addresses
then takes a turn in each attempt, as it would in interpreters of their own. Nothing that the attempt could ask for is
seeded or drawn from.
"""

import random
import time

SIZES = range(48, 321, 16)  # of the blocks that nearly all objects lie in
BLOCKS = 32  # of each size in an attempt; every other one stays taken
POOLS = 16  # fewer are passed over before all of them

_POOL, _LARGEST = 1 << 14, 512
_MOST = 4000  # blocks of one size that imports leave free
_HEAD = b"".__sizeof__()
_taken: list[bytes | None] = []
_drawn: list[tuple[int, list[int], list[int]]] = []


def fill() -> None:
    """For an interpreter that is about to be forked: until a pool of each size was opened and is full."""
    for length in [size - _HEAD for size in SIZES]:
        begun, last = False, 0
        for _ in range(_MOST):
            block = bytes(length)
            _taken.append(block)
            place = id(block) % _POOL
            begun = place < length or (begun and id(block) == last + length + _HEAD)
            if begun and place + 2 * (length + _HEAD) > _POOL:
                break
            last = id(block)


def draw() -> None:
    """For a process that is still the harness's own: the clock is asked, which counts for no case."""
    turn = random.Random(time.monotonic_ns())  # noqa: S311  not a secret
    order, sizes = list(range(BLOCKS)), list(SIZES)
    turn.shuffle(order)
    turn.shuffle(sizes)
    _drawn.append((turn.randrange(POOLS), order, sizes))


def scatter() -> None:
    """Once, before the first case: whatever runs before uses up what was laid out."""
    while _drawn:
        passed, order, sizes = _drawn.pop()
        _taken.extend([bytes(_LARGEST - _HEAD) for _ in range(_POOL // _LARGEST * passed)])
        for size in sizes:
            for _ in range(BLOCKS):  # what became free since
                _taken.append(bytes(size - _HEAD))
                if id(_taken[-1]) % _POOL < size:
                    break
            blocks: list[bytes | None] = [bytes(size - _HEAD) for _ in order]
            _taken.extend([blocks[number] for number in order[::2]])
            for number in order:
                blocks[number] = None

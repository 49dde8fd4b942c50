#!/usr/bin/env python3
"""Throws bytes at the codec and at both ends of the split, for as long as it is told: `fuzz.py [--seconds N] [--seed N]`.

Frames of a real conversation, and what was found with them, (`corpus.txt`) are mutated and fed to the decoder, to the
oracle's end as if the product had sent them, and to the product's end. After each frame the other end lets go of what
it holds, so what grows is ours. An end may refuse, with its own errors; any other exception, a frame that takes longer
than two seconds, or memory that grows by more than 200 MiB is a finding: the bytes are added to `corpus.txt` and the
exit code is 1. `--record` plays the conversation anew and keeps its frames.
"""

import argparse
import contextlib
import os
import random
import resource
import signal
import socket
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CORPUS = HERE / "corpus.txt"  # a frame a line, in hex
sys.path[:0] = [str(HERE.parent.parent), str(HERE)]

from harness.split import asks, connect, peer, serve  # noqa: E402
from harness.split.codec import CodecError  # noqa: E402
from harness.split.decode import Decoder  # noqa: E402
from harness.split.link import Link, LinkGone  # noqa: E402
from harness.split.space import Space  # noqa: E402

SLOW, HANGS, GROWTH = 2.0, 60.0, 200 << 20  # seconds of processor time, of any time; bytes
TAGS = b"NTF.!iIdcsbvtZ/rxRHhGMXkwyAaePlSBDOCfq"


class Slow(BaseException):
    """One frame took too long."""


class Ended(BaseException):
    """The end under test gave the conversation up."""


class Fed:
    """A link that hears what it is told to."""

    def __init__(self, frames):
        self.frames = list(frames)
        self.space = Space(2)
        self.broken = self.busy = False
        self.changed = []

    def send(self, body):
        if len(body) > 70 << 20:
            raise AssertionError("a frame over the limit was sent")

    def receive(self):
        if not self.frames:
            raise LinkGone("no more")
        self.busy = False
        return self.frames.pop()


def mutated(chance, frames):
    data = bytearray(chance.choice(frames))
    for _ in range(chance.choice((0, 1, 1, 2, 3, 8))):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(8):
            case 0 if data:
                data[at % len(data)] ^= 1 << chance.randrange(8)
            case 1:
                data[at:at] = bytes([chance.choice(TAGS)])
            case 2:
                del data[at : at + chance.randrange(1, 9)]
            case 3:
                other = chance.choice(frames)
                cut = chance.randrange(len(other) + 1)
                data[at:] = other[cut:]
            case 4:
                data[at : at + 4] = chance.choice((0, 1, 7, 255, 1 << 16, (1 << 32) - 1)).to_bytes(4, "little")
            case 5:
                data[at:at] = data[at : at + chance.randrange(1, 40)] * chance.randrange(1, 4)
            case 6:
                data[at:at] = chance.randbytes(chance.randrange(1, 12))
            case 7:
                data = data[:at]
    return bytes(data)


def oracle():
    pairs = [socket.socketpair() for _ in range(4)]

    def gone():
        if threading.current_thread() is not threading.main_thread():
            sys.exit()
        raise Ended

    return connect.Connection([mine.detach() for mine, _ in pairs], lambda kind, what: None, gone), pairs


def product():
    end = serve.Product.__new__(serve.Product)
    pairs = [socket.socketpair() for _ in range(4)]
    serve.Product.__init__(end, [mine.detach() for mine, _ in pairs], lambda: None)

    def over(*_):
        raise Ended

    end.spoiled = end.gone = over
    return end, pairs


def let_go(end):
    """What the other end does once it has no use for anything: so what is still held is ours to explain."""
    exports = end.exports
    for number, (_, times) in list(exports._held.items()):
        exports.release(number, times)
    if exports._held or exports._numbers or exports._blind:
        raise AssertionError("something is held that was let go")


def feed_oracle(end, frames):
    link = Fed(frames)
    end._by_thread = {end._ident(): link}
    end.classes.clear()
    try:
        end.request(asks.CALL, (1, (), ()))
    except (Ended, connect.ProductBroken):
        return
    except BaseException as error:  # noqa: BLE001  what the product raises is raised here, honestly
        if any(held[0] is error for held in end.exports._held.values()):
            return
        if not getattr(error, "__tribunal_product__", False) and not isinstance(
            error, (Warning, RecursionError, peer.CrossError)
        ):
            raise


def feed_decoder(end, frame):
    end._by_thread = {end._ident(): Fed([])}  # no answer is left over from another round
    try:
        Decoder(frame, end, Space(2)).value()
    except (CodecError, Ended, connect.ProductBroken, RecursionError):
        return


def feed_product(end, frames):
    """Reads only: to serve a request is to run whatever the product has."""
    link = Fed(frames[1:])
    link.space = Space(1)
    end._by_thread = {end._ident(): link}
    end.classes.clear()
    try:
        end._read(link, frames[0])
    except (CodecError, Ended, RecursionError, LinkGone):
        return
    except BaseException as error:  # noqa: BLE001
        if type(error).__module__.startswith("harness") or isinstance(error, (AttributeError, TypeError, ValueError)):
            return  # the product's own trouble ends the product, which is its verdict
        raise


def record():
    from conftest import Pair

    frames = set()
    receive = Link.receive

    def kept(self):
        body = receive(self)
        if len(body) < 4000:
            frames.add(body)
        return body

    Link.receive = kept
    pair = Pair()
    import test_objects

    for value in test_objects.PLAIN + test_objects.CONTAINERS:
        pair.product.echo(value)
    for name in (
        "test_methods_properties_and_class_methods", "test_exceptions_cross_with_class_attributes_and_chain",
        "test_generators_are_real_ones", "test_classes_can_be_derived_here", "test_data_classes_are_compared_here",
        "test_enums_are_real_ones", "test_values_of_product_classes_hold_their_value", "test_signatures_and_names",
        "test_copies_and_pickles", "test_callables_of_the_test_are_called_back", "test_context_managers",
    ):  # fmt: skip
        getattr(test_objects, name)(pair.product)
    pair.end()
    CORPUS.write_text("".join(f"{frame.hex()}\n" for frame in sorted(frames)))
    print(f"{len(frames)} frames kept")


def memory():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=20)
    options.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    options.add_argument("--record", action="store_true")
    asked = options.parse_args()
    if asked.record:
        record()
        return 0
    frames = [bytes.fromhex(line) for line in CORPUS.read_text().split()]
    chance = random.Random(asked.seed)
    print(f"seed {asked.seed}, {len(frames)} frames", flush=True)
    out = sys.stdout
    ends = oracle(), product()
    sys.stdout = out
    judge, other = ends[0][0], ends[1][0]

    def slow(*_):
        raise Slow

    def limited(times):
        signal.setitimer(signal.ITIMER_PROF, SLOW * times)
        signal.setitimer(signal.ITIMER_REAL, HANGS * times)

    # Processor time tells what is slow, on a machine that is busy too; what waits for ever uses none.
    signal.signal(signal.SIGPROF, slow)
    signal.signal(signal.SIGALRM, slow)
    until, count, before = time.monotonic() + asked.seconds, 0, 0
    while time.monotonic() < until:
        fed = [mutated(chance, frames) for _ in range(chance.choice((1, 2, 4)))]
        limited(1)
        try:
            match count % 3:
                case 0:
                    feed_oracle(judge, fed)
                    let_go(judge)
                case 1:
                    feed_decoder(judge, fed[0])
                case 2:
                    feed_product(other, fed)
                    let_go(other)
        except BaseException as error:  # noqa: BLE001  that is the finding
            limited(0)
            sys.stdout = out
            with contextlib.suppress(OSError), CORPUS.open("a") as kept:
                kept.writelines(f"{frame.hex()}\n" for frame in fed)
            print(f"after {count} rounds, way {count % 3}: {type(error).__name__}: {error}\n{fed!r:.2000}")
            import traceback

            traceback.print_exc(limit=-12, file=out)
            return 1
        limited(0)
        count += 1
        if count == 20_000:
            before = memory()
    sys.stdout = out
    grown = memory() - before if before else 0
    print(
        f"{count} rounds, {count / asked.seconds:.0f} a second, memory grew by {grown >> 20} MiB after the first 20000"
    )
    return 1 if grown > GROWTH else 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)

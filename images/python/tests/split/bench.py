#!/usr/bin/env python3
"""What a call across the split costs, beside the same call in one process: a JSON line for each kind, microseconds.

`bench.py [--calls N] [--free]`: 25 rounds of each, alternately, and the median of the rounds. Two real processes and
sockets, placed as an attempt with one CPU is: both keep to the same one. `--free` lets the kernel place them, as it does
where the policy gives more than one.
"""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE)]
ROUNDS = 25


def timed(action, calls):
    begun = time.perf_counter()
    for _ in range(calls):
        action()
    return (time.perf_counter() - begun) / calls * 1e6


def kinds(product):
    stack, version, other = product.Money(3), product.Version("1.2"), product.Version("1.2")
    return {
        "call_int": lambda: product.echo(7),
        "call_text": lambda: product.echo("a short text"),
        "call_list": lambda: product.echo([1, 2, 3]),
        "call_keywords": lambda: product.echo(x={"a": 1}),
        "method": lambda: stack.add(2),
        "attribute": lambda: stack.a,
        "equality": lambda: version == other,
        "callback": lambda: product.apply(abs, -3),
    }


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--calls", type=int, default=400)
    options.add_argument("--free", action="store_true")
    asked = options.parse_args()
    calls = asked.calls
    from conftest import Pair

    cpu = None if asked.free else max(os.sched_getaffinity(0))
    pair = Pair(cpu=cpu)
    across = kinds(pair.product)
    import product as plain

    within = kinds(plain)
    for name, action in across.items():
        timed(action, calls // 10)
        rounds = [(timed(action, calls), timed(within[name], calls)) for _ in range(ROUNDS)]
        cost, peer = (statistics.median(each) for each in zip(*rounds, strict=True))
        print(
            json.dumps(
                {
                    "bench": f"split_{name}" + ("_free" if asked.free else ""),
                    "value": round(cost, 1),
                    "unit": "us",
                    "vs": "plain call",
                    "ratio": round(cost / peer, 1),
                }
            ),
            flush=True,
        )
    pair.end()


if __name__ == "__main__":
    main()
    os._exit(0)

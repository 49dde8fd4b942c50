"""An attempt, in its own process: from a fresh fork to one pytest session and out.

First everything is taken away from the process that it must not have, then `booted` is said, and only after that does
code of the repository run. The order (pins, seed, which cases) comes over a pipe, so the zygote never saw it. The
process leaves with a code that PID 1 chose for this attempt and only after the session's own last record. In a split
part this is the oracle's process, and the product is at the other ends of its links; in a shared one it is both.
"""

import os
import random
from typing import NoReturn

from . import boot, environ, session, witness
from .channel import Channel, leave_with
from .confine import confine
from .counts import Meter
from .layout import Layout
from .orders import Policy
from .plugin import Cassettes
from .task import Task


def run(descriptors: list[int], layout: Layout, policy: Policy, prepared: session.Prepared) -> NoReturn:
    order, record, output, word, *links = descriptors
    os.setsid()
    record, output, order, word, *links = boot.arrange(output, (record, output, order, word, *links))
    native = witness.load(layout)
    native.open(order, record)  # takes the key off the pipe: nothing written in Python ever holds it
    told = Task.decode(boot.read_order(order))
    os.close(order)
    if not told.cassettes:  # nobody will wait for PID 1's word
        os.close(word)
    os.chdir(layout.tree)
    meter = Meter(layout.counts, told.uids)
    meter.leave_imports_out()
    confine(told.uid, (layout.oracle_group,), told.product_uid)
    boot.environment(environ.of_attempt(layout, policy, told.attempt, told.hash_seed))
    boot.streams()
    random.seed()  # not the zygote's state; every case is seeded again
    channel = Channel(native.send, output, told.token.hex().encode())
    leave = leave_with(told.exit_code)
    channel.send(kind="booted")
    far = session.FarSide(links, told.secret) if told.product_uid is not None else None
    cassettes = Cassettes(told.cassettes, word)
    last = session.run(
        channel, layout, policy, told.attempt, prepared, far, told.canaries, None if far else native, meter, cassettes
    )
    if last is not None:
        channel.send(kind="end", **last)
        leave()
    leave_with(72)()

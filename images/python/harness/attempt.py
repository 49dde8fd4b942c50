"""An attempt, in its own process: from a fresh fork to one pytest session and out.

First everything is taken away from the process that it must not have; then what needs no order is made ready, and
only once the order came and `booted` is said does code of the repository run. The order (pins, seed, which cases) comes
over a pipe, so the zygote never saw it, and may come long after the fork. The process leaves with a code that PID 1
chose for this attempt and only after the session's own last record. In a split part this is the oracle's process, and
the product is at the other ends of its links; in a shared one it is both.
"""

import os
import random
from typing import NoReturn

from . import boot, environ, placement, session, witness
from .channel import Channel, leave_with
from .confine import confine
from .counts import Meter
from .layout import Layout
from .orders import Policy
from .plugin import Cassettes, Told
from .task import Place, Task


def run(descriptors: list[int], layout: Layout, policy: Policy, prepared: session.Prepared) -> NoReturn:
    order, ready, record, output, word, *links = descriptors
    os.setsid()
    record, output, order, word, *links, ready = boot.arrange(output, (record, output, order, word, *links, ready))
    native = witness.load(layout)
    place = Place.read(order)
    os.chdir(layout.tree)
    meter = Meter(layout.counts, place.uids)
    meter.leave_imports_out()
    confine(place.uid, (layout.oracle_group,), place.product_uid)
    boot.environment(environ.of_waiting(layout, policy))
    boot.streams()
    ear = Ear(order, ready, record, output, word, layout, policy, native)
    split = place.product_uid is not None
    last = session.run(ear.hear, layout, policy, prepared, links if split else None, None if split else native, meter)
    if last is not None:
        ear.channel.send(kind="end", **last)
        ear.leave()
    leave_with(72)()


class Ear:
    """This process's end of what PID 1 says."""

    def __init__(
        self, order: int, ready: int, record: int, output: int, word: int, layout: Layout, policy: Policy,
        native: witness.Native,
    ) -> None:  # fmt: skip
        self._order, self._ready, self._record, self._output, self._word = order, ready, record, output, word
        self._layout, self._policy, self._native = layout, policy, native

    def hear(self) -> Told:
        boot.say_ready(self._ready)
        self._native.open(self._order, self._record)  # takes the key off the pipe: nothing in Python ever holds it
        task = Task.decode(boot.read_order(self._order))
        os.close(self._order)
        if not task.cassettes:  # nobody will wait for PID 1's word
            os.close(self._word)
        placement.here(task.cpu)
        boot.environment(environ.of_attempt(self._layout, self._policy, task.attempt, task.hash_seed))
        random.seed()  # not the zygote's state; every case is seeded again
        self.channel = Channel(self._native.send, self._output, task.token.hex().encode())
        self.leave = leave_with(task.exit_code)
        self.channel.send(kind="booted")
        return Told(task.attempt, self.channel, task.secret, task.canaries, Cassettes(task.cassettes, self._word))

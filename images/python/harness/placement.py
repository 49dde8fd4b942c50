"""Which CPU an attempt's processes run on.

The two processes of a split part take turns: never more than one of them has something to do, but for threads, and to
wake the other one on another core costs more than the call that it is woken for. So where the policy gives an attempt
one CPU both keep to the same one, which no other attempt of the server has. Only a matter of speed: an attempt can let
itself run elsewhere, and then it runs as it would without this.
"""

import contextlib
import os

from .orders import Attempt


def keep(pid: int, order: Attempt) -> None:
    """Called by PID 1 while the process still waits for its orders, as root."""
    if order.split and order.cpu is not None:
        on(pid, order.cpu)


def on(pid: int, number: int) -> None:
    """`number` counts the CPUs that this process may use, around and around."""
    allowed = sorted(os.sched_getaffinity(0))
    with contextlib.suppress(OSError):
        os.sched_setaffinity(pid, {allowed[number % len(allowed)]})

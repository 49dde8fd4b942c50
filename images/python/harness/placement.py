"""Which CPU an attempt's processes run on.

The two processes of a split part take turns: never more than one of them has something to do, but for threads, and to
wake the other one on another core costs more than the call that it is woken for. So where the policy gives an attempt
one CPU both keep to the same one, which no other attempt of the server has. Only a matter of speed: an attempt can let
itself run elsewhere, and then it runs as it would without this.
"""

import contextlib
import os

from .orders import Attempt


def chosen(order: Attempt) -> int | None:
    """For PID 1, which sees the CPUs as they are. An order counts those that it may use, around and around."""
    return None if order.cpu is None or not order.split else of_number(order.cpu)


def of_number(number: int) -> int:
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[number % len(allowed)]


def here(cpu: int | None) -> None:
    """This process, with the threads that it has already."""
    if cpu is None:
        return
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(int(thread), {cpu})

"""A hostile product: `tries(way)` tries to get out by that way and says what came of it.

It says the name of the error, `DONE …`, or a word of its own.

A way is `name` or `name~target`; targets are `first` (PID 1), `roots` (all other processes of root: the zygotes) and
`oracle` (the process that judges, where it is another one).
"""

import os

from . import identity, machine, places, processes, sockets, traces  # noqa: F401
from .ways import tries


def pid():
    return os.getpid()


__all__ = ["pid", "tries"]

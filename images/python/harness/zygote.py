"""A zygote: one warmed interpreter, forked once for each attempt.

Sets up the import path, imports pytest and what the sealed files need of the project's dependencies, then forks on
request. It is root and holds nothing worth stealing: no results, no frames, no pins. The fork is a double one, so
that the attempt becomes a child of PID 1, which alone learns how it ended.
"""

import builtins
import gc
import os
import socket
import sys
import time
import traceback
import types
from typing import TYPE_CHECKING, Any, NoReturn

from . import warm, witness
from .frames import FrameBuffer, Message, encode_json, read_message
from .layout import Layout
from .orders import Policy

if TYPE_CHECKING:
    from .session import Prepared


def serve(control: int) -> int:
    connection = socket.socket(fileno=control)
    connection.set_inheritable(False)
    setup = read_message(control, FrameBuffer())
    if setup is None:
        return 0
    try:
        layout, policy, files = _typed(setup)
        _interpreter(layout, policy)
        prepared = warm.up(layout, policy, files)
        witness.load(layout)
        if policy.shared:
            witness.watch(layout, policy, files)
    except Exception:  # noqa: BLE001  whatever it is, PID 1 must learn it
        connection.sendall(encode_json({"failed": traceback.format_exc(limit=-6)[-4000:]}))
        return 1
    connection.sendall(encode_json({"ready": True}))
    gc.collect()
    gc.freeze()
    while True:
        request, descriptors, _, _ = socket.recv_fds(connection, 1, 3)
        if request != b"f" or len(descriptors) != 3:
            return 0
        pid = _fork(connection, descriptors, layout, policy, prepared)
        for descriptor in descriptors:
            os.close(descriptor)
        connection.sendall(encode_json({"pid": pid}))


def _fork(
    connection: socket.socket, descriptors: list[int], layout: Layout, policy: Policy, prepared: "Prepared"
) -> int:
    known, tell = os.pipe()
    middle = os.fork()
    if middle == 0:
        pid = os.fork()
        if pid != 0:
            os.write(tell, pid.to_bytes(8, "big"))
            os._exit(0)
        for descriptor in (known, tell):
            os.close(descriptor)
        connection.close()
        _attempt(descriptors, layout, policy, prepared)
    os.close(tell)
    pid = int.from_bytes(os.read(known, 8), "big")
    os.close(known)
    os.waitpid(middle, 0)
    return pid


def _attempt(descriptors: list[int], layout: Layout, policy: Policy, prepared: "Prepared") -> NoReturn:
    try:
        from .attempt import run

        run(descriptors, layout, policy, prepared)
    except BaseException:  # noqa: BLE001  nothing may return into the zygote's loop
        os.write(descriptors[2], traceback.format_exc()[-4000:].encode("utf-8", "replace"))
    finally:
        os._exit(71)


def _typed(setup: Message) -> tuple[Layout, Policy, tuple[str, ...]]:
    def value(item: Any) -> Any:
        return tuple(item) if isinstance(item, list) else item

    layout = Layout(**{key: value(item) for key, item in setup["layout"].items()})
    policy = Policy(**{key: value(item) for key, item in setup["policy"].items()})
    return layout, policy, tuple(setup["files"])


def _interpreter(layout: Layout, policy: Policy) -> None:
    """Makes the interpreter look as one that was started for the tests: no trace of the harness's own start."""
    import site

    site.setquit()
    site.setcopyright()
    site.sethelper()
    os.environ["TZ"] = policy.timezone
    time.tzset()
    sys.argv = ["pytest"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    sys.modules["__main__"].__dict__["__builtins__"] = builtins
    sys.path.extend([*layout.import_roots(policy.pythonpath), layout.deps, layout.runner])

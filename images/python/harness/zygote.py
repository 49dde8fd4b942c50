"""A zygote: one warmed interpreter, forked once for each attempt.

Sets up its role's import path and imports ahead: an oracle's pytest and what the sealed files need, a product's the
project's dependencies, and nothing of the runner's. Then it forks on request. It is root and holds nothing worth
stealing: no results, no frames, no pins; a product's has never seen a sealed file either. The fork is a double one,
so that the attempt becomes a child of PID 1, which alone learns how it ended.
"""

import builtins
import contextlib
import gc
import os
import socket
import sys
import time
import traceback
import types
from collections.abc import Callable
from typing import Any, NoReturn

from . import lasting, scatter, warm, witness
from .frames import FrameBuffer, Message, encode_json, read_message
from .layout import LINKS, Layout
from .orders import Policy

Attempt = Callable[[list[int]], NoReturn]
DESCRIPTORS = 5 + LINKS


def serve(control: int) -> int:
    connection = socket.socket(fileno=control)
    connection.set_inheritable(False)
    buffer = FrameBuffer()
    setup = read_message(control, buffer)
    if setup is None:
        return 0
    try:
        layout, policy, files = _typed(setup)
        if setup["role"] == "product":
            attempt: Attempt | None = _product(layout, policy, control, buffer)
            ready: Message = {"ready": True}
        else:
            attempt, modules = _oracle(layout, policy, files)
            ready = {"ready": True, "third_party": modules}
    except Exception:  # noqa: BLE001  whatever it is, PID 1 must learn it
        connection.sendall(encode_json({"failed": traceback.format_exc(limit=-6)[-4000:]}))
        return 1
    if attempt is None:
        return 0
    connection.sendall(encode_json(ready))
    gc.collect()
    scatter.fill()
    lasting.keep()
    gc.freeze()
    while True:
        try:
            request, descriptors, flags, _ = socket.recv_fds(connection, 1, DESCRIPTORS)
        except ConnectionError:
            return 0  # PID 1 left with an answer of ours unread
        if request != b"f" or len(descriptors) < 3 or flags & socket.MSG_CTRUNC:
            return 0
        pid = _fork(connection, descriptors, attempt)
        for descriptor in descriptors:
            os.close(descriptor)
        connection.sendall(encode_json({"pid": pid}))


def _oracle(layout: Layout, policy: Policy, files: tuple[str, ...]) -> tuple[Attempt, list[str]]:
    roots = layout.import_roots(policy.pythonpath)
    _interpreter(policy, [*roots, layout.deps, layout.runner])
    prepared, modules = warm.up(layout, policy, files)
    witness.load(layout)
    if policy.shared:
        witness.watch(layout, policy, files)

    def attempt(descriptors: list[int]) -> NoReturn:
        from .attempt import run

        run(descriptors, layout, policy, prepared)

    return attempt, modules


def _product(layout: Layout, policy: Policy, control: int, buffer: FrameBuffer) -> Attempt | None:
    """None when PID 1 went away before it said what to import."""
    _interpreter(policy, [*layout.import_roots(policy.pythonpath), layout.deps])
    warm.standard(layout, policy)
    told = read_message(control, buffer)
    if told is None:
        return None
    warm.dependencies(layout, policy, [str(name) for name in told["preload"]])

    def attempt(descriptors: list[int]) -> NoReturn:
        from .product import run

        run(descriptors, layout, policy)

    return attempt


def _fork(connection: socket.socket, descriptors: list[int], attempt: Attempt) -> int:
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
        _run(descriptors, attempt)
    os.close(tell)
    pid = int.from_bytes(os.read(known, 8), "big")
    os.close(known)
    os.waitpid(middle, 0)
    return pid


def _run(descriptors: list[int], attempt: Attempt) -> NoReturn:
    try:
        scatter.draw()
        attempt(descriptors)
    except BaseException:  # noqa: BLE001  nothing may return into the zygote's loop
        text = traceback.format_exc()[-4000:].encode("utf-8", "replace")
        with contextlib.suppress(OSError):  # closed, once it has become the standard output
            os.write(descriptors[2], text)
        os.write(2, text)
    finally:
        os._exit(71)


def _typed(setup: Message) -> tuple[Layout, Policy, tuple[str, ...]]:
    def value(item: Any) -> Any:
        return tuple(item) if isinstance(item, list) else item

    layout = Layout(**{key: value(item) for key, item in setup["layout"].items()})
    policy = Policy(**{key: value(item) for key, item in setup["policy"].items()})
    return layout, policy, tuple(setup["files"])


def _interpreter(policy: Policy, path: list[str]) -> None:
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
    sys.path.extend(path)

"""Marks on request: a fork without privileges parses a changed file and its earlier texts, PID 1 only passes on.

A parser that dies of a text, or takes too long, has not read it: the answer says so, and the server counts that as
gained.
"""

import contextlib
import gc
import json
import os
import resource
import signal

from . import marks
from .confine import confine
from .digesting import NOBODY, write
from .frames import Message, plain
from .orders import Marks

SECONDS = 60
MEMORY = 1 << 30
GAINED, TEXT = 50, 200


def answer(order: Marks, texts: list[bytes]) -> Message:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            os.close(reader)
            confine(NOBODY)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            signal.alarm(SECONDS)
            gc.disable()
            write(writer, json.dumps(_found(order, texts)).encode() + b"\n")
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as lines:
        said = lines.read()
    os.waitpid(pid, 0)
    found: Message = {"gained": [], "unread": "the parser died of it"}
    if said.endswith(b"\n"):
        found = json.loads(said)
    return {"type": "marks", "file": order.file, **found}


def _found(order: Marks, texts: list[bytes]) -> Message:
    try:
        gained = marks.gained(texts[0], texts[1:], frozenset(order.forbid))
    except marks.Unreadable as error:
        return {"gained": [], "unread": plain(str(error))[:TEXT] or "unreadable"}
    told = [
        {
            "what": plain(found.what)[:TEXT], "scope": plain(found.scope)[:TEXT], "line": line,
            "kind": "early-return" if found.early else "silence",
        }
        for found, line in gained[:GAINED]
    ]  # fmt: skip
    return {"gained": told, "unread": None}

"""Marks on request: a fork without privileges parses a changed file and its earlier texts, PID 1 only passes on.

A parser that dies of a text, or takes too long, has not read it: the answer says so, and the server counts that as
gained.
"""

from . import marks, nobody
from .frames import Message, plain
from .orders import Marks

SECONDS = 60
MEMORY = 1 << 30
GAINED, TEXT = 50, 200


def answer(order: Marks, texts: list[bytes]) -> Message:
    died: Message = {"gained": [], "unread": "the parser died of it"}
    found = nobody.answer(lambda: _found(order, texts), SECONDS, MEMORY) or died
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

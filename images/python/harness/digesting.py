"""Digests on request: a fork without privileges reads and compiles, PID 1 only passes on what it says.

The compiler is given text that PID 1 must not fall over: a file that kills the fork is an error of that file, and
the rest goes on in another one.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from . import digest, nobody
from .frames import Message, plain

BATCH = 1500  # functions in one frame
SECONDS = 60


def answers(tree: str, files: tuple[str, ...]) -> Iterator[Message]:
    functions: dict[str, Message] = {}
    errors: dict[str, str] = {}
    for file, found in _found(tree, files):
        if isinstance(found, str):
            errors[plain(file)] = plain(found)[:500]
            continue
        for name, value in found.items():
            functions[plain(f"{file}::{name}")] = value
            if len(functions) >= BATCH:
                yield _frame(functions, {}, more=True)
                functions = {}
    yield _frame(functions, errors, more=False)


def _frame(functions: dict[str, Message], errors: dict[str, str], more: bool) -> Message:
    return {"type": "digests", "tag": digest.TAG, "functions": functions, "errors": errors, "more": more}


def _found(tree: str, files: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Message] | str]]:
    rest = list(files)
    while rest:
        done = 0
        for line in _lines(tree, rest):
            yield rest[done], json.loads(line)
            done += 1
        if done < len(rest):
            yield rest[done], "the compiler died of it"
            done += 1
        rest = rest[done:]


def _lines(tree: str, files: list[str]) -> Iterator[bytes]:
    """One JSON line per file; fewer lines than files when the fork died."""

    def work() -> Iterator[dict[str, Message] | str]:
        contents = [_read(tree, file) for file in files]
        return (_digest(content) for content in contents)

    return nobody.lines(work, SECONDS)


def _read(tree: str, file: str) -> bytes | str:
    try:
        return Path(tree, file).read_bytes()
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _digest(content: bytes | str) -> dict[str, Message] | str:
    if isinstance(content, str):
        return content
    try:
        return digest.of_source(content)
    except digest.Uncompilable as error:
        return str(error)

"""What a process does beside its answers, and what follows a call: output, warnings, log records, directory.

The product's end gathers effects and sends them with its next frame; the oracle's end lets them happen there, so that
`capsys`, `caplog` and `pytest.warns` see them. Working directory, environment and arguments follow in both directions.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

from .codec import CodecError
from .reads import Reads

_MOST = 1 << 16
_HIDDEN = ("PYTEST_", "TRIBUNAL_", "LD_", "HYPOTHESIS_")


class State:
    """Directory, environment and arguments as the other end has them; only what changed is sent."""

    def __init__(self, guarded: bool = False, reads: Reads | None = None) -> None:
        """`guarded`: the other end is not trusted, and what steers an interpreter is not taken from it."""
        self._guarded = guarded
        self._reads = reads
        self._chdir, self._getcwd = os.chdir, os.getcwd
        os.chdir = self._watched_chdir
        self.begin()

    def begin(self) -> None:
        """Both ends are alike now."""
        self._directory = self._getcwd()
        self._environment = dict(os.environ)
        self._raw = dict(_bytes_of_environment())
        self._arguments = list(sys.argv)
        self._moved = False

    def _watched_chdir(self, path: Any) -> None:
        self._chdir(path)
        self._moved = True

    def changes(self) -> Any:
        """What to tell the other end, or None."""
        directory = environment = arguments = None
        if self._moved:
            self._moved = False
            with contextlib.suppress(OSError):
                now = self._getcwd()
                if now != self._directory:
                    self._directory = directory = now
        raw = _bytes_of_environment()
        if raw != self._raw:
            self._raw = dict(raw)
            now_is = dict(os.environ)
            environment = {
                key: now_is.get(key)
                for key in now_is.keys() | self._environment.keys()
                if now_is.get(key) != self._environment.get(key) and not key.startswith(_HIDDEN)
            }
            self._environment = now_is
        if sys.argv != self._arguments:
            self._arguments = list(sys.argv)
            arguments = [text for text in self._arguments if type(text) is str]
        if directory is None and not environment and arguments is None:
            return None
        return directory, environment, arguments

    def apply(self, changes: Any) -> None:
        if type(changes) is not tuple or len(changes) != 3:
            raise CodecError("a state has three parts")
        directory, environment, arguments = changes
        if type(directory) is str:
            with contextlib.suppress(OSError, ValueError):
                self._chdir(directory)
                if self._reads is not None and directory != self._directory:
                    self._reads.moved()
                self._directory = directory
        if type(environment) is dict:
            for key, value in environment.items():
                if not (self._guarded and type(key) is str and key.startswith("PYTHON")):
                    self._set(key, value)
            if self._reads is not None:
                self._reads.changed(environment)
            self._environment = dict(os.environ)
            self._raw = dict(_bytes_of_environment())
        if type(arguments) is list and all(type(text) is str for text in arguments):
            if self._reads is not None and arguments != sys.argv:
                self._reads.argued()
            sys.argv[:] = arguments
            self._arguments = list(arguments)

    @staticmethod
    def _set(key: Any, value: Any) -> None:
        if type(key) is not str or key.startswith(_HIDDEN):
            return
        with contextlib.suppress(OSError, ValueError):
            if value is None:
                os.environ.pop(key, None)
            elif type(value) is str:
                os.environ[key] = value


def _bytes_of_environment() -> dict[bytes, bytes]:
    """What `os.environ` holds inside: compared at every call, so without its decoding."""
    data: dict[bytes, bytes] = os.environ._data  # type: ignore[attr-defined]
    return data


class Gathered:
    """The product's side: what it printed, warned and logged since its last frame."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Any, ...]] = []
        self._size = 0

    def install(self) -> None:
        sys.stdout = Stream(self, "out", 1)
        sys.stderr = Stream(self, "err", 2)
        warnings.simplefilter("always")
        warnings.showwarning = self._warned
        handler = Records(self)
        root = logging.getLogger()
        root.addHandler(handler)
        # A level that the tests set is the oracle's to apply: everything is told.
        root.setLevel(logging.WARNING)

    def add(self, *effect: Any) -> None:
        self._waiting.append(effect)

    def written(self, stream: str, fd: int, text: str) -> None:
        self._size += len(text)
        if self._size > 16 * _MOST:
            os.write(fd, text.encode("utf-8", "backslashreplace"))
            return
        if self._waiting and self._waiting[-1][0] == stream and len(self._waiting[-1][1]) < _MOST:
            self._waiting[-1] = (stream, self._waiting[-1][1] + text)
        else:
            self._waiting.append((stream, text))

    def take(self) -> tuple[Any, ...] | None:
        if not self._waiting:
            return None
        waiting, self._waiting, self._size = tuple(self._waiting), [], 0
        return waiting

    def _warned(
        self, message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None
    ) -> None:
        self.add("warn", message, category, str(filename), int(lineno))


class Stream(io.TextIOBase):
    """`sys.stdout` of the product."""

    def __init__(self, gathered: Gathered, name: str, fd: int) -> None:
        self._gathered, self._stream, self._fd = gathered, name, fd
        self.buffer = Bytes(self)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        return "backslashreplace"

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._gathered.written(self._stream, self._fd, str(text))
        return len(text)

    def flush(self) -> None:
        pass

    def fileno(self) -> int:
        return self._fd

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True


class Bytes(io.RawIOBase):
    """`sys.stdout.buffer` of the product."""

    def __init__(self, text: Stream) -> None:
        self._text = text

    def write(self, data: Any) -> int:
        raw = bytes(data)
        self._text.write(raw.decode("utf-8", "backslashreplace"))
        return len(raw)

    def writable(self) -> bool:
        return True


class Records(logging.Handler):
    def __init__(self, gathered: Gathered) -> None:
        super().__init__()
        self._gathered = gathered

    def emit(self, record: logging.LogRecord) -> None:
        trace = None
        if record.exc_info and record.exc_info[1] is not None:
            trace = record.exc_info[1]
        try:
            message = record.getMessage()
        except Exception:  # noqa: BLE001  as logging itself does
            message = str(record.msg)
        self._gathered.add(
            "log",
            record.name,
            record.levelno,
            str(record.msg),
            message,
            record.pathname,
            record.lineno,
            record.funcName,
            trace,
            _extra(record),
        )


_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    """What `extra`, a filter or a factory put on a record beside what every record has."""
    return {key: item for key, item in vars(record).items() if key not in _USUAL}


def happen(effects: Any, foreign: Callable[[str], None]) -> None:
    """The oracle's side: what the product did beside its answer happens here, or is told."""
    if type(effects) is not tuple:
        raise CodecError("effects are a list")
    for effect in effects:
        if type(effect) is not tuple or not effect:
            raise CodecError("an effect has a kind")
        kind, *rest = effect
        if kind in ("out", "err") and len(rest) == 1 and type(rest[0]) is str:
            stream = sys.stdout if kind == "out" else sys.stderr
            with contextlib.suppress(ValueError, OSError, AttributeError):
                stream.write(rest[0])
        elif kind == "warn" and len(rest) == 4:
            _warn(*rest)
        elif kind == "log" and len(rest) == 9:
            _log(*rest)
        elif kind == "foreign" and len(rest) == 1 and type(rest[0]) is str:
            foreign(rest[0])
        else:
            raise CodecError("an effect of no kind")


def _warn(message: Any, category: Any, filename: Any, lineno: Any) -> None:
    if not isinstance(category, type) or not issubclass(category, Warning):
        category = UserWarning
    if not isinstance(message, Warning):
        message = str(message)
    place = str(filename), int(lineno)
    if place[0].startswith(_HARNESS):  # blamed on who called the product: a test, by way of this package
        place = _caller() or place
    warnings.warn_explicit(message, category, *place)


_HARNESS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + "/"


def _caller() -> tuple[str, int] | None:
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_HARNESS):
        frame = frame.f_back
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def _log(
    name: Any, level: Any, template: Any, message: Any, path: Any, line: Any, function: Any, trace: Any, extra: Any
) -> None:
    if type(name) is not str or type(level) is not int:
        raise CodecError("a log record has a name and a level")
    logger = logging.getLogger(name)
    if not logger.isEnabledFor(level):
        return
    info = (type(trace), trace, trace.__traceback__) if isinstance(trace, BaseException) else None
    record = logger.makeRecord(name, level, str(path), int(line or 0), str(message), (), info, str(function))
    for key, item in extra.items() if type(extra) is dict else ():
        if type(key) is str and key not in _USUAL:
            record.__dict__[key] = item
    logger.handle(record)

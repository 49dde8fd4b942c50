"""Interpreter starts: PID 1's hold on the zygotes that attempts are forked from.

Each start is one exec'd interpreter with its own hash seed and address layout. It is told what to warm, and then
asked for forks; it never learns a pin, a result or which attempt it forks for. A start that does not answer raises
`StartFailed`, which is the harness's own trouble.
"""

import contextlib
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from . import environ
from .frames import FrameBuffer, FrameError, Message, encode_json, read_message
from .layout import Layout
from .orders import Policy

READY_SECONDS = 120.0
FORK_SECONDS = 30.0


class StartFailed(RuntimeError):
    """A zygote died, or did not answer in time."""


class Start:
    def __init__(self, hash_seed: int, layout: Layout, policy: Policy, files: Sequence[str]) -> None:
        self.hash_seed = hash_seed
        self._setup = encode_json({"layout": asdict(layout), "policy": asdict(policy), "files": list(files)})
        self._buffer = FrameBuffer()
        self._socket, self.pid = self._spawn()

    def _spawn(self) -> tuple[socket.socket, int]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            package = str(Path(__file__).resolve().parent)
            pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-S", "-s", "-P", "-B", package, "zygote", "3"],
                environ.of_start(self.hash_seed),
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, 2, 1),
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), 3),
                ],
            )
        ours.sendall(self._setup)
        return ours, pid

    def wait_ready(self) -> None:
        self._answer(READY_SECONDS)

    def fork(self, descriptors: Sequence[int]) -> int:
        """The pid of a new attempt that holds these descriptors: order, records, output."""
        try:
            socket.send_fds(self._socket, [b"f"], list(descriptors))
        except OSError as error:
            raise StartFailed(f"start {self.hash_seed} is gone: {error}") from error
        pid = self._answer(FORK_SECONDS).get("pid")
        if not isinstance(pid, int):
            raise StartFailed("a fork has no pid")
        return pid

    def end(self) -> None:
        self._socket.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def renew(self) -> None:
        """A fresh interpreter in the place of one that had to be killed."""
        self.end()
        self._buffer = FrameBuffer()
        self._socket, self.pid = self._spawn()
        self.wait_ready()

    def _answer(self, seconds: float) -> Message:
        ready, _, _ = select.select([self._socket], [], [], seconds)
        try:
            message = read_message(self._socket.fileno(), self._buffer) if ready else None
        except (OSError, FrameError) as error:
            raise StartFailed(str(error)) from error
        if message is None:
            raise StartFailed(f"start {self.hash_seed} did not answer")
        if "failed" in message:
            raise StartFailed(str(message["failed"]))
        return message

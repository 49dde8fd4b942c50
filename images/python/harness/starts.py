"""Interpreter starts: PID 1's hold on the zygotes that attempts are forked from.

Each start is two exec'd interpreters of one hash seed, each with an address layout of its own: the oracle's, with
pytest and the sealed files, and the product's, with the project's dependencies only. They are told what to warm, and
then asked for forks; they never learn a pin, a result or which attempt they fork for. One that does not answer raises
`StartFailed`, which is the harness's own trouble.
"""

import contextlib
import os
import select
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from . import environ
from .frames import FrameBuffer, FrameError, Message, encode_json, read_message
from .layout import Layout
from .orders import Policy

READY_SECONDS = 120.0
FORK_SECONDS = 30.0
ORACLE, PRODUCT = "oracle", "product"


class StartFailed(RuntimeError):
    """A zygote died, or did not answer in time."""


class Zygote:
    """One interpreter to fork from."""

    def __init__(self, hash_seed: int, setup: Message) -> None:
        self._hash_seed, self._setup = hash_seed, encode_json(setup)
        self._name = f"{setup['role']} start {hash_seed}"
        self._buffer = FrameBuffer()
        self._socket, self.pid = self._spawn()

    def _spawn(self) -> tuple[socket.socket, int]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            package = str(Path(__file__).resolve().parent)
            pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-S", "-s", "-P", "-B", package, "zygote", "3"],
                environ.of_start(self._hash_seed),
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, 2, 1),
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), 3),
                ],
            )
        ours.sendall(self._setup)
        return ours, pid

    def ready(self) -> Message:
        return self._answer(READY_SECONDS)

    def tell(self, message: Message) -> None:
        try:
            self._socket.sendall(encode_json(message))
        except OSError as error:
            raise StartFailed(f"{self._name} is gone: {error}") from error

    def fork(self, descriptors: Sequence[int]) -> int:
        """The pid of a new process that holds these descriptors."""
        try:
            socket.send_fds(self._socket, [b"f"], list(descriptors))
        except OSError as error:
            raise StartFailed(f"{self._name} is gone: {error}") from error
        pid = self._answer(FORK_SECONDS).get("pid")
        if not isinstance(pid, int):
            raise StartFailed("a fork has no pid")
        return pid

    def end(self) -> None:
        self._socket.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def _answer(self, seconds: float) -> Message:
        ready, _, _ = select.select([self._socket], [], [], seconds)
        try:
            message = read_message(self._socket.fileno(), self._buffer) if ready else None
        except (OSError, FrameError) as error:
            raise StartFailed(str(error)) from error
        if message is None:
            raise StartFailed(f"{self._name} did not answer")
        if "failed" in message:
            raise StartFailed(str(message["failed"]))
        return message


class Start:
    """The two zygotes of one hash seed; no product's where no file runs split."""

    def __init__(self, hash_seed: int, layout: Layout, policy: Policy, files: Sequence[str]) -> None:
        self.hash_seed = hash_seed
        common: Message = {"layout": asdict(layout), "policy": asdict(policy)}
        self._oracle_setup = {"role": ORACLE, **common, "files": list(files)}
        # Not even the names of the sealed files: what is forked from this one belongs to the candidate.
        self._product_setup = {"role": PRODUCT, **common, "files": []}
        self._split = any(file not in policy.shared for file in files)
        self._oracle: Zygote | None = None
        self._product: Zygote | None = None
        self._ready = False

    @property
    def oracle(self) -> Zygote:
        if self._oracle is None:
            raise StartFailed("a start that was not begun")
        return self._oracle

    @property
    def product(self) -> Zygote | None:
        return self._product

    def begin(self) -> None:
        """The interpreters come up beside what else is done."""
        if self._oracle is None:
            self._oracle = Zygote(self.hash_seed, self._oracle_setup)
            self._product = Zygote(self.hash_seed, self._product_setup) if self._split else None

    def wait_ready(self) -> None:
        if self._ready:
            return
        self.begin()
        modules = self.oracle.ready().get("third_party", [])
        if self.product is not None:
            # It must not read the sealed files to find this out: what was in its memory is in its forks' as well.
            self.product.tell({"preload": modules})
            self.product.ready()
        self._ready = True

    def end(self) -> None:
        for zygote in (self._oracle, self._product):
            if zygote is not None:
                zygote.end()
        self._oracle = self._product = None
        self._ready = False

    def renew(self) -> None:
        """Fresh interpreters in the place of those that had to be killed."""
        if self._oracle is not None:
            self.end()
            self.wait_ready()


class Starts:
    """All starts of a room. The first is up when the room is; the next come up while attempts of those before them run.

    A room whose attempts end early (a red score) never pays for the starts that its held-out attempts would have had.
    """

    def __init__(self, starts: list[Start]) -> None:
        self._all = starts

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Start]:
        return iter(self._all)

    def open(self) -> None:
        for start in self._all[:1]:
            start.begin()

    def take(self, index: int) -> Start:
        """A start that is ready; those that are likely to follow begin."""
        start = self._all[index]
        start.wait_ready()
        for following in self._all[1:2] if index == 0 else self._all:
            following.begin()
        return start

    def wait_all(self) -> None:
        for start in self._all:
            start.begin()
        for start in self._all:
            start.wait_ready()

    def wait_first(self) -> None:
        for start in self._all[:1]:
            start.wait_ready()

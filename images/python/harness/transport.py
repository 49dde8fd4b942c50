"""PID 1's hold on the transport: the program that is the network of a room with cassettes.

Starts it under a user of its own, before any interpreter, and tells it which case runs and what is on record for it.
Only PID 1 has its pipes. An attempt can speak to it as a client can and no other way; what it makes of that is told as
misses. One that is gone is a miss of the case too, for nobody else can have ended it, and the next case has a new one.
"""

import base64
import contextlib
import json
import os
import select
import signal
import time
from collections.abc import Mapping
from typing import Any

from . import confine, trust
from .cassettes import Cassette
from .layout import Layout

ANSWER_SECONDS = 30.0
PART = 512 << 10
GONE = "transport:gone"


class TransportFailed(RuntimeError):
    """It did not start: the harness's own trouble."""


class Transport:
    """The replay of a room's cassettes (`cassettes.Replay`); with `relay`, their recording."""

    def __init__(self, layout: Layout, ports: tuple[int, ...], relay: bool = False) -> None:
        self._layout, self._ports, self.relay = layout, ports, relay
        self._sent: set[str] = set()
        self._lines = Lines(-1)
        self._orders = -1
        self._pid: int | None = None

    def start(self) -> None:
        """Until it holds its ports, and everybody trusts its authority."""
        orders_read, self._orders = os.pipe()
        answers, answers_write = os.pipe()
        program = f"{self._layout.bin}/transport"
        pid = os.fork()
        if pid == 0:
            self._become(program, orders_read, answers_write)
        os.close(orders_read)
        os.close(answers_write)
        self._pid, self._lines, self._sent = pid, Lines(answers), set()
        ready = self._hear("ready")
        if ready is None:
            raise TransportFailed("the transport did not start")
        trust.write(self._layout, str(ready["authority"]))

    def _become(self, program: str, orders: int, answers: int) -> None:
        try:
            os.dup2(orders, 0)
            os.dup2(answers, 1)
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            confine.serve_as(self._layout.transport_user)
            os.execve(program, [program, *map(str, self._ports)], {})  # noqa: S606  no shell, and nothing of a case
        except OSError as error:
            os.write(2, f"transport: {error}\n".encode())
        finally:
            os._exit(127)

    def on(self, cassette: Cassette, bodies: Mapping[str, bytes]) -> None:
        """Requests are answered by this record from here on, by a new process where the last one is gone."""
        for _ in range(2):
            if self._pid is None:
                self.start()
            self._say(cassette, bodies)
            if self._hear("on") is not None:
                return

    def _say(self, cassette: Cassette, bodies: Mapping[str, bytes]) -> None:
        for exchange in cassette.http:
            if exchange.body_sha256 is not None and exchange.body_sha256 in bodies:
                self._body(exchange.body_sha256, bodies[exchange.body_sha256])
        http = [
            {
                "method": exchange.method, "host": exchange.host, "path": exchange.path, "query": exchange.query,
                "request_sha256": exchange.request_sha256, "status": exchange.status,
                "headers": dict(exchange.headers), "body_sha256": exchange.body_sha256,
            }
            for exchange in cassette.http
        ]  # fmt: skip
        self._tell({"cassette": {"node": cassette.node, "http": http}})
        self._tell({"on": {"node": cassette.node, "mode": "relay" if self.relay else "replay"}})

    def off(self) -> tuple[list[str], list[str]]:
        """The pins that were used, and what was asked for and is not on record."""
        self._tell({"off": {}})
        summary = self._hear("off")
        if summary is None:
            return [], [GONE]
        return [str(pin) for pin in summary["used"]], [str(miss) for miss in summary["misses"]]

    def end(self) -> None:
        pid, self._pid = self._pid, None
        if pid is None:
            return
        os.close(self._orders)
        self._lines.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    # While a case is recorded: its requests, and what came back for them.

    def fileno(self) -> int:
        return self._lines.fd

    def asks(self) -> list[dict[str, Any]] | None:
        """What has come of requests; None when nothing can come any more."""
        if self._pid is None:
            return None
        if not self._lines.read():
            return None  # the next order finds out that it is gone
        return [said["ask"] for said in self._lines.whole() if "ask" in said]

    def answer(self, part: dict[str, Any]) -> None:
        self._tell({"answer": part})

    def _body(self, sha256: str, data: bytes) -> None:
        if sha256 in self._sent:
            return
        for begin in range(0, max(len(data), 1), PART):
            part = base64.b64encode(data[begin : begin + PART]).decode()
            self._tell({"body": {"sha256": sha256, "data": part, "more": begin + PART < len(data)}})
        self._sent.add(sha256)

    def _tell(self, order: Mapping[str, Any]) -> None:
        if self._pid is None:
            return
        line = json.dumps(order).encode() + b"\n"
        try:
            while line:
                line = line[os.write(self._orders, line) :]
        except BrokenPipeError:
            self.end()

    def _hear(self, what: str) -> Any:
        """The next answer of this kind; None when it is gone."""
        limit = time.monotonic() + ANSWER_SECONDS
        while self._pid is not None:
            for said in self._lines.whole():
                if what in said:
                    return said[what]
            ready, _, _ = select.select([self._lines.fd], [], [], max(0.0, limit - time.monotonic()))
            if not ready or not self._lines.read():
                self.end()
        return None


class Lines:
    """JSON lines of a pipe."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._data = b""

    def read(self) -> bool:
        data = os.read(self.fd, 1 << 18)
        self._data += data
        return bool(data)

    def whole(self) -> list[dict[str, Any]]:
        *lines, self._data = self._data.split(b"\n")
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        os.close(self.fd)
        self.fd = -1

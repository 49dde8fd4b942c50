"""A task: what PID 1 tells one attempt's process, over a pipe that no zygote reads.

First comes its place, which says who it will be and may come long before the rest: an attempt can be made ready ahead.
"""

import json
import os
import struct
from dataclasses import asdict, dataclass, field
from typing import Any

from .canary import Canary
from .orders import Attempt, Instant, Product

_PLACE = struct.Struct("<II")


@dataclass(frozen=True)
class Place:
    """The users of one part of an attempt."""

    uid: int
    product_uid: int | None = None  # None where one process is both

    @property
    def uids(self) -> tuple[int, ...]:
        return (self.uid,) if self.product_uid is None else (self.uid, self.product_uid)

    @property
    def owner(self) -> int:
        """Whose the files are."""
        return self.uids[-1]

    def of_product(self) -> "Place | None":
        return None if self.product_uid is None else Place(self.product_uid)

    def encode(self) -> bytes:
        return _PLACE.pack(self.uid, self.product_uid or 0)

    @classmethod
    def read(cls, fd: int) -> "Place":
        """The first bytes of a pipe; whoever waits at one whose other end is gone has nothing to do."""
        data = b""
        while len(data) < _PLACE.size:
            more = os.read(fd, _PLACE.size - len(data))
            if not more:
                raise EOFError("no place")
            data += more
        uid, product = _PLACE.unpack(data)
        return cls(uid, product or None)


@dataclass(frozen=True)
class Task:
    """What one attempt is told; PID 1 makes it anew for each."""

    attempt: Attempt
    hash_seed: int
    token: bytes
    key: bytes  # for the marks of records; never told in the order itself, and unknown to the attempt's Python
    secret: bytes  # for what the oracle asks the product in passing
    exit_code: int
    canaries: tuple[Canary, ...] = ()
    cassettes: dict[str, int | None] = field(default_factory=dict)  # the cases that have one, and the seed it names
    cpu: int | None = None  # where both of its processes are to run

    def of_product(self) -> "ProductTask":
        """The little of it that the product's process learns: no case, no mode, no way to speak to PID 1."""
        order = self.attempt
        return ProductTask(self.hash_seed, order.seed, order.source_date_epoch, order.product, self.cpu)

    def encode(self) -> bytes:
        order = {
            "attempt": self.attempt.attempt, "start": self.attempt.start, "seed": self.attempt.seed,
            "clock": [self.attempt.clock.seconds, self.attempt.clock.nanoseconds],
            "source_date_epoch": self.attempt.source_date_epoch, "isolation": self.attempt.isolation,
            "mode": self.attempt.mode, "only": self.attempt.only, "collect_only": self.attempt.collect_only,
            "stop_on_failure": self.attempt.stop_on_failure, "reversed": self.attempt.reversed,
            "product": [self.attempt.product.kind, self.attempt.product.number, self.attempt.product.of],
            "hash_seed": self.hash_seed, "token": self.token.hex(),
            "secret": self.secret.hex(), "exit_code": self.exit_code,
            "canaries": [[canary.place, canary.words] for canary in self.canaries], "cassettes": self.cassettes,
            "cpu": self.cpu,
        }  # fmt: skip
        return self.key + json.dumps(order).encode()

    @classmethod
    def decode(cls, data: bytes) -> "Task":
        item: dict[str, Any] = json.loads(data)
        only = item["only"]
        order = Attempt(
            attempt=item["attempt"], start=item["start"], clock=Instant(*item["clock"]), seed=item["seed"],
            source_date_epoch=item["source_date_epoch"], isolation=item["isolation"], mode=item["mode"],
            product=Product(*item["product"]), only=None if only is None else tuple(only),
            collect_only=item["collect_only"], stop_on_failure=item["stop_on_failure"],
            reversed=item["reversed"],
        )  # fmt: skip
        canaries = tuple(Canary(*each) for each in item["canaries"])
        token, secret = bytes.fromhex(item["token"]), bytes.fromhex(item["secret"])
        return cls(
            order, item["hash_seed"], token, b"", secret, item["exit_code"], canaries,
            item["cassettes"], item["cpu"],
        )  # fmt: skip


@dataclass(frozen=True)
class ProductTask:
    """What the product's process of a split part is told."""

    hash_seed: int
    seed: int
    source_date_epoch: int
    product: Product
    cpu: int | None

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, data: bytes) -> "ProductTask":
        item: dict[str, Any] = json.loads(data)
        return cls(**item | {"product": Product(**item["product"])})

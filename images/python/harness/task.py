"""A task: what PID 1 tells one attempt's process, over a pipe that no zygote reads."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from .canary import Canary
from .orders import Attempt, Instant, Product


@dataclass(frozen=True)
class Task:
    """What one attempt is told; PID 1 makes it anew for each."""

    attempt: Attempt
    uid: int
    product_uid: int | None  # None where one process is both
    hash_seed: int
    token: bytes
    key: bytes  # for the marks of records; never told in the order itself, and unknown to the attempt's Python
    secret: bytes  # for what the oracle asks the product in passing
    exit_code: int
    canaries: tuple[Canary, ...] = ()
    cassettes: dict[str, int | None] = field(default_factory=dict)  # the cases that have one, and the seed it names

    @property
    def uids(self) -> tuple[int, ...]:
        return (self.uid,) if self.product_uid is None else (self.uid, self.product_uid)

    def of_product(self) -> "ProductTask | None":
        """The little of it that the product's process learns: no case, no mode, no way to speak to PID 1."""
        if self.product_uid is None:
            return None
        order = self.attempt
        return ProductTask(self.product_uid, self.hash_seed, order.seed, order.source_date_epoch, order.product)

    def encode(self) -> bytes:
        order = {
            "attempt": self.attempt.attempt, "start": self.attempt.start, "seed": self.attempt.seed,
            "clock": [self.attempt.clock.seconds, self.attempt.clock.nanoseconds],
            "source_date_epoch": self.attempt.source_date_epoch, "isolation": self.attempt.isolation,
            "mode": self.attempt.mode, "only": self.attempt.only, "collect_only": self.attempt.collect_only,
            "stop_on_failure": self.attempt.stop_on_failure, "reversed": self.attempt.reversed,
            "product": [self.attempt.product.kind, self.attempt.product.number, self.attempt.product.of],
            "uid": self.uid, "product_uid": self.product_uid, "hash_seed": self.hash_seed, "token": self.token.hex(),
            "secret": self.secret.hex(), "exit_code": self.exit_code,
            "canaries": [[canary.place, canary.words] for canary in self.canaries], "cassettes": self.cassettes,
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
            order, item["uid"], item["product_uid"], item["hash_seed"], token, b"", secret, item["exit_code"], canaries,
            item["cassettes"],
        )  # fmt: skip


@dataclass(frozen=True)
class ProductTask:
    """What the product's process of a split part is told."""

    uid: int
    hash_seed: int
    seed: int
    source_date_epoch: int
    product: Product

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, data: bytes) -> "ProductTask":
        item: dict[str, Any] = json.loads(data)
        return cls(**item | {"product": Product(**item["product"])})

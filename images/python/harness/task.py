"""A task: what PID 1 tells one attempt, over a pipe that no zygote reads."""

import json
from dataclasses import dataclass
from typing import Any

from .canary import Canary
from .orders import Attempt, Instant, Product


@dataclass(frozen=True)
class Task:
    """What one attempt is told; PID 1 makes it anew for each."""

    attempt: Attempt
    uid: int
    hash_seed: int
    token: bytes
    key: bytes  # for the marks of records; never told in the order itself, and unknown to the attempt's Python
    exit_code: int
    canaries: tuple[Canary, ...] = ()

    def encode(self) -> bytes:
        order = {
            "attempt": self.attempt.attempt, "start": self.attempt.start, "seed": self.attempt.seed,
            "clock": [self.attempt.clock.seconds, self.attempt.clock.nanoseconds],
            "source_date_epoch": self.attempt.source_date_epoch, "isolation": self.attempt.isolation,
            "mode": self.attempt.mode, "only": self.attempt.only, "collect_only": self.attempt.collect_only,
            "stop_on_failure": self.attempt.stop_on_failure,
            "product": [self.attempt.product.kind, self.attempt.product.number, self.attempt.product.of],
            "uid": self.uid, "hash_seed": self.hash_seed, "token": self.token.hex(), "exit_code": self.exit_code,
            "canaries": [[canary.place, canary.words] for canary in self.canaries],
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
        )  # fmt: skip
        canaries = tuple(Canary(*each) for each in item["canaries"])
        return cls(order, item["uid"], item["hash_seed"], bytes.fromhex(item["token"]), b"", item["exit_code"], canaries)

"""Orders: JSON from the server to typed values.

Every field is checked before anything is done, because PID 1 runs as root. An order of the wrong shape raises
`BadOrder`, which PID 1 answers with `trouble bad-order`.
"""

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

SEED_MAX = 4_294_967_295
SECRET = 16
TEXT_MAX = 16 << 20
AHEAD_MAX = 64  # parts of attempts that wait for their orders
ISOLATIONS = ("split", "shared")
REVERSED = ("cases", "listings")
MODES = ("silenced", "unsilenced", "must-fail", "merge")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class BadOrder(ValueError):
    """The server's order does not have the agreed shape."""


@dataclass(frozen=True)
class Instant:
    """A wall-clock time as the pin page holds it."""

    seconds: int
    nanoseconds: int

    @classmethod
    def parse(cls, text: str) -> "Instant":
        try:
            moment = datetime.datetime.fromisoformat(text)
        except ValueError as error:
            raise BadOrder(f"{text!r} is not an RFC 3339 time") from error
        if moment.tzinfo is None:
            raise BadOrder(f"{text!r} has no offset")
        past = moment - _EPOCH
        return cls(past.days * 86_400 + past.seconds, past.microseconds * 1000)


@dataclass(frozen=True)
class Policy:
    """The part of the repository's policy that the harness obeys."""

    src_roots: tuple[str, ...]
    sealed_roots: tuple[str, ...]
    pythonpath: tuple[str, ...]
    own_names: tuple[str, ...] | None  # top-level modules of base's src; None: any name that src has is its own
    shared: tuple[str, ...]  # sealed files that run in one process with the product
    timezone: str
    seed_env: tuple[str, ...]
    attempt_timeout_ms: int
    case_timeout_ms: int
    output_bytes: int
    preload: str
    cpus: int

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "Policy":
        return cls(
            src_roots=tuple(repo_path(item) for item in _texts(data, "src_roots")),
            sealed_roots=tuple(repo_path(item) for item in _texts(data, "sealed_roots", optional=True)),
            pythonpath=tuple(item if item == "." else repo_path(item) for item in _texts(data, "pythonpath")),
            own_names=_texts(data, "own_names") if data.get("own_names") is not None else None,
            shared=tuple(repo_path(item) for item in _texts(data, "shared", optional=True)),
            timezone=_text(data, "timezone"),
            seed_env=_texts(data, "seed_env"),
            attempt_timeout_ms=_whole(data, "attempt_timeout_ms", 1),
            case_timeout_ms=_whole(data, "case_timeout_ms", 1),
            output_bytes=_whole(data, "output_bytes", 1),
            preload=_text(data, "preload"),
            cpus=max(1, round(_number(data, "cpus"))),
        )


@dataclass(frozen=True)
class Network:
    """What a room with cassettes has instead of a network."""

    ports: tuple[int, ...]  # beside those of HTTP
    relay: bool  # requests go out to the server, to be recorded

    @classmethod
    def parse(cls, data: object) -> "Network":
        ports = data.get("ports") if isinstance(data, dict) else None
        if not isinstance(data, dict) or not isinstance(ports, list) or len(ports) > 100:
            raise BadOrder("transport is not an object with ports")
        return cls(tuple(_whole({"port": port}, "port", 1, 65_535) for port in ports), _truth(data, "relay"))


@dataclass(frozen=True)
class Configure:
    """What holds for every attempt of one container."""

    policy: Policy
    files: tuple[str, ...]
    hash_seeds: tuple[int, ...]
    uid_base: int
    uid_count: int
    clock: Instant | None
    seed: int | None
    network: Network | None

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "Configure":
        policy = data.get("policy")
        starts = data.get("starts")
        if not isinstance(policy, dict) or not isinstance(starts, list) or not starts:
            raise BadOrder("configure needs a policy and at least one start")
        seeds = tuple(_whole(start, "hash_seed", 0, SEED_MAX) for start in starts if isinstance(start, dict))
        if len(seeds) != len(starts):
            raise BadOrder("a start is not an object")
        files = tuple(repo_path(item) for item in _texts(data, "files"))
        typed = Policy.parse(policy)
        if not set(typed.shared) <= set(files):
            raise BadOrder("shared names a file that is not among the files")
        return cls(
            policy=typed,
            files=files,
            hash_seeds=seeds,
            uid_base=_whole(data, "uid_base", 1000),
            uid_count=_whole(data, "uid_count", 2, 65_536),
            clock=Instant.parse(_text(data, "clock")) if data.get("clock") is not None else None,
            seed=_whole(data, "seed", 0, SEED_MAX) if data.get("seed") is not None else None,
            network=Network.parse(data["transport"]) if data.get("transport") is not None else None,
        )


@dataclass(frozen=True)
class Product:
    """What the importer of src makes of the src it loads: `head` as it is, `null`, or mutant `number` of `of`."""

    kind: str = "head"
    number: int = 0
    of: int = 0

    @classmethod
    def parse(cls, value: object) -> "Product":
        if value in ("head", "null"):
            return cls(str(value))
        if isinstance(value, dict) and set(value) == {"mutant", "of"}:
            of = _whole(value, "of", 1, 10_000)
            return cls("mutant", _whole(value, "mutant", 0, of - 1), of)
        raise BadOrder(f"product {str(value)[:80]!r}")


@dataclass(frozen=True)
class Plant:
    """Asks which changes could be planted."""

    seed: int
    of: int

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "Plant":
        return cls(_whole(data, "seed", 0, SEED_MAX), _whole(data, "of", 0, 1000))


@dataclass(frozen=True)
class Marks:
    """Asks what a changed file gained; its texts follow as raw frames, the present one first."""

    file: str
    forbid: tuple[str, ...]
    sizes: tuple[int, ...]

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "Marks":
        sizes = data.get("sizes")
        if not isinstance(sizes, list) or not sizes:
            raise BadOrder("marks without texts")
        return cls(
            repo_path(_text(data, "file")),
            _texts(data, "forbid"),
            tuple(_whole({"size": size}, "size", 0, TEXT_MAX) for size in sizes),
        )


def files_of_part(policy: Policy, files: Iterable[str], split: bool) -> list[str]:
    """Those of the configured files that one kind of part runs."""
    return [file for file in files if (file in policy.shared) != split]


@dataclass(frozen=True)
class Attempt:
    """One part of an attempt to make, with its pins."""

    attempt: int
    start: int
    isolation: str  # which of the files: `split` ones or `shared` ones
    clock: Instant
    seed: int
    source_date_epoch: int
    mode: str
    product: Product
    only: tuple[str, ...] | None
    collect_only: bool
    stop_on_failure: bool
    cpu: int | None = None  # which of the CPUs the two processes of a split part share; the kernel places them else
    reversed: str | None = None  # what comes the other way round: the cases, or directory listings
    questions: bytes | None = None  # the secret of what the oracle asks the product in passing; None draws one

    @property
    def unsilenced(self) -> bool:
        return self.mode == "unsilenced"

    @property
    def marks_off(self) -> bool:
        """Skip and xfail marks are taken off; in `merge` mode a skip that the code itself raises stays one."""
        return self.mode in ("unsilenced", "merge")

    @property
    def merge(self) -> bool:
        return self.mode == "merge"

    @property
    def must_fail(self) -> bool:
        return self.mode == "must-fail"

    @property
    def split(self) -> bool:
        return self.isolation == "split"

    @classmethod
    def parse(cls, data: Mapping[str, Any], starts: int) -> "Attempt":
        only = data.get("only")
        if data.get("mode") == "must-fail" and data.get("isolation") == "split":
            raise BadOrder("must-fail is for shared parts")
        return cls(
            attempt=_whole(data, "attempt", 0),
            start=_whole(data, "start", 0, starts - 1),
            isolation=_choice(data, "isolation", ISOLATIONS),
            clock=Instant.parse(_text(data, "clock")),
            seed=_whole(data, "seed", 0, SEED_MAX),
            source_date_epoch=_whole(data, "source_date_epoch", 0),
            mode=_choice(data, "mode", MODES),
            product=Product.parse(data.get("product", "head")),
            only=None if only is None else _texts(data, "only"),
            collect_only=_truth(data, "collect_only"),
            stop_on_failure=_truth(data, "stop_on_failure"),
            cpu=_whole(data, "cpu", 0, 65_535) if data.get("cpu") is not None else None,
            reversed=None if data.get("reversed") is None else _choice(data, "reversed", REVERSED),
            questions=None if data.get("questions") is None else _secret(data, "questions"),
        )


def repo_path(text: str) -> str:
    """A repository path: relative, normal, inside."""
    parts = text.removesuffix("/").split("/")
    if "\0" in text or any(part in ("", ".", "..") for part in parts):
        raise BadOrder(f"{text!r} is not a repository path")
    return text


def seed(data: Mapping[str, Any], key: str) -> int:
    return _whole(data, key, 0, SEED_MAX)


def src_size(data: Mapping[str, Any]) -> int:
    return _whole(data, "size", 0)


def parts_ahead(data: Mapping[str, Any], starts: int) -> tuple[int, ...]:
    """The starts of split parts that will probably come."""
    ahead = data.get("ahead", [])
    if not isinstance(ahead, list) or len(ahead) > AHEAD_MAX:
        raise BadOrder(f"ahead is not a list of at most {AHEAD_MAX}")
    return tuple(_whole({"ahead": item}, "ahead", 0, starts - 1) for item in ahead)


def digest_files(data: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(repo_path(item) for item in _texts(data, "files"))


def _whole(data: Mapping[str, Any], key: str, low: int, high: int = 2**62) -> int:
    value = data.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise BadOrder(f"{key} is not a whole number of {low} to {high}")
    return value


def _number(data: Mapping[str, Any], key: str) -> float:
    value = data.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 4096:
        raise BadOrder(f"{key} is not a number")
    return value


def _choice(data: Mapping[str, Any], key: str, choices: tuple[str, ...]) -> str:
    value = _text(data, key)
    if value not in choices:
        raise BadOrder(f"{key} {value[:40]!r} is none of {choices}")
    return value


def _truth(data: Mapping[str, Any], key: str) -> bool:
    value = data.get(key, False)
    if not isinstance(value, bool):
        raise BadOrder(f"{key} is not a truth value")
    return value


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    if not isinstance(value, str) or "\0" in value:
        raise BadOrder(f"{key} is not a text")
    return value


def _secret(data: Mapping[str, Any], key: str) -> bytes:
    text = _text(data, key)
    try:
        found = bytes.fromhex(text)
    except ValueError:
        found = b""
    if len(found) != SECRET:
        raise BadOrder(f"{key} is not {SECRET} bytes in hex")
    return found


def _texts(data: Mapping[str, Any], key: str, optional: bool = False) -> tuple[str, ...]:
    value = data.get(key, [] if optional else None)
    if not isinstance(value, list) or not all(isinstance(item, str) and "\0" not in item for item in value):
        raise BadOrder(f"{key} is not a list of texts")
    return tuple(value)

"""A scoring container driven by hand: a tree in, frames out. Stands where the server's sandbox room stands."""

import contextlib
import dataclasses
import io
import json
import os
import struct
import subprocess
import tarfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

IMAGE = os.environ.get("TRIBUNAL_RUNNER_IMAGE", "tribunal/python:3.13")
HARNESS = Path(__file__).resolve().parent.parent.parent / "harness"
NAME = "tribunal-harness-tests"
LABEL = f"{NAME}={uuid.uuid4().hex}"  # of this session: another one may run beside it
CAPABILITIES = ("SETUID", "SETGID", "SETPCAP", "KILL", "CHOWN", "DAC_OVERRIDE", "FOWNER")
POLICY: dict[str, Any] = {
    "src_roots": ["src/"],
    "pythonpath": [".", "src"],
    "timezone": "UTC",
    "seed_env": ["TRIBUNAL_SEED"],
    "attempt_timeout_ms": 60_000,
    "case_timeout_ms": 20_000,
    "output_bytes": 1 << 20,
    "tmp_exec": False,
    "preload": "auto",
    "forbid_marks": [],
    "cpus": 1,
    "memory_bytes": 1 << 29,
}
ORACLE_GROUP = 990
CLOCK = "2026-09-12T00:00:00Z"
SEED = 20260912


class Trouble(AssertionError):
    """PID 1 said that it failed itself."""


@dataclasses.dataclass
class Attempt:
    """The frames of one attempt."""

    collected: dict[str, list[dict[str, Any]]]
    cases: dict[str, list[dict[str, Any]]]
    end: dict[str, Any]
    frames: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)

    @property
    def nodes(self) -> list[str]:
        return [case["node"] for case in self.collected["cases"]]

    def phase(self, node: str, when: str) -> dict[str, Any]:
        return next(phase for phase in self.cases[node] if phase["when"] == when)

    def outcome(self, node: str) -> str:
        """One word for a case, the way the judge would read its phases."""
        phases = self.cases[node]
        failed = [phase for phase in phases if phase["outcome"] == "failed"]
        if failed:
            return "failed" if failed[0]["when"] == "call" else f"failed in {failed[0]['when']}"
        for phase in phases:
            if phase["outcome"] == "skipped":
                return "skipped" if phase["xfail"] is None else "xfailed"
            if phase["xpassed"]:
                return "xpassed"
        return "passed"

    def failures(self) -> str:
        """What a test's message should show."""
        told = [
            f"{node} {phase['when']}: {(phase['exception'] or {}).get('traceback', '')}{phase['output']}"
            for node, phases in self.cases.items()
            for phase in phases
            if phase["outcome"] == "failed"
        ]
        return "\n".join([*told, str(self.collected["errors"]), str(self.end)])

    def outcomes(self) -> dict[str, str]:
        return {node: self.outcome(node) for node in self.cases}


class Room:
    """One container, from `ready` to `bye`."""

    def __init__(
        self,
        tree: Path,
        policy: Mapping[str, Any] | None = None,
        memory: str = "512m",
        pids: int = 256,
        options: Sequence[str] = (),
    ) -> None:
        self.policy = POLICY | dict(policy or {})
        self.name = f"{NAME}-{uuid.uuid4().hex[:12]}"
        self._tree = tree
        command = [
            "docker",
            "run",
            "-i",
            "--rm",
            "--name",
            self.name,
            "--label",
            LABEL,
            "--read-only",
            "--network",
            "none",
        ]
        command += ["--cap-drop", "ALL", *(word for name in CAPABILITIES for word in ("--cap-add", name))]
        command += ["--security-opt", "no-new-privileges", "--ipc", "private", "--pids-limit", str(pids), "--cpus", "1"]
        command += ["--memory", memory, "--memory-swap", memory]
        command += ["--volume", f"{tree}:/tree:ro", "--volume", f"{HARNESS}:/opt/tribunal/harness:ro"]
        command += ["--tmpfs", "/tmp:mode=1777,noexec,nosuid,nodev,size=128m", "--tmpfs", "/srcfiles:mode=0755"]
        command += ["--tmpfs", "/home/attempt:mode=0700,noexec", "--tmpfs", "/run/tribunal:mode=0711"]
        for root in self.policy["src_roots"]:
            if root.endswith("/"):
                command += ["--tmpfs", f"/tree/{root[:-1]}:mode=0755,noexec,nosuid,nodev"]
        command += [
            *options,
            "--entrypoint",
            "/usr/bin/python3",
            IMAGE,
            "-I",
            "-S",
            "-B",
            "/opt/tribunal/harness",
            "supervise",
        ]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ready = self.receive()

    def __enter__(self) -> "Room":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        if not self._process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self.send({"type": "bye"})
                self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            subprocess.run(["docker", "kill", self.name], check=False, capture_output=True)
            self._process.wait(20)
        self._process.stdout.close()

    def hang_up(self) -> int:
        """The server goes away; gives PID 1's exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait(20)

    def send(self, message: Mapping[str, Any]) -> None:
        self.send_raw(b"J", json.dumps(message).encode())

    def send_raw(self, kind: bytes, body: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(struct.pack(">I", len(body) + 1) + kind + body)
        self._process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        head = self._process.stdout.read(4)
        if len(head) < 4:
            raise Trouble("the container ended")
        (length,) = struct.unpack(">I", head)
        assert length <= 1 << 20
        body = self._process.stdout.read(length)
        assert body[:1] == b"J"
        message: dict[str, Any] = json.loads(body[1:])
        return message

    def until(self, *kinds: str) -> Iterator[dict[str, Any]]:
        """Frames up to and including the first of one of these types."""
        while True:
            message = self.receive()
            if message["type"] == "trouble" and "trouble" not in kinds:
                raise Trouble(message["message"])
            yield message
            if message["type"] in kinds:
                return

    def configure(
        self,
        src: bytes | None = None,
        files: list[str] | None = None,
        warm: bool = False,
        ahead: Sequence[int] = (),
        **more: Any,
    ) -> dict[str, Any]:
        tar = tar_of(self._tree, self.policy["src_roots"]) if src is None else src
        sealed = sorted(str(path.relative_to(self._tree)) for path in self._tree.rglob("test_*.py"))
        files = sealed if files is None else files
        self.send(
            {
                "type": "configure", "policy": {"shared": files, **self.policy}, "files": files,
                "starts": [{"hash_seed": 0}, {"hash_seed": 7}], "uid_base": 70_000, "uid_count": 16,
                "clock": CLOCK, "seed": SEED, **more,
            }
        )  # fmt: skip
        if warm:
            self.send({"type": "warm", "ahead": list(ahead)})
            list(self.until("warmed", "trouble"))
        self.send({"type": "src", "size": len(tar)})
        for at in range(0, len(tar), 500_000):
            self.send_raw(b"T", tar[at : at + 500_000])
        self.send({"type": "src-end"})
        return list(self.until("configured", "trouble"))[-1]

    def order(self, number: int = 0, **more: Any) -> None:
        self.send(
            {
                "type": "attempt", "attempt": number, "start": number % 2, "clock": CLOCK, "seed": SEED,
                "source_date_epoch": 1_700_000_000, "mode": "silenced", "isolation": "split" if self.policy.get("shared") == [] else "shared", "only": None,
                "collect_only": False, **more,
            }
        )  # fmt: skip

    def attempt(self, number: int = 0, **more: Any) -> Attempt:
        self.order(number, **more)
        collected: dict[str, list[dict[str, Any]]] = {"cases": [], "errors": [], "skips": []}
        cases: dict[str, list[dict[str, Any]]] = {}
        frames: dict[str, dict[str, Any]] = {}
        for frame in self.until("attempt-end"):
            assert frame["attempt"] == number
            if frame["type"] == "collected":
                for key, items in collected.items():
                    items += frame[key]
            elif frame["type"] == "case":
                assert frame["node"] not in cases
                cases[frame["node"]], frames[frame["node"]] = frame["phases"], frame
        return Attempt(collected, cases, frame, frames)

    def digests(self, files: list[str]) -> dict[str, Any]:
        self.send({"type": "digests", "files": files})
        functions: dict[str, Any] = {}
        errors: dict[str, str] = {}
        while True:
            frame = list(self.until("digests"))[-1]
            functions |= frame["functions"]
            errors |= frame["errors"]
            if not frame["more"]:
                return {"tag": frame["tag"], "functions": functions, "errors": errors}


def tar_of(tree: Path, roots: list[str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for root in roots:
            path = tree / root
            for file in sorted(path.rglob("*")) if root.endswith("/") else [path.resolve()]:
                name = str(file.relative_to(tree)) if root.endswith("/") else root
                if file.is_file() or file.is_symlink():
                    archive.add(file, arcname=name, recursive=False)
    return out.getvalue()


def lay(tree: Path, files: Mapping[str, str]) -> Path:
    """Files into a tree that has an empty place for src; the sealed tests are the oracle's alone."""
    for name, text in {"src/.keep": "", **files}.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for path in [tree, *tree.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    sealed = tree / "tests/sealed"
    for path in [sealed, *sealed.rglob("*")] if sealed.exists() else []:
        os.chown(path, 0, ORACLE_GROUP)
        path.chmod(0o750 if path.is_dir() else 0o640)
    return tree

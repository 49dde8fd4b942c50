#!/usr/bin/env python3
"""One attempt of a tree's tests on this machine, split or shared: two processes of one user, no container, no pins.

`split_local.py [options] TREE FILE...` runs the test files of a tree (paths inside it) through the harness's own session,
prints one line for each case that is not passed, with its traceback, and a count last. It is for finding out why a suite
behaves otherwise when it is split; nothing here keeps anybody out of anything.

    split_local.py --src src/ ~/humanize tests/test_time.py
    split_local.py --src toolz/ --src tlz/ --sealed toolz/tests/ --only test_curry -v ~/toolz toolz/tests/test_functoolz.py

Needs Python 3.11 or newer and the runner's packages (`--runner`, as the runner image has them in /opt/tribunal/runner).
"""

import argparse
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

HERE = Path(__file__).resolve().parent
HARNESS = next(path for path in (HERE.parent / "harness", Path("/opt/tribunal/harness")) if path.is_dir())
LINKS = 8
SEED = 20260912


@dataclass
class Seen:
    """What the records of one attempt said."""

    cases: list[dict[str, Any]] = field(default_factory=list)
    errors: list[dict[str, Any]] = field(default_factory=list)
    skips: list[dict[str, Any]] = field(default_factory=list)
    phases: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    tamper: list[tuple[str | None, str, str]] = field(default_factory=list)
    running: str | None = None
    end: str = "exited"

    def hear(self, record: dict[str, Any]) -> None:
        kind = record["kind"]
        if kind == "collected":
            self.cases += record["cases"]
            self.errors += record["errors"]
            self.skips += record["skips"]
        elif kind == "begin":
            self.running = self._node(record["case"])
            self.phases[self.running] = []
        elif kind == "phase":
            self.phases[self._node(record["case"])].append(record)
        elif kind == "tamper":
            self.tamper.append((self.running, record["tamper"], record["what"]))
        elif kind == "end":
            self.end, self.running = "finished", None

    def _node(self, number: int) -> str:
        return str(self.cases[number]["node"])

    def outcomes(self) -> dict[str, str]:
        found = {case["node"]: "missing" for case in self.cases}
        found |= {node: outcome(phases) for node, phases in self.phases.items()}
        if self.running is not None:
            found[self.running] = "unfinished"
        return found

    def reason(self, node: str) -> str:
        """The first line of why a case is not passed."""
        for phase in self.phases.get(node, ()):
            told = phase.get("exception")
            if told is not None:
                return f"{told['type']}: {told['message']}".split("\n", 1)[0][:300]
            if phase.get("skip_reason") is not None:
                return f"Skipped: {phase['skip_reason']}"
        return self.end if self.running == node else "no record"


def outcome(phases: list[dict[str, Any]]) -> str:
    """One word for a case, the way the judge would read its phases."""
    if any(phase["outcome"] == "failed" for phase in phases):
        return "failed"
    for phase in phases:
        if phase["outcome"] == "skipped":
            return "skipped" if phase.get("xfail") is None else "xfailed"
        if phase.get("xpassed"):
            return "xpassed"
    return "passed" if phases else "unfinished"


class Records:
    """Stands where the harness's channel stands."""

    def __init__(self, fd: int) -> None:
        self._fd, self._marks, self._owner = fd, 0, os.getpid()

    def send(self, **record: object) -> None:
        if os.getpid() != self._owner:
            os._exit(70)
        data = json.dumps(record, default=repr).encode() + b"\n"
        while data:
            data = data[os.write(self._fd, data) :]

    def send_at_border(self, record: dict[str, Any]) -> None:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                continue
        self._marks += 1
        self.send(**record, mark=self._marks)


def options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="one attempt of a tree's tests, split or shared, without a container")
    parser.add_argument("tree", type=Path)
    parser.add_argument("files", nargs="+", help="test files, as paths in the tree")
    parser.add_argument("--src", action="append", help="a src root of the policy (default src/)")
    parser.add_argument("--sealed", action="append", default=[], help="a sealed root that lies inside a src root")
    parser.add_argument("--pythonpath", action="append", help="as in the policy (default . and src)")
    parser.add_argument("--how", choices=("split", "shared"), default="split")
    parser.add_argument("--only", action="append", help="only node ids that hold this text")
    parser.add_argument("--runner", default="/opt/tribunal/runner")
    parser.add_argument("--deps", default="/opt/tribunal/deps")
    parser.add_argument("--json", type=Path, help="write outcomes and reasons there; `-` for the last line of stdout")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds without a record")
    parser.add_argument("-v", "--verbose", action="store_true", help="every case, as it begins")
    parser.add_argument("-q", "--quiet", action="store_true", help="no tracebacks, nothing of what the tests print")
    return parser.parse_args(words)


def load_harness() -> None:
    import importlib.util

    spec = importlib.util.spec_from_file_location(
        "tribunal_harness", HARNESS / "__init__.py", submodule_search_locations=[str(HARNESS)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["tribunal_harness"] = module
    spec.loader.exec_module(module)


def settle(chosen: argparse.Namespace, scratch: str) -> tuple[Any, Any, Any]:
    """The layout, the policy and the order of this attempt."""
    from tribunal_harness.layout import Layout
    from tribunal_harness.orders import Attempt, Policy

    tree = str(chosen.tree.resolve())
    layout = Layout(
        tree=tree, srcfiles=f"{scratch}/srcfiles", home=f"{scratch}/home", state=f"{scratch}/state",
        runner=chosen.runner, deps=chosen.deps, scratch=(f"{scratch}/tmp",),
    )  # fmt: skip
    for folder in (layout.srcfiles, layout.home, layout.state, *layout.scratch):
        os.mkdir(folder)
    policy = Policy.parse(
        {
            "src_roots": chosen.src or ["src/"], "sealed_roots": chosen.sealed,
            "shared": chosen.files if chosen.how == "shared" else [],
            "pythonpath": chosen.pythonpath or [".", "src"], "timezone": "UTC", "seed_env": ["TRIBUNAL_SEED"],
            "attempt_timeout_ms": 600_000, "case_timeout_ms": 60_000, "output_bytes": 1 << 24, "preload": "auto",
            "cpus": 1,
        }
    )  # fmt: skip
    order = {
        "attempt": 0, "start": 0, "clock": "2026-09-12T00:00:00Z", "seed": SEED, "source_date_epoch": 1_700_000_000,
        "mode": "silenced", "only": None, "collect_only": False, "isolation": chosen.how,
    }  # fmt: skip
    return layout, policy, Attempt.parse(order, 1)


def environment(layout: Any, policy: Any, order: Any) -> None:
    from tribunal_harness import environ

    values = environ.of_attempt(layout, policy, order, 0)
    os.environ.clear()
    os.environ.update(values)
    time.tzset()
    os.chdir(layout.tree)


def product(links: list[int], layout: Any, policy: Any, order: Any) -> NoReturn:
    """The other process: the standard library, src and the dependencies, nothing of the runner."""
    from tribunal_harness.split.serve import serve

    sys.argv = [""]
    sys.path += [*layout.import_roots(policy.pythonpath), layout.deps]
    sys.modules["__main__"] = types.ModuleType("__main__")
    environment(layout, policy, order)
    serve(links)


def oracle(
    links: list[int] | None, records: int, layout: Any, policy: Any, order: Any, files: tuple[str, ...], only: Any
) -> None:
    """pytest's process. Without links the product is imported into it."""
    from tribunal_harness import warm

    sys.argv = ["pytest"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    sys.path += [*layout.import_roots(policy.pythonpath), layout.deps, layout.runner]
    prepared, _ = warm.up(layout, policy, files)
    from tribunal_harness import session

    environment(layout, policy, order)
    channel: Any = Records(records)
    if only is not None:
        session.Plugin._selected = lambda self, node: any(text in node for text in only)  # type: ignore[method-assign]
    if session.run(lambda: session.Told(order, channel), layout, policy, prepared, links) is not None:
        channel.send(kind="end")


def forked(run: Any, quiet: bool) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        if quiet:
            null = os.open(os.devnull, os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(null, fd)
        run()
        code = 0
    except BaseException:
        import traceback

        os.write(2, traceback.format_exc().encode())
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


def attempt(chosen: argparse.Namespace, scratch: str) -> Seen:
    load_harness()
    layout, policy, order = settle(chosen, scratch)
    pairs = [socket.socketpair() for _ in range(LINKS)] if chosen.how == "split" else []
    ours, theirs = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    heard, told = os.pipe()
    children = []

    def as_product() -> NoReturn:
        for link in ours:
            link.close()
        os.close(told)
        os.close(heard)
        product([link.detach() for link in theirs], layout, policy, order)

    def as_oracle() -> None:
        for link in theirs:
            link.close()
        os.close(heard)
        links = [link.detach() for link in ours] if pairs else None
        oracle(links, told, layout, policy, order, tuple(chosen.files), chosen.only)

    if pairs:
        children.append(forked(as_product, chosen.quiet))
    children.append(forked(as_oracle, chosen.quiet))
    for link in (*ours, *theirs):
        link.close()
    os.close(told)
    return listen(chosen, heard, children)


def listen(chosen: argparse.Namespace, heard: int, children: list[int]) -> Seen:
    """Reads records until the oracle is done, the product is gone, or nothing is heard any more."""
    import select

    seen = Seen()
    rest = b""
    quiet_since = time.monotonic()
    watched = {os.pidfd_open(pid): pid for pid in children}
    ended: dict[int, int] = {}
    while len(ended) < len(children):
        ready, _, _ = select.select([heard, *watched], [], [], 1.0)
        if heard in ready and (data := os.read(heard, 1 << 16)):
            quiet_since = time.monotonic()
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                record = json.loads(line)
                seen.hear(record)
                tell(chosen, seen, record)
            continue
        for fd in [fd for fd in ready if fd in watched]:
            pid = watched.pop(fd)
            os.close(fd)
            ended[pid] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            if seen.end == "exited":
                who = "the product" if len(children) > 1 and pid == children[0] else "the oracle"
                code = ended[pid]
                seen.end = f"{who} {f'was killed by {signal.Signals(-code).name}' if code < 0 else f'left with {code}'}"
                stop(watched.values())
            elif pid == children[-1]:
                stop(watched.values())
        if time.monotonic() - quiet_since > chosen.timeout:
            seen.end = "timeout"
            stop(watched.values())
            quiet_since = time.monotonic()
    return seen


def stop(pids: Any) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def tell(chosen: argparse.Namespace, seen: Seen, record: dict[str, Any]) -> None:
    if record["kind"] == "begin" and chosen.verbose:
        print(f"      {seen.running}", flush=True)
    elif record["kind"] == "tamper":
        print(f"TAMPER {seen.running} {record['tamper']}: {record['what']}", flush=True)
    elif record["kind"] == "phase" and record["outcome"] != "passed":
        print(f"{record['outcome'].upper()} {seen.running} in {record['when']}, by {record['by']}", flush=True)
        if not chosen.quiet and record["outcome"] == "failed":
            print(record["exception"]["traceback"].rstrip(), "\n", flush=True)
    elif record["kind"] == "collected":
        for error in record["errors"]:
            print(f"ERROR {error['file']}\n{error['exception']['traceback'].rstrip()}\n", flush=True)


def main(words: list[str]) -> int:
    if not (sys.flags.safe_path and sys.flags.no_site):
        me = str(Path(__file__).resolve())
        os.execve(
            sys.executable, [sys.executable, "-s", "-S", "-P", "-B", me, *words], os.environ | {"PYTHONHASHSEED": "0"}
        )
    chosen = options(words)
    scratch = tempfile.mkdtemp(prefix="split-local-")
    try:
        seen = attempt(chosen, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    outcomes = seen.outcomes()
    if chosen.only is not None:
        outcomes = {node: word for node, word in outcomes.items() if any(text in node for text in chosen.only)}
    words_seen = sorted(set(outcomes.values()))
    counts = ", ".join(f"{sum(1 for each in outcomes.values() if each == word)} {word}" for word in words_seen)
    print(f"{chosen.how}: {counts or 'no case'}; {len(seen.errors)} errors of collection; {seen.end}"
          + (f" in {seen.running}" if seen.running else ""))  # fmt: skip
    if chosen.json is not None:
        told = {
            "outcomes": outcomes, "reasons": {node: seen.reason(node) for node in outcomes if outcomes[node] != "passed"},
            "errors": {error["file"]: seen_line(error) for error in seen.errors}, "end": seen.end, "tamper": seen.tamper,
            "skips": seen.skips,
        }  # fmt: skip
        if str(chosen.json) == "-":
            print(json.dumps(told))
        else:
            chosen.json.write_text(json.dumps(told, indent=1))
    good = seen.end == "finished" and not seen.errors and not seen.tamper
    return 0 if good and set(outcomes.values()) <= {"passed", "skipped", "xfailed"} else 1


def seen_line(error: dict[str, Any]) -> str:
    told = error["exception"]
    return f"{told['type']}: {told['message']}".split("\n", 1)[0][:300]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

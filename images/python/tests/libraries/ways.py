"""One suite, one way, in the runner image: every case's outcome.

`plain` is pytest itself; `shared` and `split` are attempts of the harness in a scoring container, by its frames; `local` is
split_local.py, split without a container's uids and pins. All have the same image, tree, user's rights and limits.
"""

import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "container"))

import room  # noqa: E402
from sources import CACHE, Library, dependencies  # noqa: E402

UID = "70000:70000"
SECONDS = 900
LINE = "\x1eTRIBUNAL-PLAIN "  # plain.py begins its one line with it
CASE_SECONDS = 240
MUTANT_CASE_SECONDS = 20
MEMORY = "1g"
PACKAGES = {"deps": "/opt/tribunal/deps", "runner": "/opt/tribunal/runner", "tools": "/libraries"}
NAMES = 900_000  # bytes of names in one order, which is one frame
# Every attempt is asked by the same draw, so that two of them can be compared; as in a score's first, a test's own
# question comes first.
QUESTIONS = "00" + "6c" * 15


@dataclass
class Ran:
    """What one way made of a suite."""

    outcomes: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)  # files that could not be collected
    end: str = "finished"
    tamper: list[str] = field(default_factory=list)
    running: str = ""  # the case that it ended in

    def passed(self) -> set[str]:
        return {node for node, word in self.outcomes.items() if word == "passed"}

    def of(self, files: Sequence[str]) -> "Ran":
        """What these files have of it."""
        kept = {node: word for node, word in self.outcomes.items() if node.split("::", 1)[0] in files}
        return replace(self, outcomes=kept)

    def why(self, node: str) -> str:
        """The first line of why a case has not passed."""
        if node in self.reasons:
            return self.reasons[node]
        file = node.split("::", 1)[0]
        if file in self.errors:
            return f"not collected: {self.errors[file]}"
        return self.outcomes.get(node) or (f"not run: {self.end}" if self.end != "finished" else "not collected")

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1))

    @classmethod
    def read(cls, path: Path) -> "Ran":
        return cls(**json.loads(path.read_text()))


def plain(library: Library, tree: Path, files: Sequence[str]) -> Ran:
    roots = [f"/tree/{entry}".rstrip("/.") or "/tree" for entry in library.pythonpath]
    path = ":".join([*roots, *(f"/packages/{name}/site-packages" for name in PACKAGES)])
    output = contained(
        library, tree,
        ["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "plain", "-o", "addopts=", "-o", "strict_config=false",
         "--rootdir=/tree", "--basetemp=/tmp/pytest", "--continue-on-collection-errors", "--tb=line", "--capture=no", *files],
        {"PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    line = next((line for line in output.split("\n") if line.startswith(LINE)), None)
    if line is None:
        return Ran(end=f"no result: {output.strip()[-300:]!r}")
    told = json.loads(line.removeprefix(LINE))
    outcomes = {named(node): told["outcomes"].get(node, "missing") for node in told["nodes"]}
    return Ran(outcomes, {named(node): reason for node, reason in told["reasons"].items()}, told["errors"])


def named(node: str) -> str:
    """As the harness cuts an id that is too long to carry."""
    if len(node) <= 4000:
        return node
    return f"{node[:3960]}...{hashlib.sha256(node.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def local(library: Library, tree: Path, files: Sequence[str], how: str = "split") -> Ran:
    words = [word for root in library.src for word in ("--src", root)]
    words += [word for root in library.sealed for word in ("--sealed", root)]
    words += [word for root in library.pythonpath for word in ("--pythonpath", root)]
    output = contained(
        library, tree,
        ["-s", "-S", "-P", "-B", "/tests/split_local.py", "--how", how, "-q", "--json", "-", *words, "/tree", *files],
        {"PYTHONHASHSEED": "0"},
    )  # fmt: skip
    line = output.rstrip("\n").rsplit("\n", 1)[-1]
    try:
        told = json.loads(line)
    except ValueError:
        return Ran(end=f"no result: {output.strip()[-300:]!r}")
    tamper = [f"{node}: {kind}: {what}" for node, kind, what in told["tamper"]]
    return Ran(told["outcomes"], told["reasons"], told["errors"], told["end"], tamper)


def contained(library: Library, tree: Path, command: Sequence[str], environment: dict[str, str]) -> str:
    """A container like a scoring one, with the whole tree read-only and an ordinary user."""
    words = ["docker", "run", "--rm", "--read-only", "--network", "none", "--cap-drop", "ALL", "--user", UID]
    words += ["--security-opt", "no-new-privileges", "--cpus", "1", "--memory", MEMORY, "--label", room.LABEL]
    words += ["--tmpfs", "/tmp:mode=1777,nosuid,nodev,size=256m", "--tmpfs", "/home/attempt:mode=1777"]
    words += ["--volume", f"{tree}:/tree:ro", "--volume", f"{dependencies(library)}:/opt/tribunal/deps:ro"]
    words += ["--volume", f"{TESTS / 'libraries'}:/libraries:ro", "--volume", f"{TESTS}:/tests:ro"]
    words += ["--volume", f"{packages()}:/packages:ro"]
    words += ["--volume", f"{room.HARNESS}:/harness:ro", "--workdir", "/tree"]
    environment = {
        "HOME": "/home/attempt", "TZ": "UTC", "COLUMNS": "80", "LINES": "24", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8",
        "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "SOURCE_DATE_EPOCH": "1700000000", "TMPDIR": "/tmp",
        "PATH": "/usr/local/bin:/usr/bin:/bin", **environment,
    }  # fmt: skip
    words += [word for name, value in environment.items() for word in ("--env", f"{name}={value}")]
    words += ["--entrypoint", "/usr/bin/python3", room.IMAGE, *command]
    try:
        done = subprocess.run(words, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return "time-out"
    return done.stdout.decode("utf-8", "replace") + done.stderr.decode("utf-8", "replace")


def packages() -> Path:
    """Where plain pytest finds what is not the project's: Hypothesis tells it from the project by this folder's name."""
    place = CACHE / "packages"
    for name, target in PACKAGES.items():
        link = place / name / "site-packages"
        if not link.is_symlink():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)
    return place


def scored(
    library: Library, tree: Path, files: Sequence[str], parts: dict[str, Sequence[str]], only: list[str] | None = None,
    case_seconds: int = CASE_SECONDS,
) -> Ran:  # fmt: skip
    """Attempts in a scoring container: each part of the files under its isolation."""
    policy = {
        "src_roots": list(library.src), "sealed_roots": list(library.sealed), "pythonpath": list(library.pythonpath),
        "shared": sorted(parts.get("shared", ())), "attempt_timeout_ms": SECONDS * 1000,
        "case_timeout_ms": case_seconds * 1000,
        "output_bytes": 1 << 23, "memory_bytes": 1 << 30,
    }  # fmt: skip
    staged = stage(library, tree)
    deps = ["--volume", f"{dependencies(library)}:/opt/tribunal/deps:ro"]
    ran = Ran()
    with room.Room(staged, policy, memory=MEMORY, options=deps) as opened:
        chosen_files = list(files) if only is None else [file for part in parts.values() for file in part]
        answer = opened.configure(src=tar(library, tree), files=chosen_files)
        if answer["type"] != "configured":
            return Ran(end=f"{answer['type']}: {answer.get('message', '')}"[:300])
        for number, (isolation, chosen) in enumerate(parts.items()):
            if chosen:
                gather(
                    ran, opened.attempt(number, start=0, isolation=isolation, only=only, questions=QUESTIONS), chosen
                )
    return ran


def resumed(library: Library, tree: Path, files: Sequence[str]) -> Ran:
    """Everything split. A case that ends its attempt is lost alone: the rest of its file is run anew, then all others."""
    ran = scored(library, tree, files, {"split": files})
    if ran.end != "finished" and not ran.outcomes and len(files) > 1:
        return apart(library, tree, files)
    whole, nodes = Ran(errors=ran.errors), list(ran.outcomes)
    left = nodes
    while True:
        reached = [node for node in left if ran.outcomes.get(node, "missing") != "missing"]
        whole.outcomes |= {node: ran.outcomes[node] for node in reached}
        whole.reasons |= ran.reasons
        whole.tamper += ran.tamper
        if ran.end != "finished":
            if ran.running not in left or ran.end.startswith("trouble"):
                whole.end = ran.end
                break
            whole.outcomes.setdefault(ran.running, "unfinished")
            whole.reasons.setdefault(ran.running, f"it ended its attempt: {ran.end}")
            left = left[left.index(ran.running) + 1 :]
        elif reached:
            left = left[left.index(reached[-1]) + 1 :]
        else:
            break
        if not left:
            break
        named = {node.split("::", 1)[0] for node in left}
        begun = {node.split("::", 1)[0] for node in nodes[: len(nodes) - len(left)]} & named
        only = fitting([node for node in left if node.split("::", 1)[0] in begun]) if begun else None
        chosen = [file for file in files if file in (begun or named)]
        ran = scored(library, tree, chosen, {"split": chosen}, only)
    whole.outcomes = {node: whole.outcomes.get(node, "missing") for node in nodes}
    return whole


def apart(library: Library, tree: Path, files: Sequence[str]) -> Ran:
    """Each file in a room of its own: one of them ends its attempt while it is imported."""
    whole = Ran()
    for file in files:
        ran = resumed(library, tree, [file])
        whole.outcomes |= ran.outcomes
        whole.reasons |= ran.reasons
        whole.errors |= ran.errors if ran.outcomes or ran.end == "finished" else {file: ran.end}
        whole.tamper += ran.tamper
    return whole


def fitting(nodes: Sequence[str]) -> list[str]:
    """As many of them as go into one order."""
    room_left, out = NAMES, []
    for node in nodes:
        room_left -= len(json.dumps(node)) + 2
        if room_left < 0:
            break
        out.append(node)
    return out


def without_base(library: Library, tree: Path, ran: Ran) -> None:
    """What is told of these very sources once more, asked the same questions, is no tampering of a patch: as the judge
    leaves out what base does under the same draw."""
    if not ran.tamper:
        return
    files = library.tests()
    told = [file for file in files if any(line.startswith(f"{file}::") for line in ran.tamper)]
    outside = any("::" not in line for line in ran.tamper)
    again = resumed(library, tree, files if outside else told)
    ran.tamper = [line for line in ran.tamper if line not in set(again.tamper)]


def gather(ran: Ran, attempt: room.Attempt, files: Sequence[str]) -> None:
    wanted = set(files)
    for case in attempt.collected["cases"]:
        if case["file"] in wanted:
            node = case["node"]
            ran.outcomes[node] = attempt.outcome(node).partition(" ")[0] if node in attempt.cases else "missing"
            for phase in attempt.cases.get(node, ()):
                told = phase["exception"]
                if told is not None and phase["outcome"] == "failed":
                    ran.reasons.setdefault(node, f"{told['type']}: {told['message']}".split("\n", 1)[0][:300])
                ran.tamper += [f"{node}: {each['kind']}: {each['what']}" for each in phase.get("tamper", ())]
    for error in attempt.collected["errors"]:
        told = error["exception"]
        ran.errors[error["file"]] = f"{told['type']}: {told['message']}".split("\n", 1)[0][:300]
    ran.tamper += [f"{each['kind']}: {each['what']}" for each in attempt.end.get("tamper", ())]
    if attempt.end["end"] != "finished":
        ran.running = str(attempt.end["running"])
        ran.end = f"{attempt.end['end']} in {ran.running}"


def stage(library: Library, tree: Path) -> Path:
    """The tree as the sealed volume has it: a src root that is one file is a symlink."""
    single = [root for root in library.src if not root.endswith("/")]
    if not single:
        return tree
    staged = tree.with_name(f"{tree.name}.staged")
    shutil.rmtree(staged, ignore_errors=True)
    shutil.copytree(tree, staged, symlinks=True)
    for root in single:
        (staged / root).unlink()
        (staged / root).symlink_to(f"/srcfiles/{root}")
    return staged


def tar(library: Library, tree: Path) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for root in library.src:
            for file in sorted((tree / root).rglob("*")) if root.endswith("/") else [tree / root]:
                if file.is_file() or file.is_symlink():
                    archive.add(file, arcname=str(file.relative_to(tree)), recursive=False)
    return out.getvalue()


def run(library: Library, tree: Path, files: Sequence[str], way: str) -> Ran:
    """`plain`, `shared`, `split`, `modes` (split, but for the files of the library's shared list), `local`, `local-shared`."""
    everything: dict[str, Any] = {
        "shared": {"shared": files},
        "modes": {
            "split": [file for file in files if file not in library.shared],
            "shared": [file for file in files if file in library.shared],
        },
    }
    try:
        if way == "plain":
            return plain(library, tree, files)
        if way in ("local", "local-shared"):
            return local(library, tree, files, "split" if way == "local" else "shared")
        if way == "split":
            ran = resumed(library, tree, files)
            without_base(library, tree, ran)
            return ran
        return scored(library, tree, files, everything[way])
    except room.Trouble as trouble:
        return Ran(end=f"trouble: {trouble}"[:300])


def once(library: Library, tree: Path, files: Sequence[str], way: str) -> Ran:
    """A mutant: one attempt, and where a case ends it nobody looks further."""
    if way != "split":
        return run(library, tree, files, way)
    try:
        return scored(library, tree, files, {"split": files}, None, MUTANT_CASE_SECONDS)
    except room.Trouble as trouble:
        return Ran(end=f"trouble: {trouble}"[:300])

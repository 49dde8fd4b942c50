"""Source distributions from PyPI, by pip, pinned by version and hash, laid out as repository trees."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[3] / "target" / "libraries"
PIP = (sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--require-hashes")


@dataclass(frozen=True)
class Library:
    """A row of table.toml."""

    name: str
    version: str
    sha256: str
    src: tuple[str, ...]
    sealed: tuple[str, ...]
    pythonpath: tuple[str, ...] = (".", "src")
    deps: tuple[str, ...] = ()
    without: tuple[str, ...] = ()  # prefixes of test files that its own configuration leaves out of a usual run
    heavy: tuple[str, ...] = ()  # test files that are too long to run under each planted mistake
    shared: dict[str, str] = field(default_factory=dict)  # files that a proxy cannot do, and what it is in them

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}"

    def tree(self) -> Path:
        return CACHE / "trees" / f"{self.name}-{self.version}"

    def tests(self) -> list[str]:
        """The test files, in the manifest's order."""
        tree = self.tree()
        found: set[str] = set()
        for root in self.sealed:
            for pattern in ("test_*.py", "*_test.py"):
                found.update(str(path.relative_to(tree)) for path in (tree / root).rglob(pattern))
        return sorted((name for name in found if not name.startswith(self.without)), key=os.fsencode)

    def modules(self) -> list[str]:
        """The product's source files."""
        tree = self.tree()
        files = []
        for root in self.src:
            files += sorted((tree / root).rglob("*.py")) if root.endswith("/") else [tree / root]
        names = [str(path.relative_to(tree)) for path in files]
        return [name for name in names if not any(name.startswith(sealed) for sealed in self.sealed)]


def table() -> list[Library]:
    rows = tomllib.loads((HERE / "table.toml").read_text())["library"]
    return [Library(**{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()})
            for row in rows]  # fmt: skip


def fetch(library: Library) -> Path:
    """Its tree, unpacked once; the test files and the product are as they were released."""
    tree = library.tree()
    with locked():
        if not tree.is_dir():
            archive = downloaded(library)
            work = tree.with_name(f"{tree.name}.new")
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            subprocess.run(["tar", "--no-same-owner", "--strip-components=1", "-xf", archive, "-C", work], check=True)
            for path in [work, *work.rglob("*")]:
                if not path.is_symlink():
                    path.chmod(0o755 if path.is_dir() else 0o644)
            work.rename(tree)
    return tree


def downloaded(library: Library) -> Path:
    folder = CACHE / "sdists" / f"{library.name}-{library.version}"
    if not folder.is_dir():
        folder.mkdir(parents=True)
        wanted = folder.parent / f"{library.name}.txt"
        wanted.write_text(f"{library.name}=={library.version} --hash=sha256:{library.sha256}\n")
        # Only the library as source: what its build needs to tell pip its name may come as wheels.
        subprocess.run([*PIP, "--no-binary", library.name, "-r", wanted, "-d", folder], check=True)
    (archive,) = folder.iterdir()
    seen = hashlib.sha256(archive.read_bytes()).hexdigest()
    if seen != library.sha256:
        raise SystemExit(f"{archive.name} has the digest {seen}")
    return archive


def dependencies(library: Library) -> Path:
    """A folder as the image's deps: what this library's suite imports, and nothing else."""
    folder = CACHE / "deps" / library.name
    with locked():
        wheels = all_wheels()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in library.deps:
            found = [wheel for wheel in wheels if wheel.name.lower().startswith(f"{re.sub('[-.]', '_', name)}-")]
            if len(found) != 1:
                raise SystemExit(f"{library.name}: no wheel of {name} in requirements.txt")
            with zipfile.ZipFile(found[0]) as archive:
                archive.extractall(folder)
    return folder


def all_wheels() -> list[Path]:
    requirements = HERE / "requirements.txt"
    folder = CACHE / f"wheels-{hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]}"
    if not folder.is_dir():
        work = folder.with_name(f"{folder.name}.new")
        shutil.rmtree(work, ignore_errors=True)
        target = ("--only-binary=:all:", "--python-version", "3.13", "--implementation", "cp")
        subprocess.run([*PIP, *target, "-r", requirements, "-d", work], check=True)
        work.rename(folder)
    return sorted(folder.glob("*.whl"))


class locked:  # noqa: N801
    """One download or unpacking at a time on this machine."""

    def __enter__(self) -> None:
        CACHE.mkdir(parents=True, exist_ok=True)
        self._file = (CACHE / "lock").open("w")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self._file.close()

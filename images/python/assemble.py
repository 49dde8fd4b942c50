"""Makes everything under /opt/tribunal out of wheels and harness files, and one layer tar out of that.

Runs with the image's own Python, in a container of the bare base image that has no network:
`python3 -s -S -B assemble.py install` puts things in place and prints a report, `... pack FILE` writes
the layer. Never executes or imports what it installs, but for the runner's own `packaging`, which tells
whether a dependency is missing. The same inputs give the same bytes: files are compiled by one process
in sorted order (so run it with PYTHONHASHSEED=0) to caches that are never checked against a time, and
the tar is sorted and holds no time, user or mode of this machine.
"""

import compileall
import json
import os
import platform
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath
from py_compile import PycInvalidationMode

TRIBUNAL = Path("/opt/tribunal")
WHEELS = Path("/tmp/assemble")  # noqa: S108  (a container of our own, used once)
ROOMS = ("runner", "deps")
# Bundles of certificate authorities: to what packages brought, PID 1 can add the room's own.
TRUST = {
    "etc/ssl/certs/ca-certificates.crt": "ca-certificates.crt",
    "opt/tribunal/deps/certifi/cacert.pem": "certifi.pem",
}
# Mount points and links that the sandbox expects (PROTOCOL.md, "Layout in the container").
FOLDERS = ("tree", "srcfiles", "home/attempt", "run/tribunal")
SITE = f"usr/local/lib/python{sys.version_info.major}.{sys.version_info.minor}/dist-packages"
LINKS = {
    "etc/passwd": "/run/tribunal/etc/passwd",
    "etc/group": "/run/tribunal/etc/group",
    f"{SITE}/project.pth": "/run/tribunal/etc/project.pth",
    # OpenSSL looks an authority up by a hash of its subject, which is the same in every room.
    "etc/ssl/certs/2ab45a33.0": "/run/tribunal/etc/authority.crt",
}
PRELOAD = "etc/ld.so.preload"
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))


class Refused(Exception):
    """A wheel that will not be installed, and why."""


def main(arguments: list[str]) -> int:
    match arguments:
        case ["install"]:
            return install()
        case ["pack", target]:
            pack(Path(target))
            return 0
        case _:
            print("usage: assemble.py install | pack FILE", file=sys.stderr)
            return 64


def install() -> int:
    problems: list[str] = []
    for room in ROOMS:
        (TRIBUNAL / room).mkdir(parents=True, exist_ok=True)
        for wheel in sorted((WHEELS / room).glob("*.whl")):
            try:
                unpack(wheel, TRIBUNAL / room)
            except (Refused, zipfile.BadZipFile, OSError) as error:
                problems.append(f"{wheel.name}: {error}")
    for room in ROOMS:
        problems += missing_dependencies(TRIBUNAL / room)
    if problems:
        print(json.dumps({"problems": problems}))
        return 1
    keep_trust()
    compile_all()
    packages = {room: [list(package) for package in distributions(TRIBUNAL / room)] for room in ROOMS}
    print(json.dumps({"packages": packages, "python": platform.python_version()}))
    return 0


def keep_trust() -> None:
    """The bundles go where PID 1 finds them; what stays in their places is a link."""
    (TRIBUNAL / "trust").mkdir(exist_ok=True)
    for name, kept in TRUST.items():
        place = Path("/", name)
        if place.is_file() and not place.is_symlink():
            shutil.copyfile(place, TRIBUNAL / "trust" / kept)
            place.unlink()
            place.symlink_to(f"/run/tribunal/etc/{kept}")


def unpack(wheel: Path, target: Path) -> None:
    """A wheel's importable part. Scripts, headers and data files have no place in the image."""
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            path = destination(member.filename)
            if member.is_dir() or path is None:
                continue
            # Two wheels may hold the same path (a namespace's __init__.py): the later name wins, as in pip.
            place = target / path
            place.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as source, place.open("wb") as copy:
                shutil.copyfileobj(source, copy)


def destination(name: str) -> PurePosixPath | None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise Refused(f"the path {name!r} leaves the package folder")
    if path.suffix == ".pth" and len(path.parts) == 1:
        return None  # nothing makes these folders site folders, and a .pth is code that runs at every start
    if not path.parts or not path.parts[0].endswith(".data"):
        return path
    if len(path.parts) > 2 and path.parts[1] in ("purelib", "platlib"):
        return PurePosixPath(*path.parts[2:])
    return None


def metadata(room: Path) -> list[dict[str, list[str]]]:
    """The header fields of every distribution in a folder."""
    found = []
    for folder in sorted(room.glob("*.dist-info")):
        fields: dict[str, list[str]] = {}
        for line in (folder / "METADATA").read_text("utf-8", "replace").splitlines():
            if not line:
                break
            name, separator, value = line.partition(": ")
            if separator and not name.startswith((" ", "\t")):
                fields.setdefault(name.lower(), []).append(value)
        found.append(fields)
    return found


def distributions(room: Path) -> list[tuple[str, str]]:
    return sorted((fields["name"][0], fields["version"][0]) for fields in metadata(room))


def missing_dependencies(room: Path) -> list[str]:
    """What a package of this folder requires and the folder does not hold, judged for this interpreter."""
    sys.path.insert(0, str(TRIBUNAL / "runner"))
    try:
        from packaging.requirements import InvalidRequirement, Requirement
        from packaging.utils import canonicalize_name
    except ImportError as error:
        return [f"the runner's packages lack packaging: {error}"]
    finally:
        sys.path.pop(0)
    versions = {canonicalize_name(name): version for name, version in distributions(room)}
    problems = []
    for fields in metadata(room):
        for text in fields.get("requires-dist", []):
            try:
                needed = Requirement(text)
            except InvalidRequirement:
                continue
            if needed.marker is not None and not needed.marker.evaluate({"extra": ""}):
                continue
            version = versions.get(canonicalize_name(needed.name))
            if version is None:
                problems.append(f"{fields['name'][0]} requires {needed}, which is not in the requirements file")
            elif not needed.specifier.contains(version, prereleases=True):
                problems.append(f"{fields['name'][0]} requires {needed}, and the requirements file has {version}")
    return problems


def compile_all() -> None:
    """A file that does not compile (a template, another Python's syntax) is simply not cached."""
    compileall.compile_dir(
        TRIBUNAL, quiet=2, force=True, workers=1, maxlevels=64, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH
    )


def pack(target: Path) -> None:
    folders = {PurePosixPath(folder) for folder in FOLDERS} | {PurePosixPath("etc"), PurePosixPath("opt/tribunal")}
    for folder in tuple(folders):
        folders.update(parent for parent in folder.parents if parent.parts)
    entries: dict[str, tarfile.TarInfo] = {
        str(folder): entry(str(folder), tarfile.DIRTYPE, 0o755) for folder in folders
    }
    sources: dict[str, Path] = {}
    links = LINKS | {name: os.readlink(f"/{name}") for name in TRUST if os.path.islink(f"/{name}")}
    for path in TRIBUNAL.rglob("*"):
        name = str(path.relative_to("/"))
        if name in links:
            continue
        if path.is_dir():
            entries[name] = entry(name, tarfile.DIRTYPE, 0o755)
        else:
            entries[name] = entry(name, tarfile.REGTYPE, 0o755 if executable(path) else 0o644)
            entries[name].size = path.stat().st_size
            sources[name] = path
    for name, to in links.items():
        entries[name] = entry(name, tarfile.SYMTYPE, 0o777)
        entries[name].linkname = to
    preload = WHEELS / "ld.so.preload"
    entries[PRELOAD] = entry(PRELOAD, tarfile.REGTYPE, 0o644)
    entries[PRELOAD].size = preload.stat().st_size
    sources[PRELOAD] = preload
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as layer:
        for name in sorted(entries, key=os.fsencode):
            if name in sources:
                with sources[name].open("rb") as content:
                    layer.addfile(entries[name], content)
            else:
                layer.addfile(entries[name])


def executable(path: Path) -> bool:
    return path.suffix == ".so" or ".so." in path.name or path.parent == TRIBUNAL / "bin"


def entry(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.mtime = kind, mode, EPOCH
    return info


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

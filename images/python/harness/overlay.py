"""The candidate's src: a tar stream to files in the src roots' own tmpfs.

The server admitted every entry already; this checks again because it writes as root: only under a src root, only
regular files, directories and symlinks that stay inside the tree, never through a symlink. Anything else raises
`OverlayError`. Owners and extended headers of the tar are ignored; what its mode closes to others is the oracle's.
"""

import os
import stat
import tarfile
from collections.abc import Callable
from typing import BinaryIO, cast

from .layout import Layout

CHUNK = 1 << 20


class OverlayError(ValueError):
    """The src tar holds what may not be laid out."""


class Overlay:
    """The candidate's files as laid out, and the means to see that nobody changed them."""

    def __init__(self, layout: Layout, roots: tuple[str, ...]) -> None:
        self._layout = layout
        self._roots = roots
        self._laid: tuple[object, ...] = ()

    def lay(self, stream: "TarStream") -> None:
        for place in self._places():
            os.chown(place, 0, 0)
            os.chmod(place, 0o755)  # noqa: S103  attempts read it
        try:
            with tarfile.open(fileobj=cast(BinaryIO, stream), mode="r|") as archive:
                for member in archive:
                    self._entry(archive, member)
        except (tarfile.TarError, OSError) as error:
            raise OverlayError(f"src tar: {error}") from error
        stream.drain()
        self._laid = self._fingerprint()

    def unchanged(self) -> bool:
        """True while the file systems hold exactly as much as after `lay`: attempts have no way to write there."""
        return self._laid == self._fingerprint()

    def _entry(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        name = member.name.removesuffix("/")
        if any(part in ("", ".", "..") for part in name.split("/")) or "\0" in name:
            raise OverlayError(f"{name!r} is not a path of src")
        if member.isdir():
            if f"{name}/" not in self._roots:
                target = self._target(name)
                self._make(target)
                if not _for_everyone(member):
                    os.chown(target, 0, self._layout.oracle_group)
                    os.chmod(target, 0o750)  # noqa: S103  the oracle reads it
        elif member.isreg():
            target = self._target(name)
            self._make(os.path.dirname(target))
            self._file(archive, member, target)
        elif member.issym():
            self._link(name, member.linkname)
        else:
            raise OverlayError(f"{name!r} is neither file, directory nor symlink")

    def _target(self, name: str) -> str:
        target = self._layout.place(name, self._roots)
        if target is None:
            raise OverlayError(f"{name!r} is outside the src roots")
        return target

    def _make(self, directory: str) -> None:
        """Makes a directory and its parents, each a real directory."""
        try:
            mode = os.lstat(directory).st_mode
        except FileNotFoundError:
            self._make(os.path.dirname(directory))
            os.mkdir(directory, 0o755)
            os.chmod(directory, 0o755)  # noqa: S103  attempts read it
            return
        if not stat.S_ISDIR(mode):
            raise OverlayError(f"{directory!r} is not a directory")

    def _file(self, archive: tarfile.TarFile, member: tarfile.TarInfo, target: str) -> None:
        source = archive.extractfile(member)
        if source is None:
            raise OverlayError(f"{member.name!r} has no content")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(target, flags, 0o600)
        with os.fdopen(fd, "wb") as out:
            while data := source.read(CHUNK):
                out.write(data)
            out.flush()
            mode = 0o755 if member.mode & 0o100 else 0o644
            if not _for_everyone(member):
                os.fchown(fd, 0, self._layout.oracle_group)
                mode &= 0o770
            os.fchmod(fd, mode)
            os.utime(fd, ns=(int(member.mtime) * 10**9,) * 2)

    def _link(self, name: str, linkname: str) -> None:
        target = self._target(name)
        inside = os.path.normpath(os.path.join(os.path.dirname(name), linkname))
        # A new one that leaves its src root was not admitted; one that base has may lead anywhere in the tree.
        if name in self._roots or linkname.startswith("/") or f"{inside}/".startswith("../"):
            raise OverlayError(f"symlink {name!r} leaves the tree")
        self._make(os.path.dirname(target))
        os.symlink(linkname, target)

    def _fingerprint(self) -> tuple[object, ...]:
        return tuple(self._state(place) for place in self._places())

    def _places(self) -> list[str]:
        """The mounted directories that hold src."""
        tops = {f"{self._layout.tree}/{root[:-1]}" for root in self._roots if root.endswith("/")}
        if any(not root.endswith("/") for root in self._roots):
            tops.add(self._layout.srcfiles)
        return sorted(top for top in tops if os.path.isdir(top))

    @staticmethod
    def _state(place: str) -> tuple[object, ...]:
        system, top = os.statvfs(place), os.lstat(place)
        return (place, system.f_bfree, system.f_ffree, top.st_mtime_ns, top.st_ctime_ns, top.st_mode, top.st_uid)


def _for_everyone(member: tarfile.TarInfo) -> bool:
    """False for what lies under a src root and is the oracle's: sealed tests beside the product."""
    return member.mode & 0o004 != 0


class TarStream:
    """A file to read from, fed by a function that gives the next bytes or b"" at the end."""

    def __init__(self, more: Callable[[], bytes]) -> None:
        self._more = more
        self._data = b""

    def read(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size > 0:
            if not self._data:
                self._data = self._more()
                if not self._data:
                    break
            part, self._data = self._data[:size], self._data[size:]
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def drain(self) -> None:
        self._data = b""
        while self._more():
            pass

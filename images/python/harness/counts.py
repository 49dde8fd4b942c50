"""Pages of counts: what the pin library saw the processes of an attempt ask for, a page for each user.

Every process of the attempt can write its own page, so what stands there is a diagnosis and never a judgement. PID 1
makes the pages and clears them; it never maps one, because whoever can write a file can also cut it short.
"""

import contextlib
import ipaddress
import mmap
import os
import struct
from importlib.machinery import FileFinder

SIZE = 4096
ASK = 1020  # not 0: whether the product draws from its generators must be asked, it has threads of its own
LISTED = 1024  # from this offset on: one byte for each directory of the cassette that is on
SEEN, DIFFERED = 1, 2
SOUGHT, WHOLE = 2048, 2  # the first place outside of this machine that was sought
_PLACE = struct.Struct("<II16s")
SOURCES = (
    "wall_clock", "monotonic", "entropy", "urandom", "listings", "sockets", "servers", "sleeps", "threads",
)  # fmt: skip
_CELLS = struct.Struct(f"<{len(SOURCES)}I")

Snapshot = tuple[int, ...]


def page(directory: str, uid: int) -> str:
    return f"{directory}/{uid}"


def make(directory: str, uids: tuple[int, ...]) -> None:
    """Fresh pages for the users of one attempt. The last of them makes the files of all."""
    os.makedirs(directory, 0o711, exist_ok=True)
    os.chmod(directory, 0o711)  # noqa: S103  each user finds its own page, and no list of them
    drop(directory, uids)
    for uid in uids:
        fd = os.open(page(directory, uid), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, bytes(SIZE))
            os.fchown(fd, uids[-1], uids[-1])
        finally:
            os.close(fd)


def drop(directory: str, uids: tuple[int, ...]) -> None:
    for uid in uids:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(page(directory, uid))


def listed(directory: str, uids: tuple[int, ...], number: int) -> tuple[set[int], set[int]]:
    """Of the first directories of a table: those that were listed, and those that were not as recorded. With none asked
    for, all is forgotten."""
    seen, differed = set(), set()
    for uid in uids:
        with contextlib.suppress(OSError):  # the attempt may have done anything to its own page
            fd = os.open(page(directory, uid), os.O_RDWR | os.O_CLOEXEC)
            try:
                for at, byte in enumerate(os.pread(fd, number, LISTED)):
                    seen.update([at] if byte & SEEN else [])
                    differed.update([at] if byte & DIFFERED else [])
                if not number:
                    os.pwrite(fd, bytes(SIZE - LISTED), LISTED)
            finally:
                os.close(fd)
    return seen, differed


def sought(directory: str, uids: tuple[int, ...]) -> set[str]:
    """Places outside of this machine that were sought by address since all was forgotten: the first of each page."""
    places = set()
    for uid in uids:
        with contextlib.suppress(OSError, struct.error):  # the attempt may have done anything to its own page
            fd = os.open(page(directory, uid), os.O_RDONLY | os.O_CLOEXEC)
            try:
                state, port, packed = _PLACE.unpack(os.pread(fd, _PLACE.size, SOUGHT))
            finally:
                os.close(fd)
            if state == WHOLE:
                address = ipaddress.IPv6Address(packed)
                host = address.ipv4_mapped or f"[{address}]"
                places.add(f"address:{host}:{port % 2**16}")
    return places


class Meter:
    """An attempt's own view of its pages, opened while it could still open them. The first is the process's own."""

    def __init__(self, directory: str, uids: tuple[int, ...]) -> None:
        self._pages: list[mmap.mmap | None] = [_mapped(page(directory, uid)) for uid in uids]

    def read(self) -> list[Snapshot]:
        return [(0,) * len(SOURCES) if page is None else _CELLS.unpack_from(page) for page in self._pages]

    def draw(self) -> None:
        """One more of what is counted as entropy, of this process's."""
        self._raise(4 * SOURCES.index("entropy"))

    def ask(self) -> None:
        """The other process is to ask whether more was drawn."""
        if self._pages[0] is not None:
            with contextlib.suppress(Exception):
                self._pages[0][ASK] = 1

    def asks(self) -> bool:
        """Whether the other process wants to be asked, or cannot say."""
        page = self._pages[-1]
        return page is None or page[ASK] != 0

    def leave_imports_out(self) -> None:
        """The folders that the interpreter lists to find a module are not what a case reads."""
        fill, place = FileFinder._fill_cache, 4 * SOURCES.index("listings")  # type: ignore[attr-defined]
        if self._pages[0] is None:
            return

        def fill_cache(finder: FileFinder) -> None:
            fill(finder)
            self._raise(place, -1)

        FileFinder._fill_cache = fill_cache  # type: ignore[attr-defined]

    def _raise(self, place: int, by: int = 1) -> None:
        own = self._pages[0]
        if own is not None:
            with contextlib.suppress(Exception):
                count = int.from_bytes(own[place : place + 4], "little")
                own[place : place + 4] = ((count + by) % 2**32).to_bytes(4, "little")


def _mapped(path: str) -> mmap.mmap | None:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return mmap.mmap(fd, SIZE, trackfd=False)  # an open file would be one more for the candidate to play with
    except (OSError, ValueError):
        return None
    finally:
        os.close(fd)


def differences(before: list[Snapshot], after: list[Snapshot]) -> list[Snapshot]:
    """Of the oracle's page and the product's; in a shared part nothing is the product's."""
    read = [difference(*pair) for pair in zip(before, after, strict=True)]
    return [*read, NONE][:2]


def difference(before: Snapshot, after: Snapshot) -> Snapshot:
    """Counts that were taken back may be less than before, and a page may have been written by anybody."""
    rises = [(late - early) % 2**32 for early, late in zip(before, after, strict=True)]
    return tuple(rise if rise < 2**31 else 0 for rise in rises)


def added(one: Snapshot, other: Snapshot) -> Snapshot:
    return tuple((left + right) % 2**32 for left, right in zip(one, other, strict=True))


NONE: Snapshot = (0,) * len(SOURCES)
DRAWN: Snapshot = tuple(int(name == "entropy") for name in SOURCES)
TIMED: Snapshot = tuple(2 * (name == "monotonic") for name in SOURCES)

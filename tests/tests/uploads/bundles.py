#!/usr/bin/env python3
"""bundles.py KIND DEST: write a git bundle that no git would make; what it is like stands in KINDS.

Objects are laid into the pack by hand, so that a few bytes can stand for gigabytes and a tree can hold what git refuses.
"""

import hashlib
import os
import sys
import zlib
from collections.abc import Iterator

MIB = 1 << 20
COMMIT, TREE, BLOB, TAG, OFS_DELTA = 1, 2, 3, 4, 6
WHO = b"test <test@example.invalid> 1767225600 +0000"


def id_of(kind: bytes, body: bytes) -> str:
    return hashlib.sha1(kind + b" %d\0" % len(body) + body).hexdigest()


def entry(kind: int, size: int, packed: bytes, base: bytes = b"") -> bytes:
    """One object of a pack: its kind and size, then what it builds on, then its bytes."""
    head = bytearray([kind << 4 | size & 15])
    size >>= 4
    while size:
        head[-1] |= 0x80
        head.append(size & 0x7F)
        size >>= 7
    return bytes(head) + base + packed


def whole(kind: int, body: bytes, level: int = 6) -> bytes:
    return entry(kind, len(body), zlib.compress(body, level))


def back(distance: int) -> bytes:
    """How far before its own start the base of an offset delta starts."""
    digits = [distance & 0x7F]
    while distance := distance >> 7:
        distance -= 1
        digits.append(0x80 | distance & 0x7F)
    return bytes(reversed(digits))


def number(value: int) -> bytes:
    digits = bytearray()
    while value >= 0x80:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*digits, value])


def delta(base: int, pieces: list[int], end: bytes) -> bytes:
    """A difference: so many bytes of the base's start, again and again, and then `end`."""
    steps = bytearray()
    for piece in pieces:
        steps += b"\xf0" + piece.to_bytes(3, "little")
    if end:
        steps += bytes([len(end)]) + end
    return number(base) + number(sum(pieces) + len(end)) + bytes(steps)


def pack(count: int, entries: list[bytes]) -> bytes:
    body = b"PACK" + (2).to_bytes(4, "big") + count.to_bytes(4, "big") + b"".join(entries)
    return body + hashlib.sha1(body).digest()


def bundle(tip: str, body: bytes, needs: str = "") -> bytes:
    prerequisite = f"-{needs} what it builds on\n" if needs else ""
    return f"# v2 git bundle\n{prerequisite}{tip} refs/heads/agent\n\n".encode() + body


def tree_of(name: bytes, blob: str) -> bytes:
    return b"100644 " + name + b"\0" + bytes.fromhex(blob)


def commit_of(tree: str, who: bytes = b"author " + WHO + b"\n") -> bytes:
    return b"tree " + tree.encode() + b"\n" + who + b"committer " + WHO + b"\n\nfrom outside\n"


def around(blob: str, blobs: list[bytes]) -> bytes:
    """A commit whose tree holds one blob, and these entries."""
    tree = tree_of(b"data.bin", blob)
    commit = commit_of(id_of(b"tree", tree))
    entries = [*blobs, whole(TREE, tree), whole(COMMIT, commit)]
    return bundle(id_of(b"commit", commit), pack(len(entries), entries))


def delta_bomb() -> bytes:
    """16 KiB that unpack to one blob of 2 GiB."""
    base, pieces = bytes(16 * MIB - 1), [16 * MIB - 1] * 128
    name = hashlib.sha1(b"blob %d\0" % sum(pieces))
    for piece in pieces:
        name.update(base[:piece])
    first = whole(BLOB, base, 9)
    script = delta(len(base), pieces, b"")
    bomb = entry(OFS_DELTA, len(script), zlib.compress(script, 9), back(len(first)))
    return around(name.hexdigest(), [first, bomb])


def delta_flood() -> bytes:
    """Blobs that are allowed one by one, and 60 GiB in all."""
    base = bytes(12 * MIB)
    entries = [whole(BLOB, base, 9)]
    distance = len(entries[0])
    for count in range(1000):
        script = delta(len(base), [12 * MIB] * 5, b"%d" % count)
        entries.append(entry(OFS_DELTA, len(script), zlib.compress(script, 9), back(distance)))
        distance += len(entries[-1])
    return around(id_of(b"blob", base), entries)


def large_blob() -> bytes:
    """One blob of 200 MB that does not compress."""
    body = os.urandom(200_000_000)
    return around(id_of(b"blob", body), [whole(BLOB, body, 0)])


def half_a_stream() -> Iterator[bytes]:
    """The first 512 MiB of a bundle of 1 GiB, each byte of them as it should be."""
    tip = id_of(b"blob", b"")
    yield f"# v2 git bundle\n{tip} refs/heads/agent\n\n".encode()
    yield b"PACK" + (2).to_bytes(4, "big") + (1023).to_bytes(4, "big")
    for count in range(512):
        yield whole(BLOB, b"%08d" % count + bytes(MIB - 8), 0)


def missing_prerequisite() -> bytes:
    """Well formed, but built on a commit that nobody has."""
    commit = commit_of(id_of(b"tree", b""))
    return bundle(id_of(b"commit", commit), pack(2, [whole(TREE, b""), whole(COMMIT, commit)]), "1" * 40)


def missing_tree() -> bytes:
    """A commit whose tree is nowhere."""
    commit = commit_of("2" * 40)
    return bundle(id_of(b"commit", commit), pack(1, [whole(COMMIT, commit)]))


def garbage() -> bytes:
    """No bundle at all."""
    return b"\x1b[2J\r\n\0not a bundle\n" * 500


def garbage_pack() -> bytes:
    """A bundle's head, and then noise."""
    return bundle("3" * 40, b"PACK" + (2).to_bytes(4, "big") + (9).to_bytes(4, "big") + bytes(range(256)) * 64)


def cut_pack() -> bytes:
    """Sent as a whole, but its pack has fewer objects than it says."""
    commit = commit_of(id_of(b"tree", b""))
    return bundle(id_of(b"commit", commit), pack(40, [whole(TREE, b""), whole(COMMIT, commit)])[:-20])


def names(kind: bytes, number: int, body: bytes) -> bytes:
    return bundle(id_of(kind, body), pack(1, [whole(number, body)]))


def names_a_tag() -> bytes:
    """Its ref is an annotated tag of a commit."""
    commit = commit_of(id_of(b"tree", b""))
    target = id_of(b"commit", commit)
    tag = f"object {target}\ntype commit\ntag v1\ntagger {WHO.decode()}\n\na tag\n".encode()
    entries = [whole(TREE, b""), whole(COMMIT, commit), whole(TAG, tag)]
    return bundle(id_of(b"tag", tag), pack(3, entries))


def names_a_tree() -> bytes:
    """Its ref is a tree."""
    return names(b"tree", TREE, b"")


def names_a_blob() -> bytes:
    """Its ref is a blob."""
    return names(b"blob", BLOB, b"text\n")


def no_author() -> bytes:
    """A commit that git's own check refuses."""
    commit = commit_of(id_of(b"tree", b""), b"")
    return bundle(id_of(b"commit", commit), pack(2, [whole(TREE, b""), whole(COMMIT, commit)]))


def dot_git() -> bytes:
    """A tree with an entry that would be somebody's repository once it is checked out."""
    blob = b"[core]\n"
    tree = tree_of(b".git", id_of(b"blob", blob))
    commit = commit_of(id_of(b"tree", tree))
    entries = [whole(BLOB, blob), whole(TREE, tree), whole(COMMIT, commit)]
    return bundle(id_of(b"commit", commit), pack(3, entries))


def twice_the_same_name() -> bytes:
    """A tree that says two things of one path."""
    one, two = b"honest\n", b"not\n"
    tree = tree_of(b"a.py", id_of(b"blob", one)) + tree_of(b"a.py", id_of(b"blob", two))
    commit = commit_of(id_of(b"tree", tree))
    entries = [whole(BLOB, one), whole(BLOB, two), whole(TREE, tree), whole(COMMIT, commit)]
    return bundle(id_of(b"commit", commit), pack(4, entries))


KINDS = {
    f.__name__: f
    for f in (
        delta_bomb,
        delta_flood,
        large_blob,
        half_a_stream,
        missing_prerequisite,
        missing_tree,
        garbage,
        garbage_pack,
        cut_pack,
        names_a_tag,
        names_a_tree,
        names_a_blob,
        no_author,
        dot_git,
        twice_the_same_name,
    )
}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in KINDS:
        sys.exit(f"{__doc__}\nKINDS: {', '.join(KINDS)}")
    made = KINDS[sys.argv[1]]()
    with open(sys.argv[2], "wb") as out:
        for part in [made] if isinstance(made, bytes) else made:
            out.write(part)

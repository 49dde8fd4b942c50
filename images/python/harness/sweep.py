"""Emptying the places an attempt could write to.

Works as root on what a hostile attempt left: any depth (nothing here recurses or holds a path longer than the
top), any name, any mode. A directory's own times, modes and attributes are set back as well.
"""

import os
import secrets
import stat


def empty(top: str, mode: int, owner: int = 0) -> None:
    """Removes all below `top` and gives it back its mode, owner and a fixed time."""
    if not os.path.isdir(top):
        return
    serial, nonce = 0, secrets.token_hex(8)  # a name the attempt cannot have taken
    while entries := _scan(top):
        for path, is_directory in entries:
            if not is_directory:
                os.unlink(path)
                continue
            # Children move up instead of being walked down to: depth costs nothing.
            for child, child_is_directory in _scan(path):
                if child_is_directory:
                    serial += 1
                    os.rename(child, f"{top}/{nonce}-{serial}")
                else:
                    os.unlink(child)
            os.rmdir(path)
    for name in os.listxattr(top, follow_symlinks=False):
        if name.startswith("user."):
            os.removexattr(top, name, follow_symlinks=False)
    os.chown(top, owner, owner)
    os.chmod(top, mode)
    os.utime(top, (0, 0))


def _scan(path: str) -> list[tuple[str, bool]]:
    found = []
    with os.scandir(path) as entries:
        for entry in entries:
            found.append((entry.path, stat.S_ISDIR(entry.stat(follow_symlinks=False).st_mode)))
    return found

"""Small texts that the kernel makes up when they are read, of /proc and /sys: one way to read them, and a cheap one.

PID 1 reads dozens of them for every attempt. Whatever cannot be read is nothing: a process may be gone meanwhile.
"""

import os

_ENOUGH = 1 << 16


def text(path: str) -> str | None:
    """All of it; None where it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(fd, _ENOUGH).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        os.close(fd)

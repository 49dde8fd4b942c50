"""The files under `/run/tribunal/etc` that the image's own files point at: users, groups, the project's import path.

Every attempt uid has an entry, so that `getpass` and `Path.home()` work. `project.pth` gives child interpreters the
same import path as the attempt: standard library, the policy's roots, the project's dependencies.
"""

import os
from pathlib import Path

from . import trust
from .layout import Layout


def write(layout: Layout, uid_base: int, uid_count: int, pythonpath: tuple[str, ...]) -> None:
    users = ["root:x:0:0:root:/root:/bin/sh"]
    groups = ["root:x:0:", f"oracle:x:{layout.oracle_group}:"]
    for uid in range(uid_base, uid_base + uid_count):
        users.append(f"attempt-{uid}:x:{uid}:{uid}::{layout.home}:/bin/sh")
        groups.append(f"attempt-{uid}:x:{uid}:")
    os.chmod(layout.state, 0o711)  # noqa: S103  passed through, not listed
    os.makedirs(layout.etc, mode=0o755, exist_ok=True)
    os.chmod(layout.etc, 0o755)  # noqa: S103  attempts read it
    for name, lines in (
        ("passwd", users),
        ("group", groups),
        ("project.pth", [*layout.import_roots(pythonpath), layout.deps]),
    ):
        path = Path(layout.etc, name)
        path.write_text("".join(f"{line}\n" for line in lines))
        path.chmod(0o644)
    trust.write(layout, None)

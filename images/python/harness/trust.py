"""Whom programs in the room trust over TLS: the system's authorities, and the room's own while it replays cassettes.

The image's bundles are links into `/run/tribunal/etc`: Debian's, the one that certifi brings, and the place where
OpenSSL looks the room's authority up by its subject. So every client finds it, whatever it asks, and no variable is
needed for those that are started without any.
"""

import os
from pathlib import Path

from .layout import Layout

BUNDLES = ("ca-certificates.crt", "certifi.pem")
AUTHORITY = "authority.crt"


def write(layout: Layout, authority: str | None) -> None:
    """The bundles as the image brought them, or with one more authority at their end."""
    for name in BUNDLES:
        original, place = Path(layout.trust, name), Path(layout.etc, name)
        if not original.exists():
            continue
        fresh = place.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        if authority is None:
            fresh.symlink_to(original)
        else:
            fresh.write_bytes(original.read_bytes() + b"\n" + authority.encode())
            fresh.chmod(0o644)
        os.replace(fresh, place)
    place = Path(layout.etc, AUTHORITY)
    if authority is None:
        place.unlink(missing_ok=True)
    else:
        place.write_text(authority)
        place.chmod(0o644)

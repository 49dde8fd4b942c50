"""Where everything is inside the container, as PROTOCOL.md says; a test lays it out elsewhere.

Nothing here touches the disk.
"""

from dataclasses import dataclass
from pathlib import Path

LINKS = 8  # socket pairs between the oracle's and the product's process of one attempt
CASE_OUTPUT_FACTOR = 10  # this many times the policy's output of one case ends the attempt


@dataclass(frozen=True)
class Layout:
    tree: str = "/tree"
    srcfiles: str = "/srcfiles"
    home: str = "/home/attempt"
    state: str = "/run/tribunal"
    runner: str = "/opt/tribunal/runner"
    deps: str = "/opt/tribunal/deps"
    lib: str = "/opt/tribunal/lib"
    bin: str = "/opt/tribunal/bin"
    trust: str = "/opt/tribunal/trust"  # the authorities' bundles as packages brought them
    scratch: tuple[str, ...] = ("/tmp", "/dev/shm", "/dev/mqueue")  # noqa: S108
    oracle_group: int = 990  # who may read the sealed tests; the server gives their directories to it
    transport_user: int = 989  # below any attempt's

    @property
    def pins(self) -> str:
        return f"{self.state}/pins"

    @property
    def listings(self) -> str:
        return f"{self.state}/listings"

    @property
    def counts(self) -> str:
        return f"{self.state}/counts"

    @property
    def etc(self) -> str:
        return f"{self.state}/etc"

    def place(self, path: str, roots: tuple[str, ...]) -> str | None:
        """Where a path of the src tar goes: its root's own tmpfs, or `srcfiles` for a root that is one file."""
        for root in roots:
            if root.endswith("/") and path.startswith(root):
                return f"{self.tree}/{path}"
            if path == root:
                return f"{self.srcfiles}/{path}"
        return None

    def import_roots(self, pythonpath: tuple[str, ...]) -> list[str]:
        return [self.tree if entry == "." else f"{self.tree}/{entry.removesuffix('/')}" for entry in pythonpath]


def package_version(directory: str, name: str) -> str | None:
    """The version that a directory of packages says it holds, read without importing anything."""
    for entry in sorted(Path(directory).glob(f"{name}-*.dist-info")):
        return entry.name.removesuffix(".dist-info").removeprefix(f"{name}-")
    return None

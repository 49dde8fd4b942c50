"""The environment of an attempt, built from nothing: the same for every machine and for both of its processes."""

import os

from .layout import Layout
from .orders import Attempt, Policy
from .task import ProductTask

PATH = "/usr/local/bin:/usr/bin:/bin"


def of_start(hash_seed: int) -> dict[str, str]:
    """What an interpreter must see when it starts; an attempt inherits its effect."""
    return {"PATH": PATH, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": str(hash_seed)}


def of_waiting(layout: Layout, policy: Policy) -> dict[str, str]:
    """What holds before the pins are known: for whatever is made ready before its order comes."""
    return _pinned(layout, policy, 0, 0, 0)


def of_attempt(layout: Layout, policy: Policy, order: Attempt, hash_seed: int) -> dict[str, str]:
    return _pinned(layout, policy, order.seed, order.source_date_epoch, hash_seed)


def of_product(layout: Layout, policy: Policy, told: ProductTask) -> dict[str, str]:
    return _pinned(layout, policy, told.seed, told.source_date_epoch, told.hash_seed)


def _trust(layout: Layout) -> dict[str, str]:
    """Where cassettes are replayed: for clients that bring authorities of their own."""
    if not os.path.exists(f"{layout.etc}/authority.crt"):
        return {}
    bundle = f"{layout.etc}/ca-certificates.crt"
    return {"SSL_CERT_FILE": bundle, "REQUESTS_CA_BUNDLE": bundle, "CURL_CA_BUNDLE": bundle}


def _pinned(layout: Layout, policy: Policy, seed: int, epoch: int, hash_seed: int) -> dict[str, str]:
    named = {name: str(seed) for name in policy.seed_env if name and "=" not in name} | _trust(layout)
    return named | {
        **of_start(hash_seed),
        "HOME": layout.home,
        "TMPDIR": layout.scratch[0],
        "TZ": policy.timezone,
        "SOURCE_DATE_EPOCH": str(epoch),
        "COLUMNS": "80",
        "LINES": "24",
        "PYTHON_CPU_COUNT": str(policy.cpus),
        "PYTHONDONTWRITEBYTECODE": "1",
    }

"""Hypothesis under pins: the policy's seed, no deadline, no database, for every property wherever its settings are.

A guarded optional import; without Hypothesis nothing happens.
"""

import importlib
import importlib.util
import sys
from typing import Any

PLUGIN = "_hypothesis_pytestplugin"
PROFILE = "tribunal"


def plugins() -> list[Any]:
    """Hypothesis's own pytest plug-in, where it is installed."""
    return [importlib.import_module(PLUGIN)] if importlib.util.find_spec(PLUGIN) is not None else []


def _pinned(current: Any) -> Any:
    from hypothesis import HealthCheck, settings

    suppressed = {*current.suppress_health_check, HealthCheck.too_slow}
    return settings(
        current, database=None, deadline=None, derandomize=False, print_blob=False,
        suppress_health_check=sorted(suppressed, key=lambda check: check.value),
    )  # fmt: skip


def apply(seed: int) -> None:
    """For properties that are made and run inside tests: the default profile, and the seed of last resort."""
    if "hypothesis" not in sys.modules:
        return
    import hypothesis.core
    from hypothesis import settings

    settings.register_profile(PROFILE, _pinned(settings()))
    settings.load_profile(PROFILE)
    hypothesis.core.global_force_seed = seed  # type: ignore[assignment]


def pin(test: Any, seed: int) -> None:
    """For one test function, or state machine's test case, whatever settings and seed it carries itself."""
    function = getattr(test, "__func__", test)
    if not getattr(function, "is_hypothesis_test", False):
        return
    machine = getattr(function, "_hypothesis_state_machine_class", None)
    if machine is None:
        current = getattr(function, "_hypothesis_internal_use_settings", None)
        if current is not None:
            function._hypothesis_internal_use_seed = seed
            function._hypothesis_internal_use_settings = _pinned(current)
        return
    machine._hypothesis_internal_use_seed = seed
    holder: Any = type(getattr(test, "__self__", None))
    if hasattr(holder, "settings"):
        holder.settings = _pinned(holder.settings)

"""Hypothesis under pins: the policy's seed, no deadline, no database, for every property wherever its settings are.

A guarded optional import; without Hypothesis nothing happens.
"""

import gzip
import importlib
import importlib.util
import itertools
import json
import os
import sys
import unicodedata
import warnings
from pathlib import Path
from typing import Any

from pluggy import PluginManager

from .layout import Layout

PLUGIN = "_hypothesis_pytestplugin"
PROFILE = "tribunal"
SURROGATES = (0xD800, 0xDFFF)


def register(manager: PluginManager, layout: Layout) -> None:
    """Hypothesis's own pytest plug-in, once Hypothesis is in use: it would import it otherwise."""
    if "hypothesis" not in sys.modules or manager.has_plugin(PLUGIN) or importlib.util.find_spec(PLUGIN) is None:
        return
    _know_packages(layout)
    late = PLUGIN not in sys.modules
    with warnings.catch_warnings(action="ignore"):
        manager.register(importlib.import_module(PLUGIN), PLUGIN)
    if late:
        _initialised(0)  # it waits for the start of a session that has started already


def _know_packages(layout: Layout) -> None:
    """Hypothesis parses every module that it takes for the project's own, to try its constants: the image's packages
    are none of them, nor is the harness, though they lie outside of what the interpreter calls site-packages.
    """
    from hypothesis.internal import scrutineer

    scrutineer.SITE_PACKAGES_DIRS |= {Path(layout.runner), Path(layout.deps), Path(layout.lib), Path(__file__).parent}


def known_modules() -> None:
    """Once everything is imported: an attempt looks only at what it imports itself."""
    if "hypothesis" in sys.modules:
        from hypothesis.internal.conjecture import providers

        providers._get_local_constants()


def _initialised(value: int) -> int:
    """Hypothesis warns of its own slow work while this is not 0; gives the former value."""
    state: Any = importlib.import_module("_hypothesis_globals")
    former: int = state.in_initialization
    state.in_initialization = value
    return former


def warm(layout: Layout) -> None:
    """Imports Hypothesis, and makes its tables of characters: each attempt would need a second or more for them."""
    if importlib.util.find_spec("hypothesis") is None or importlib.util.find_spec(PLUGIN) is None:
        return
    importlib.import_module(PLUGIN)
    importlib.import_module("hypothesis.stateful")
    from hypothesis import configuration
    from hypothesis.internal import charmap

    former = _initialised(0)
    _know_packages(layout)
    configuration.set_hypothesis_home_dir(f"{layout.state}/hypothesis")
    _write_table(charmap.charmap_file(), sorted(_categories().items()))
    for codec, last in (("ascii", 0x7F), ("iso8859-1", 0xFF), ("utf-8", sys.maxunicode)):
        intervals = [[0, last]] if last < SURROGATES[0] else [[0, SURROGATES[0] - 1], [SURROGATES[1] + 1, last]]
        _write_table(charmap.charmap_file(f"codec-v2-{codec}"), [intervals, []])
        charmap.intervals_from_codec(codec)
    charmap.charmap()
    _initialised(former)


def _write_table(path: Path, table: object) -> None:
    """In the form of Hypothesis's own cache. Two zygotes may write it at once: each puts a whole file in place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mine = path.with_name(f"{path.name}.{os.getpid()}")
    mine.write_bytes(gzip.compress(json.dumps(table).encode(), compresslevel=1))
    mine.replace(path)


def _categories() -> dict[str, list[tuple[int, int]]]:
    out: dict[str, list[tuple[int, int]]] = {}
    start = 0
    for category, group in itertools.groupby(map(unicodedata.category, map(chr, range(sys.maxunicode + 1)))):
        end = start + sum(1 for _ in group)
        out.setdefault(category, []).append((start, end - 1))
        start = end
    return out


def _pinned(current: Any, once: bool = False) -> Any:
    """`once`: a failure is expected, and need not be made small."""
    from hypothesis import HealthCheck, Phase, settings

    suppressed = {*current.suppress_health_check, HealthCheck.too_slow}
    phases = [phase for phase in current.phases if not once or phase in (Phase.explicit, Phase.generate)]
    return settings(
        current, phases=phases, database=None, deadline=None, derandomize=False, print_blob=False,
        suppress_health_check=sorted(suppressed, key=lambda check: check.value),
    )  # fmt: skip


def apply(seed: int) -> None:
    """For properties that are made and run inside tests: the default profile, and the seed of last resort."""
    if "hypothesis" not in sys.modules:
        return
    import hypothesis.core
    import hypothesis.internal.conjecture.junkdrawer as kept
    from hypothesis import settings
    from hypothesis.internal import entropy

    # What a start made is immortal, and the collector names no immortal object as a referrer: where that is so,
    # Hypothesis does not warn of generators that nobody seems to hold.
    entropy.FREE_THREADED_CPYTHON = True
    # It would time each collection of garbage from its first property on, for deadlines: there are none, and the case
    # in which the collection falls would seem to read a clock.
    kept._gc_initialized = True
    if hypothesis.core.global_force_seed == seed:
        return

    settings.register_profile(PROFILE, _pinned(settings()))
    settings.load_profile(PROFILE)
    hypothesis.core.global_force_seed = seed  # type: ignore[assignment]


def pin(test: Any, seed: int, once: bool = False) -> None:
    """For one test function, or state machine's test case, whatever settings and seed it carries itself."""
    function = getattr(test, "__func__", test)
    if not getattr(function, "is_hypothesis_test", False):
        return
    machine = getattr(function, "_hypothesis_state_machine_class", None)
    if machine is None:
        current = getattr(function, "_hypothesis_internal_use_settings", None)
        if current is not None:
            function._hypothesis_internal_use_seed = seed
            function._hypothesis_internal_use_settings = _pinned(current, once)
        return
    machine._hypothesis_internal_use_seed = seed
    holder: Any = type(getattr(test, "__self__", None))
    if hasattr(holder, "settings"):
        holder.settings = _pinned(holder.settings, once)

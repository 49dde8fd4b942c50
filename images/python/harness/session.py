"""One pytest session inside an attempt, with the harness's plug-in and nothing else.

Turns the manifest's files and the base's own configuration into records. It ignores what would let a configuration
choose the result: `addopts`, required or auto-loaded plug-ins, the cache, log files. It never decides an outcome.
What does not depend on an attempt is made ready in the zygote, without running a line of the repository.
"""

import ast
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import NoReturn

import _pytest.assertion.rewrite
import _pytest.runner
from _pytest.config import Config, get_config
from pluggy import PluginManager

from . import hypothesis_settings, imports, must_fail, mutate, seeds, shortcuts, source_only, witness
from .asyncs import Asyncs
from .channel import Channel
from .collection import Collected, conftest_failure, failure
from .counts import Meter
from .exceptions import Exceptions
from .frames import Message
from .layout import Layout
from .orders import Policy, files_of_part
from .plugin import Plugin, Told
from .source import PRODUCT, SEALED, Sides
from .split import follow, hook
from .split.connect import Connection
from .tampers import Tampers
from .witness import Native

OVERRIDES = (
    "addopts=", "required_plugins=", "log_cli=false", "log_file=", "strict_config=false", "strict_markers=false",
)  # fmt: skip
# Options and marks of plug-ins that are not here: where a base makes warnings errors, they would end the session.
UNKNOWN = ("PytestConfigWarning", "PytestUnknownMarkWarning")


@dataclass(frozen=True)
class Prepared:
    """pytest before any option or plug-in of the base, and the sealed files compiled with rewritten asserts."""

    config: Config
    arguments: tuple[str, ...]
    files: tuple[str, ...]
    codes: dict[str, CodeType] = field(default_factory=dict)


def arguments(layout: Layout) -> list[str]:
    words = [
        f"--rootdir={layout.tree}", "--disable-plugin-autoload", "-p", "no:cacheprovider", "--capture=no",
        "--import-mode=append", "--tb=short", f"--basetemp={layout.scratch[0]}/pytest",
        "--continue-on-collection-errors", "--color=no", "--no-header", "--no-summary",
    ]  # fmt: skip
    for override in OVERRIDES:
        words += ["-o", override]
    for kind in UNKNOWN:
        words += ["-W", f"ignore::pytest.{kind}"]
    return words


def prepare(layout: Layout, policy: Policy, files: tuple[str, ...]) -> Prepared:
    os.chdir(layout.tree)
    shortcuts.install(layout.tree)
    words = arguments(layout)
    return Prepared(get_config(list(words)), tuple(words), files, _compiled(layout, policy, files))


def _compiled(layout: Layout, policy: Policy, files: tuple[str, ...]) -> dict[str, CodeType]:
    """Sealed files lie in a volume that nobody can write. Those under a src root are not there yet."""
    sides = Sides(layout, policy)
    mounted = tuple(f"{layout.tree}/{root}" for root in policy.src_roots)
    codes = {}
    for file in files:
        path = Path(layout.tree, file)
        if sides.of_file(str(path)) == PRODUCT or str(path).startswith(mounted):
            continue
        try:
            source = path.read_bytes()
            tree = ast.parse(source, filename=str(path))
            _pytest.assertion.rewrite.rewrite_asserts(tree, source, str(path), None)
            codes[str(path)] = compile(tree, str(path), "exec", dont_inherit=True)
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            continue  # the attempt will report it
    return codes


class Hearing:
    """The order, once: asked for when nothing more can be done without it."""

    def __init__(self, hear: Callable[[], Told], then: Callable[[Told], None]) -> None:
        self._hear, self._then = hear, then
        self._told: Told | None = None

    def __call__(self) -> Told:
        if self._told is None:
            self._told = self._hear()
            self._then(self._told)
        return self._told


def run(
    hear: Callable[[], Told], layout: Layout, policy: Policy, prepared: Prepared, links: list[int] | None,
    native: Native | None = None, meter: Meter | None = None,
) -> Message | None:  # fmt: skip
    """What the last record says; None means that the session did not reach its own end.

    Of a split part `links` lead to the product, and the order is heard no sooner than the first line of the tree is to
    run: all that is pytest's own is done by then. Without them the product is imported here, the order comes first, and
    the witness watches.
    """
    sides = Sides(layout, policy)
    exceptions = Exceptions(sides)
    tampers = Tampers()
    product = _connected(links, sides, tampers) if links is not None else None

    def opened(told: Told) -> None:
        doorbell.take_down()
        tampers.open(told.channel)
        seeds.apply(told.order.seed)
        hypothesis_settings.apply(told.order.seed)
        source_only.give_way(layout, policy)
        if product is not None:
            product.begin(told.secret)
            follow.begin(product)
        plugin.open(told)

    heard = Hearing(hear, opened)
    plugin = Plugin(layout, sides, exceptions, tampers, product, meter, heard)
    compiled = imports.Compiled(prepared.codes)
    imports.install(layout, sides, compiled, heard)
    doorbell = imports.Doorbell(heard)
    if product is None:
        order = heard().order
        source_only.plant(mutate.of_product(order.product, order.seed, layout, policy), sides)
    else:
        sys.meta_path.insert(0, doorbell)
        roots = [f"{layout.tree}/{root}".rstrip("/") for root in policy.src_roots]
        own = str(Path(__file__).parent)
        names = None if policy.own_names is None else frozenset(policy.own_names)
        ours, hear = [layout.runner, own], witness.load(layout).hear
        hook.install(product, _sealed(sides), [*roots, layout.srcfiles], ours, names, hear)
    # A case id in the environment would tell the product which answer is wanted.
    _pytest.runner._update_current_test_var = lambda item, when: None
    try:
        manager = prepared.config.pluginmanager
        for each in (plugin, Asyncs()):
            manager.register(each)
        if native is not None:
            _arm(native, plugin, heard().channel, compiled, manager)
        hypothesis_settings.register(manager, layout)
        files = [f"{layout.tree}/{file}" for file in files_of_part(policy, prepared.files, product is not None)]
        config: Config = manager.hook.pytest_cmdline_parse(pluginmanager=manager, args=[*prepared.arguments, *files])
        compiled.usable = not config.getini("enable_assertion_pass_hook")
        if product is None and heard().order.must_fail:
            compiled.codes.update(must_fail.compiled(files, config.getini("python_functions")))
            compiled.usable = True
    except (SystemExit, KeyboardInterrupt, Exception) as error:  # noqa: BLE001
        return _without_session(heard().channel, exceptions, layout, error)
    try:
        config.hook.pytest_cmdline_main(config=config)
    finally:
        config._ensure_unconfigure()
    return {} if plugin.complete() else None


def _arm(native: Native, plugin: Plugin, channel: Channel, compiled: imports.Compiled, manager: PluginManager) -> None:
    """Product code comes with the first sealed file: from here on the witness tells."""
    native.also("harness plug-in", vars(plugin))
    native.also("harness channel", vars(channel))
    native.also("compiled sealed modules", compiled.codes)
    native.also("compiled sealed modules", vars(compiled))
    native.also("pytest's plug-ins", manager._name2plugin)
    native.arm(channel.sender())


def _connected(links: list[int], sides: Sides, tampers: Tampers) -> Connection:
    """When the product's process is gone this one waits to be ended: PID 1 saw how the other left."""

    def gone() -> NoReturn:
        while True:
            signal.pause()

    return Connection(links, tampers.tell, gone, _sealed(sides))


def _sealed(sides: Sides) -> Callable[[object], bool]:
    return lambda file: type(file) is str and sides.of_file(file) == SEALED


def _without_session(channel: Channel, exceptions: Exceptions, layout: Layout, error: BaseException) -> Message:
    """pytest could not even be configured, mostly for a conftest that cannot be imported: all cases are missing."""
    file, cause = conftest_failure(error, layout.tree) or ("", error)
    Collected(errors=[failure(file, exceptions.describe(cause))]).send(channel)
    return {}

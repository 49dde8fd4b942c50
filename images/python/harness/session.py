"""One pytest session inside an attempt, with the harness's plug-in and nothing else.

Turns the manifest's files and the base's own configuration into records. It ignores what would let a configuration
choose the result: `addopts`, required or auto-loaded plug-ins, the cache, log files. It never decides an outcome.
False means that the session did not reach its own end.
"""

import _pytest.runner
from _pytest.config import Config, _prepareconfig

from . import hypothesis_settings, imports, seeds
from .asyncs import Asyncs
from .channel import Channel
from .collection import Collected, conftest_failure, failure
from .exceptions import Exceptions
from .layout import Layout
from .orders import Attempt, Policy
from .plugin import Plugin
from .source import Sides

OVERRIDES = ("addopts=", "required_plugins=", "log_cli=false", "log_file=", "strict_config=false")


def arguments(layout: Layout, policy: Policy, files: tuple[str, ...]) -> list[str]:
    words = [
        f"--rootdir={layout.tree}", "--disable-plugin-autoload", "-p", "no:cacheprovider", "--capture=no",
        "--import-mode=append", "--tb=short", f"--basetemp={layout.scratch[0]}/pytest",
        "--continue-on-collection-errors", "--color=no",
    ]  # fmt: skip
    for override in OVERRIDES:
        words += ["-o", override]
    return [*words, *(f"{layout.tree}/{file}" for file in files)]


def run(channel: Channel, layout: Layout, policy: Policy, files: tuple[str, ...], order: Attempt) -> bool:
    sides = Sides(layout, policy)
    exceptions = Exceptions(sides)
    plugin = Plugin(channel, sides, exceptions, order)
    seeds.apply(order.seed)
    hypothesis_settings.apply(order.seed)
    imports.install(layout, sides)
    # A case id in the environment would tell the product which answer is wanted.
    _pytest.runner._update_current_test_var = lambda item, when: None
    try:
        config = _prepareconfig(arguments(layout, policy, files), [plugin, Asyncs(), *hypothesis_settings.plugins()])
    except (SystemExit, KeyboardInterrupt, Exception) as error:  # noqa: BLE001
        return _without_session(channel, exceptions, layout, error)
    _session(config)
    return plugin.complete()


def _session(config: Config) -> None:
    try:
        config.hook.pytest_cmdline_main(config=config)
    finally:
        config._ensure_unconfigure()


def _without_session(channel: Channel, exceptions: Exceptions, layout: Layout, error: BaseException) -> bool:
    """pytest could not even be configured, mostly for a conftest that cannot be imported: all cases are missing."""
    file, cause = conftest_failure(error, layout.tree) or ("", error)
    Collected(errors=[failure(file, exceptions.describe(cause))]).send(channel)
    return True

"""The harness's pytest plug-in: drives collection and the cases, and sends a record for each step.

It runs every selected case in pytest's order, whatever `maxfail`, `shouldstop` or a collection error elsewhere say.
An exception of any kind in a case is that case's failure; only `pytest.exit` ends the session, and then the session's
end is never reported.
"""

import os
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field

import pluggy
import pytest
from _pytest.config import Config
from _pytest.terminal import TerminalReporter
from _pytest.unittest import TestCaseFunction

from . import canary, counts, hypothesis_settings, must_fail, scatter, seeds
from .channel import Channel
from .collection import Collected, case, failure, name, unique
from .exceptions import Exceptions
from .frames import Message
from .layout import Layout
from .null import SWITCH
from .orders import Attempt
from .phases import Judge, Phase, reported
from .silence import Silences, is_empty_set, unsilence
from .source import Sides
from .split.connect import Connection
from .tampers import Tampers

PASSED = Phase()
NEXT = {"setup": "call", "call": "teardown", "teardown": None}


class Sink:
    """Where pytest's own report to a terminal goes."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False


class Cassettes:
    """The cases that have a cassette, and PID 1's word that its pins are on or off."""

    def __init__(self, seeds: Mapping[str, int | None], word: int) -> None:
        self._seeds, self._word = seeds, word
        self._read = os.read

    def has(self, node: str) -> bool:
        return node in self._seeds

    def seed(self, node: str, other: int) -> int:
        seed = self._seeds.get(node)
        return other if seed is None else seed

    def wait(self) -> None:
        self._read(self._word, 1)


@dataclass(frozen=True)
class Told:
    """What an attempt hears from PID 1, and the way back."""

    order: Attempt
    channel: Channel
    secret: bytes = b""  # what an oracle's questions are drawn by
    canaries: Sequence[canary.Canary] = ()
    cassettes: Cassettes = field(default_factory=lambda: Cassettes({}, -1))


class Plugin:
    """Registered before the order may be known: `hear` has it opened, when the collection begins at the latest."""

    def __init__(
        self, layout: Layout, sides: Sides, exceptions: Exceptions, tampers: Tampers, product: Connection | None,
        meter: counts.Meter | None, hear: Callable[[], object],
    ) -> None:  # fmt: skip
        self._layout = layout
        self._sides = sides
        self._exceptions = exceptions
        self._tampers = tampers
        self._product = product
        self._meter = meter
        self._hear = hear
        self._planted: set[int] = set()  # numbers of canaries
        self._reads: list[counts.Snapshot] = []  # of the present phase, where it read anything
        self._collected = Collected()
        self._gathered: list[pytest.Item] = []  # before any hook chose among them
        self._number = 0
        self._inside = False  # in a report of our own, not one of a subtest
        self._subtests: list[Phase] = []
        self._complete = False
        self._failed = False  # the present case, in any phase
        self._clock = time.perf_counter  # held where no test that replaces clocks looks

    def open(self, told: Told) -> None:
        self._channel, self._canaries, self._cassettes = told.channel, told.canaries, told.cassettes
        self._order = told.order
        self._only = None if told.order.only is None else frozenset(told.order.only)
        self._judge = Judge(self._sides, self._exceptions, told.order.unsilenced)
        self._silences = Silences(self._judge)

    def complete(self) -> bool:
        return self._complete

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: Config) -> None:
        config.addinivalue_line("markers", "asyncio: run an async test on an event loop")
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if isinstance(reporter, TerminalReporter):
            reporter._tw._file = Sink()

    def pytest_internalerror(self, excrepr: object) -> None:
        """pytest or a conftest hook fell over; what it says goes where the attempt prints."""
        print(str(excrepr)[-4000:], file=sys.__stderr__)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool:
        """All files that can be collected, even where pytest would refuse the whole session for one that cannot."""
        self._hear()
        files = list(session.config.args)
        while True:
            try:
                session.perform_collect(files)
                return True
            except pytest.UsageError as error:
                refused = [file for file in files if any(_names(line, file) for line in error.args)]
                if not refused:
                    raise
            for file in refused:
                files.remove(file)
                path = os.path.relpath(file, session.config.rootpath)
                self._collected.errors.append(
                    failure(path, self._exceptions.describe(pytest.UsageError("not collected")))
                )

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        self._silences.open(collector, self._order.marks_off)
        report = yield
        self._silences.collected(collector, report, self._collected, self._exceptions)
        return report

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        self._gathered.append(item)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        hypothesis_settings.register(session.config.pluginmanager, self._layout)
        items = list(session.items)
        if self._order.merge:  # what a hook deselected runs all the same
            kept = {id(item) for item in items}
            items += [item for item in self._gathered if id(item) not in kept]
        names = unique([name(item) for item in items])
        cases = []
        for item, node in zip(items, names, strict=True):
            if is_empty_set(item):
                self._silences.empty_set(item, node)
            else:
                self._collected.cases.append(case(item, node))
                cases.append((item, node))
        self._planted = set(canary.places(self._canaries, len(cases)))
        for at, item, node in canary.plant(self._canaries, cases):
            self._collected.cases.insert(at, case(item, node))
        silent = self._silences.report(self._collected, self._order.unsilenced)
        self._collected.send(self._channel)
        if not self._order.collect_only:
            self._run([(number, *pair) for number, pair in enumerate(cases)])
            for number, node, phase in silent:
                if self._selected(node):
                    self._unheard(number, phase)
        self._complete = True
        return True

    def _selected(self, node: str) -> bool:
        return self._only is None or node in self._only

    def _run(self, cases: list[tuple[int, pytest.Item, str]]) -> None:
        chosen = [each for each in cases if self._selected(each[2])]
        if self._order.reversed == "cases":
            chosen.reverse()
        if self._order.marks_off:
            unsilence([item for _, item, _ in chosen])
        scatter.scatter()
        SWITCH.arm()  # whatever the null product has of functions raises from here on
        for (number, item, node), (_, nextitem, _) in zip(chosen, [*chosen[1:], (-1, None, "")], strict=False):
            self._number = number
            recorded = number not in self._planted and self._cassettes.has(node)
            seed = self._cassettes.seed(node, self._order.seed) if recorded else self._order.seed
            if self._product is not None:
                self._product.between_cases(seed, node)
            seeds.apply(seed)
            hypothesis_settings.apply(seed)
            hypothesis_settings.pin(getattr(item, "obj", None), seed, self._order.must_fail)
            if self._order.must_fail:
                must_fail.wrap(item)
            self._failed = False
            self._begin(number)
            if recorded:
                self._cassettes.wait()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
            if recorded:
                self._cassettes.wait()
            if self._failed and self._order.stop_on_failure and number not in self._planted:
                return

    def _begin(self, number: int) -> None:
        self._channel.send_at_border({"kind": "begin", "case": number})
        self._tampers.border()

    def _unheard(self, number: int, phase: Phase) -> None:
        """A silence of the collection, told as a case."""
        self._number = number
        self._begin(number)
        self._tell("setup", Phase(), 0.0, "call")
        self._tell("call", phase, 0.0, "teardown")
        self._tell("teardown", Phase(), 0.0, None)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        hook, nodeid, location = item.ihook, item.nodeid, item.location
        hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
        requested = hasattr(item, "_request")
        if requested and not item._request:  # type: ignore[attr-defined]
            item._initrequest()  # type: ignore[attr-defined]
        self._subtests = []
        if self._phase(item, hook, "setup").outcome == "passed":
            self._phase(item, hook, "call")
        self._phase(item, hook, "teardown", nextitem=nextitem)
        if requested:
            item._request = False  # type: ignore[attr-defined]
            item.funcargs = None  # type: ignore[attr-defined]
        hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)
        return True

    def _phase(self, item: pytest.Item, hooks: pluggy.HookRelay, when: str, **more: object) -> Phase:
        hook = getattr(hooks, f"pytest_runtest_{when}")
        started = self._clock()
        self._reads = []
        call = pytest.CallInfo.from_call(lambda: self._counted(item, when, lambda: hook(item=item, **more)), when=when)  # type: ignore[arg-type]
        took = max(0.0, self._clock() - started) * 1000
        error = _raised(item, call)
        report: pytest.TestReport | None = None
        self._inside = True
        try:
            report = hooks.pytest_runtest_makereport(item=item, call=call)
        except BaseException as second:  # noqa: BLE001  a report that cannot be made is a failure, not the session's end
            error = error or second
        finally:
            self._inside = False
        trace = _long(report) if error is not None else None
        phase = self._judge.phase(item, when, error, trace)
        if report is not None:
            phase = phase.worse(reported(report))
        if when == "call":
            for subtest in self._subtests:
                phase = phase.worse(subtest)
        following = NEXT[when] if phase.outcome == "passed" or when != "setup" else "teardown"
        self._tell(when, phase, took, following)
        if report is not None:
            self._announce(hooks, report)
        if isinstance(error, pytest.exit.Exception):
            raise error
        return phase

    def _counted(self, item: pytest.Item, when: str, act: Callable[[], object]) -> object:
        """The act, with what it made this process and the product's ask for."""
        if self._meter is None:
            return act()
        before = self._meter.read()
        try:
            return act()
        finally:
            after = self._meter.read()
            read = [] if after == before else counts.differences(before, after)
            if read and when == "call" and isinstance(item, TestCaseFunction):
                read[0] = counts.difference(counts.TIMED, read[0])  # unittest asks how long it took
            if when == "teardown":
                read = self._with_draws(read)
            self._reads = read if any(map(any, read)) else []

    def _with_draws(self, read: list[counts.Snapshot]) -> list[counts.Snapshot]:
        """Generators that were seeded ask for nothing more, so their states have to tell."""
        asked = self._product is not None and self._meter is not None and self._meter.asks()
        here, there = seeds.moved(), asked and self._product.drawn()  # type: ignore[union-attr]
        if not here and not there:
            return read
        pairs = zip(read or [counts.NONE, counts.NONE], (here, there), strict=True)
        return [counts.added(one, counts.DRAWN) if moved else one for one, moved in pairs]

    @staticmethod
    def _announce(hooks: pluggy.HookRelay, report: pytest.TestReport) -> None:
        """For conftest hooks and pytest's own bookkeeping; the record is out already."""
        try:
            hooks.pytest_runtest_logreport(report=report)
        except (Exception, KeyboardInterrupt, SystemExit):  # noqa: BLE001
            return

    def _tell(self, when: str, phase: Phase, took: float, following: str | None) -> None:
        self._failed = self._failed or phase.outcome == "failed"
        record: Message = {
            "kind": "phase", "case": self._number, "when": when, "next": following, "outcome": phase.outcome,
            "by": phase.by, "duration_ms": took,
        }  # fmt: skip
        if phase != PASSED:
            record |= {
                "xfail": _cut(phase.xfail), "xpassed": phase.xpassed, "skip_reason": _cut(phase.skip_reason),
                "exception": phase.exception,
            }  # fmt: skip
        if self._reads:
            record["reads"] = self._reads
            self._reads = []
        self._channel.send_at_border(record)
        self._tampers.border()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Reports that we did not ask for are those of subtests, pytest's own and unittest's."""
        inside, self._inside = self._inside, False
        error = call.excinfo.value if call.excinfo is not None else None
        report = yield
        if not inside and error is not None:
            self._subtests.append(self._judge.phase(item, "call", error, _long(report)))
        return report


def _names(line: object, file: str) -> bool:
    return any(file in part.split() for part in str(line).splitlines())


def _raised(item: pytest.Item, call: pytest.CallInfo[object]) -> BaseException | None:
    kept = getattr(item, "_excinfo", None)  # unittest's results do not come as exceptions
    if kept:
        value: BaseException = kept[0].value
        return value
    return call.excinfo.value if call.excinfo is not None else None


def _long(report: pytest.TestReport | None) -> str | None:
    if report is None:
        return None
    try:
        text = report.longreprtext
    except BaseException:  # noqa: BLE001  a candidate's objects are rendered here
        return None
    return text or None


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:2000]

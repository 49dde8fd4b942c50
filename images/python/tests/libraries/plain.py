"""A pytest plug-in for the plain way: tells every case's outcome on one line of stdout, and does nothing else to a run
but seed it, as a repository's own conftest might, so that two runs can be compared."""

import json
import os
import random
import signal
import sys
from collections.abc import Generator
from typing import Any

import pytest

SEED = 20260912
LINE = "\x1eTRIBUNAL-PLAIN "


class Outcomes:
    def __init__(self) -> None:
        self.nodes: list[str] = []
        self.seen: dict[str, str] = {}
        self.reasons: dict[str, str] = {}
        self.errors: dict[str, str] = {}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.errors[report.nodeid] = first_line(report)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.nodes = [item.nodeid for item in items]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, bool | None, bool | None]:
        random.seed(SEED)
        pin(item)
        signal.signal(signal.SIGALRM, overdue)
        signal.alarm(int(os.environ.get("CASE_SECONDS", "60")))
        try:
            return (yield)
        finally:
            signal.alarm(0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        node = report.nodeid
        if report.failed:
            self.seen[node] = "failed"
            self.reasons.setdefault(node, first_line(report))
        elif report.skipped and self.seen.get(node) != "failed":
            self.seen[node] = "xfailed" if hasattr(report, "wasxfail") else "skipped"
        elif report.when == "call":
            self.seen.setdefault(node, "xpassed" if hasattr(report, "wasxfail") else "passed")

    def pytest_sessionfinish(self) -> None:
        told = {"nodes": self.nodes, "outcomes": self.seen, "reasons": self.reasons, "errors": self.errors}
        sys.__stdout__.write(f"\n{LINE}{json.dumps(told)}\n")  # type: ignore[union-attr]
        sys.__stdout__.flush()  # type: ignore[union-attr]


class Overdue(BaseException):
    """A case took too long: a mutant that does not end."""


def overdue(*_: object) -> None:
    raise Overdue


def pin(item: pytest.Item) -> None:
    if "hypothesis" in sys.modules:
        import hypothesis
        import hypothesis.core

        hypothesis.core.global_force_seed = SEED  # type: ignore[assignment]
        test: Any = getattr(getattr(item, "obj", None), "__func__", getattr(item, "obj", None))
        current = getattr(test, "_hypothesis_internal_use_settings", None)
        if current is not None:
            test._hypothesis_internal_use_settings = hypothesis.settings(
                current, database=None, deadline=None, derandomize=False
            )


def first_line(report: Any) -> str:
    crash = getattr(getattr(report, "longrepr", None), "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr).strip().rsplit("\n", 1)[-1]
    return str(text).split("\n", 1)[0][:300]


def pytest_configure(config: pytest.Config) -> None:
    sys.argv[:] = ["pytest"]  # as the harness has it: a product may look
    config.pluginmanager.register(Outcomes())

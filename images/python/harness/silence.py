"""Silences: skips that arise at collection, and how a silenced case is made to speak.

A module-level skip and an empty parameter set leave no case that could be run; they are reported beside the cases,
and in an unsilenced attempt as failed cases with the reason as message.
"""

from typing import Any

import pytest
from _pytest.compat import NOTSET
from _pytest.unittest import UnitTestCase

from .collection import Collected, conftest_failure, failure, file_of, qualname, silence
from .exceptions import Exceptions
from .phases import SKIPS, Judge, Phase
from .source import SEALED

MARKS = ("skip", "skipif", "xfail")


class Interruption(Exception):
    """Stands for a SystemExit or KeyboardInterrupt that a module raised while it was collected."""


class Silences:
    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._found: list[tuple[str, str, str, str, str]] = []  # node, file, qualname, reason, by

    def open(self, collector: pytest.Collector, unsilenced: bool) -> None:
        """Before a collector collects: what would end the session becomes its own error."""
        collect = collector.collect

        def guarded() -> list[Any]:
            try:
                return list(collect())
            except (KeyboardInterrupt, SystemExit, pytest.exit.Exception) as error:
                raise Interruption(str(error)) from error

        collector.collect = guarded  # type: ignore[method-assign]
        if unsilenced and isinstance(collector, UnitTestCase):
            collector.obj.__unittest_skip__ = False

    def collected(
        self, collector: pytest.Collector, report: pytest.CollectReport, into: Collected, exceptions: Exceptions
    ) -> None:
        if report.outcome == "passed":
            return
        call = getattr(report, "call", None)
        error = call.excinfo.value if call is not None and call.excinfo is not None else None
        file = file_of(collector)
        if isinstance(error, SKIPS):
            reason = str(getattr(error, "msg", None) or error)
            self._found.append((collector.nodeid, file, "", reason, self._judge.raiser(error)))
            return
        broken = conftest_failure(error, str(collector.config.rootpath)) if error is not None else None
        if broken is not None:
            into.errors.append(failure(broken[0], exceptions.describe(broken[1])))
            return
        if error is None:
            text = str(report.longrepr)
            into.errors.append(
                failure(file, {"type": "CollectError", "message": text[:2000], "traceback": text[-6000:]})
            )
            return
        cause = error.__cause__ if isinstance(error, Interruption | pytest.Collector.CollectError) else None
        into.errors.append(failure(file, exceptions.describe(cause or error, _text(report))))

    def empty_set(self, item: pytest.Item, node: str) -> None:
        reason = ""
        for mark in item.iter_markers():
            if mark.name in MARKS:
                reason = str(mark.kwargs.get("reason", "") or (mark.args[0] if mark.args else ""))
                break
        self._found.append((node, file_of(item), qualname(item), reason, SEALED))

    def report(self, into: Collected, unsilenced: bool) -> list[tuple[int, str, Phase]]:
        """Adds what was found to the collection; in an unsilenced attempt as cases, which are given back with their
        numbers and what they have to say."""
        if not unsilenced:
            into.skips += [silence(node, file, reason, by) for node, file, _, reason, by in self._found]
            return []
        out = []
        for node, file, name, reason, by in self._found:
            out.append((len(into.cases), node, _spoken(reason, by)))
            into.cases.append({"node": node, "file": file, "qualname": name, "marks": []})
        return out


def _spoken(reason: str, by: str) -> Phase:
    exception = {"type": "Skipped", "message": reason[:2000], "traceback": ""}
    if by == SEALED:
        return Phase("failed", by=by, exception=exception)
    return Phase("skipped", skip_reason=reason, by=by, exception=exception)


def _text(report: pytest.CollectReport) -> str | None:
    try:
        return report.longreprtext or None
    except BaseException:  # noqa: BLE001  a candidate's objects are rendered here
        return None


def is_empty_set(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    return callspec is not None and any(value is NOTSET for value in callspec.params.values())


def unsilence(items: list[pytest.Item]) -> None:
    for item in items:
        for node in item.listchain():
            node.own_markers[:] = [mark for mark in node.own_markers if mark.name not in MARKS]
        _speak(item)


def _speak(item: pytest.Item) -> None:
    """unittest keeps its silences on functions and classes."""
    holder = getattr(item.parent, "obj", None)
    function = getattr(item, "obj", None)
    if function is None:
        return
    plain = getattr(function, "__func__", function)
    if isinstance(holder, type):
        for name in ("__unittest_expecting_failure__", "__unittest_skip__"):
            setattr(holder, name, False)
    if getattr(plain, "__unittest_expecting_failure__", False):
        plain.__unittest_expecting_failure__ = False
    inner = plain
    while getattr(inner, "__unittest_skip__", False) and hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    if inner is plain:
        return
    if isinstance(holder, type):
        setattr(holder, item.name.split("[", 1)[0], inner)
        item._obj = None  # type: ignore[attr-defined]
    else:
        item.obj = inner  # type: ignore[attr-defined]

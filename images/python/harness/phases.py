"""One phase of one case: what was raised, to an outcome.

The outcome is decided here from the exception itself, not read from pytest's report; the report can only make it
worse. So a hook or a patched report that forgets a failure changes nothing, and one that adds a failure counts.
"""

import unittest
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from _pytest.raises import AbstractRaises
from _pytest.skipping import Xfail, xfailed_key

from .exceptions import Exceptions, message
from .frames import Message
from .source import PRODUCT, RUNNER, SEALED, Sides

RANK = {"passed": 0, "skipped": 1, "failed": 2}
SKIPS = (pytest.skip.Exception, unittest.SkipTest)


@dataclass
class Phase:
    outcome: str = "passed"
    xfail: str | None = None
    xpassed: bool = False
    skip_reason: str | None = None
    by: str = RUNNER
    exception: Message | None = None

    def worse(self, other: "Phase") -> "Phase":
        return other if RANK[other.outcome] > RANK[self.outcome] else self


@dataclass(frozen=True)
class Judge:
    """Exceptions to phases, for one attempt."""

    sides: Sides
    exceptions: Exceptions
    unsilenced: bool

    def phase(self, item: pytest.Item, when: str, error: BaseException | None, trace: str | None = None) -> Phase:
        expected = item.stash.get(xfailed_key, None)
        if error is None:
            return self._quiet(expected if when == "call" else None)
        if isinstance(error, pytest.xfail.Exception):
            return self._silence(error, xfail=error.msg or "", trace=trace)
        if isinstance(error, SKIPS):
            return self._silence(error, skip=_reason(error), trace=trace)
        described = self.exceptions.describe(error, trace)
        if expected is not None and _expects(expected, error):
            return Phase("skipped", xfail=expected.reason, by=SEALED, exception=described)
        return Phase("failed", by=self.sides.of_exception(error), exception=described)

    def _quiet(self, expected: Xfail | None) -> Phase:
        if expected is None:
            return Phase()
        if expected.strict:
            text = f"[XPASS(strict)] {expected.reason}"
            return Phase("failed", xpassed=True, by=SEALED, exception=_plain("Failed", text))
        return Phase("passed", xfail=expected.reason, xpassed=True, by=SEALED)

    def _silence(
        self, error: BaseException, xfail: str | None = None, skip: str | None = None, trace: str | None = None
    ) -> Phase:
        by = self.raiser(error)
        if self.unsilenced and by != PRODUCT:
            described = self.exceptions.describe(error, trace) | {
                "type": "Skipped",
                "message": (skip or xfail or "")[:2000],
            }
            return Phase("failed", by=by, exception=described)
        return Phase("skipped", xfail=xfail, skip_reason=skip, by=by, exception=self.exceptions.describe(error, trace))

    def raiser(self, error: BaseException) -> str:
        """The side that raised a skip or xfail. unittest catches it and raises another one in its place."""
        sides = [self.sides.of_exception(link) for link in _chain(error)]
        return PRODUCT if PRODUCT in sides else SEALED


def reported(report: pytest.TestReport) -> Phase:
    """What pytest's report says, in case some hook of the base's conftest made it worse than the exception."""
    outcome = report.outcome if report.outcome in RANK else "failed"
    if hasattr(report, "wasxfail") and outcome == "skipped":
        return Phase("skipped", xfail=str(report.wasxfail), by=SEALED)
    if outcome == "skipped":
        longrepr = report.longrepr
        reason = str(longrepr[2]) if isinstance(longrepr, tuple) and len(longrepr) == 3 else ""
        return Phase("skipped", skip_reason=reason.removeprefix("Skipped: "), by=SEALED)
    if outcome == "failed":
        text = str(report.longrepr)
        return Phase("failed", by=SEALED, exception=_plain("Failed", text.strip().split("\n", 1)[0], text))
    return Phase()


def _plain(kind: str, text: str, trace: str = "") -> Message:
    return {"type": kind, "message": text[:2000], "traceback": trace[-6000:]}


def _reason(error: BaseException) -> str:
    if isinstance(error, pytest.skip.Exception):
        return str(error.msg or "")
    return message(error)


def _expects(expected: Xfail, error: BaseException) -> bool:
    raises = expected.raises
    if raises is None:
        return True
    if isinstance(raises, AbstractRaises):
        return bool(raises.matches(error))
    return isinstance(error, raises)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(10):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__

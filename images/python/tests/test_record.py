"""The ledger: records in their order become frames, all else is foreign."""

import copy

import pytest

from harness.canary import Canary, places
from harness.record import ForeignRecord, Ledger

CASE = {"node": "a.py::test_a", "file": "a.py", "qualname": "test_a", "marks": ["skip"]}
COLLECTED = {
    "kind": "collected",
    "cases": [CASE, CASE | {"node": "a.py::test_b"}],
    "errors": [],
    "skips": [],
    "more": False,
}
PHASE = {
    "kind": "phase", "case": 0, "when": "setup", "next": "call", "mark": 2, "outcome": "passed", "xfail": None,
    "xpassed": False, "skip_reason": None, "by": "runner", "exception": None, "duration_ms": 1.23456,
}  # fmt: skip
BOOTED, BEGIN, END = (
    {"kind": "booted"},
    {"kind": "begin", "case": 0, "mark": 1},
    {"kind": "end"},
)
CALL = PHASE | {"when": "call", "next": "teardown", "mark": 3}
TEARDOWN = PHASE | {"when": "teardown", "next": None, "mark": 4}


class Printed:
    def begin(self, number: int) -> None:
        assert number == BEGIN["mark"]

    def take(self, number: int) -> str:
        return f"text {number}"


def ledger() -> Ledger:
    return Ledger(5, Printed())


def fed(*records) -> tuple[Ledger, list]:
    book, frames = ledger(), []
    for record in records:
        frames += book.accept(copy.deepcopy(record))
    return book, frames


def test_a_whole_attempt():
    book, frames = fed(BOOTED, COLLECTED, BEGIN, PHASE, CALL, TEARDOWN, END)
    assert book.ended
    assert book.canaries == {"run": 0, "passed": 0}
    collected, case = frames
    assert collected == {
        "type": "collected",
        "attempt": 5,
        "cases": COLLECTED["cases"],
        "errors": [],
        "skips": [],
        "more": False,
    }
    assert (case["type"], case["attempt"], case["node"]) == ("case", 5, "a.py::test_a")
    assert [phase["when"] for phase in case["phases"]] == ["setup", "call", "teardown"]
    assert [phase["output"] for phase in case["phases"]] == ["text 2", "text 3", "text 4"]
    assert case["phases"][0] == {
        "when": "setup", "outcome": "passed", "xfail": None, "xpassed": False, "skip_reason": None, "by": "runner",
        "exception": None, "output": "text 2", "duration_ms": 1.235, "reported": True, "tamper": [],
    }  # fmt: skip


def test_what_a_phase_does_not_say_is_as_where_there_is_nothing_to_tell():
    told = {"xfail", "xpassed", "skip_reason", "exception"}
    short = [{key: value for key, value in phase.items() if key not in told} for phase in (PHASE, CALL, TEARDOWN)]
    assert fed(BOOTED, COLLECTED, BEGIN, *short)[1] == fed(BOOTED, COLLECTED, BEGIN, PHASE, CALL, TEARDOWN)[1]


def test_a_setup_that_did_not_pass_goes_on_to_teardown():
    book, frames = fed(BOOTED, COLLECTED, BEGIN, PHASE | {"outcome": "failed", "next": "teardown"}, TEARDOWN, END)
    assert book.ended
    assert len(frames[1]["phases"]) == 2


def test_tampering_belongs_to_the_phase_it_is_seen_in():
    tamper = {"kind": "tamper", "tamper": "refused", "what": "__globals__" * 50}
    told = {"kind": "refused", "what": ("__globals__" * 50)[:200]}
    book, frames = fed(BOOTED, tamper, COLLECTED, BEGIN, PHASE, tamper, tamper, CALL, TEARDOWN)
    assert [phase["tamper"] for phase in frames[1]["phases"]] == [[], [told], []]
    assert book.tamper == [told]
    book, _ = fed(BOOTED, COLLECTED, BEGIN, *(tamper | {"what": str(n)} for n in range(30)))
    (case,) = book.interrupted("")
    assert len(case["phases"][0]["tamper"]) == 20


def test_an_interruption_says_where():
    book, frames = fed(BOOTED, COLLECTED, BEGIN, PHASE)
    assert (book.running.node, book.running.when) == ("a.py::test_a", "call")
    (case,) = book.interrupted("last words")
    assert [(phase["when"], phase["reported"]) for phase in case["phases"]] == [("setup", True), ("call", False)]
    assert case["phases"][1]["outcome"] == "failed"
    assert case["phases"][1]["output"] == "last words"
    assert book.interrupted("") == []


@pytest.mark.parametrize(
    "records",
    [
        [COLLECTED],
        [END],
        [BOOTED, BOOTED],
        [BOOTED, BEGIN],
        [BOOTED, END],
        [BOOTED, COLLECTED, COLLECTED],
        [BOOTED, COLLECTED, PHASE],
        [BOOTED, COLLECTED, BEGIN, BEGIN],
        [BOOTED, COLLECTED, BEGIN, END],
        [BOOTED, COLLECTED, BEGIN, CALL],
        [BOOTED, COLLECTED, BEGIN, PHASE, PHASE],
        [BOOTED, COLLECTED, BEGIN, PHASE, TEARDOWN],
        [BOOTED, COLLECTED, BEGIN, PHASE | {"next": None}],
        [BOOTED, COLLECTED, BEGIN, PHASE | {"case": 1}],
        [BOOTED, COLLECTED, BEGIN, PHASE, CALL, TEARDOWN, BEGIN],
        [BOOTED, COLLECTED, BEGIN, PHASE, CALL, TEARDOWN, TEARDOWN],
        [BOOTED, COLLECTED, BEGIN | {"case": 2}],
        [BOOTED, COLLECTED, BEGIN | {"case": -1}],
        [BOOTED, COLLECTED, BEGIN | {"case": True}],
        [BOOTED, COLLECTED, END, END],
        [BOOTED, {"kind": "tamper", "tamper": "harmless", "what": "x"}],
        [BOOTED, {"kind": "tamper", "tamper": "refused", "what": 1}],
        [{"kind": "tamper", "tamper": "refused", "what": "x"}],
        [BOOTED, COLLECTED, END, BEGIN],
        [BOOTED, {}],
        [BOOTED, {"kind": []}],
        [BOOTED, COLLECTED | {"more": 1}],
        [BOOTED, COLLECTED | {"cases": [1]}],
        [BOOTED, COLLECTED | {"cases": [CASE | {"node": None}]}],
        [BOOTED, COLLECTED | {"errors": [{"file": "x"}]}],
        [BOOTED, COLLECTED | {"skips": [{"node": "x", "file": "x", "reason": "x", "by": "me"}]}],
        [BOOTED, COLLECTED, BEGIN, PHASE | {"outcome": "error"}],
        [BOOTED, COLLECTED, BEGIN, {key: value for key, value in PHASE.items() if key != "outcome"}],
        [BOOTED, COLLECTED, BEGIN, {key: value for key, value in PHASE.items() if key != "mark"}],
        [BOOTED, COLLECTED, BEGIN, PHASE | {"reads": None}],
        [BOOTED, COLLECTED, BEGIN, PHASE | {"reads": [[0] * 9]}],
        [BOOTED, COLLECTED, BEGIN, PHASE | {"duration_ms": float("inf")}],
        [BOOTED, COLLECTED, BEGIN, PHASE | {"duration_ms": -1}],
        [BOOTED, COLLECTED, BEGIN, PHASE | {"xpassed": "yes"}],
        [BOOTED, COLLECTED, BEGIN, PHASE | {"exception": "text"}],
        [BOOTED, COLLECTED, BEGIN, PHASE | {"exception": {"type": "E"}}],
    ],
)
def test_what_no_harness_would_write(records):
    *proper, last = records
    book, _ = fed(*proper)
    with pytest.raises(ForeignRecord):
        book.accept(copy.deepcopy(last))


def test_everything_is_capped_and_copied():
    huge = "x" * 100_000
    exception = {"type": huge, "message": huge + "\ud800", "traceback": huge + "end", "extra": huge}
    _, (_, case) = fed(
        BOOTED,
        COLLECTED | {"cases": [CASE | {"node": huge, "qualname": huge, "marks": [huge] * 500, "extra": huge}]},
        BEGIN,
        PHASE | {"outcome": "failed", "next": "teardown", "exception": exception, "xfail": huge, "extra": huge},
        TEARDOWN,
    )
    phase = case["phases"][0]
    assert "extra" not in phase
    assert {key: len(value) for key, value in phase["exception"].items()} == {
        "type": 200,
        "message": 2000,
        "traceback": 6000,
    }
    assert phase["exception"]["traceback"].endswith("end")
    assert len(phase["xfail"]) == 2000
    assert len(case["node"]) == 4200


def test_collections_come_in_pieces():
    book, frames = fed(
        BOOTED, COLLECTED | {"more": True}, COLLECTED | {"more": True, "cases": []}, COLLECTED, BEGIN | {"case": 3}
    )
    assert [frame["more"] for frame in frames] == [True, True, False]
    assert book.running.node == "a.py::test_b"


def canaries(place: int, **said) -> Ledger:
    """A ledger that has one canary before the case `place`, and heard it fail with these words."""
    book = Ledger(5, Printed(), [Canary(place, "words")])
    pieces = [COLLECTED | {"cases": COLLECTED["cases"][:1], "more": True}, COLLECTED | {"cases": [CASE, CASE]}]
    frames = [frame for record in (BOOTED, *pieces) for frame in book.accept(copy.deepcopy(record))]
    assert [len(frame["cases"]) for frame in frames] == ([0, 2] if place == 0 else [1, 1])
    number = BEGIN | {"case": place}
    for record in (number, PHASE, CALL | {"outcome": "failed", **said}, TEARDOWN):
        assert book.accept(copy.deepcopy(record | {"case": place})) == []
    return book


FAILED = {"type": "AssertionError", "message": "words", "traceback": ""}


def test_a_canary_that_fails_as_it_must_is_not_told():
    assert canaries(0, exception=FAILED).canaries == {"run": 1, "passed": 0}
    assert canaries(1, exception=FAILED).canaries == {"run": 1, "passed": 0}


@pytest.mark.parametrize(
    "said",
    [
        {"outcome": "passed", "exception": None},
        {"outcome": "skipped", "exception": FAILED},
        {"exception": FAILED | {"message": "other words"}},
        {"exception": None},
    ],
)
def test_a_canary_that_does_not_fail_by_its_own_words_has_passed(said):
    assert canaries(1, **said).canaries == {"run": 1, "passed": 1}


@pytest.mark.parametrize("others", [1, 2, 5])
def test_a_canary_is_never_the_last_whose_tear_down_takes_everything_down(others):
    for place in range(12):
        for second in range(12):
            standing = places([Canary(place, "a"), Canary(second, "b")], others)
            assert len(set(standing)) == 2 and max(standing) < others + 1


def test_a_collection_without_its_canaries_is_foreign():
    book = Ledger(5, Printed(), [Canary(0, "a"), Canary(1, "b")])
    book.accept(copy.deepcopy(BOOTED))
    with pytest.raises(ForeignRecord):
        book.accept(copy.deepcopy(COLLECTED))


def test_a_canary_that_was_running_at_the_end_is_nobodys_case():
    book = Ledger(5, Printed(), [Canary(0, "words")])
    for record in (BOOTED, COLLECTED, BEGIN):
        book.accept(copy.deepcopy(record))
    assert book.shown is None
    assert book.interrupted("") == []

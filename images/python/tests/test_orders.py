"""Orders and the pin page: what is taken, what is refused, and the bytes that come of it."""

import hashlib
import struct

import pytest

from harness.orders import (
    Attempt,
    BadOrder,
    Configure,
    Instant,
    Policy,
    Product,
    files_of_part,
    parts_ahead,
    repo_path,
    src_size,
)  # fmt: skip
from harness.pins import SIZE, PinPage, entropy_key

POLICY = {
    "src_roots": ["src/", "parse.py"], "pythonpath": [".", "src"], "timezone": "UTC", "seed_env": ["A"],
    "attempt_timeout_ms": 1000, "case_timeout_ms": 500, "output_bytes": 100, "tmp_exec": False, "preload": "auto",
    "forbid_marks": [], "cpus": 1, "memory_bytes": 1, "something_new": 1,
}  # fmt: skip
CONFIGURE = {
    "policy": POLICY, "files": ["tests/sealed/test_a.py"], "starts": [{"hash_seed": 0}, {"hash_seed": 4294967295}],
    "uid_base": 70000, "uid_count": 4,
}  # fmt: skip
ATTEMPT = {
    "attempt": 3, "start": 1, "clock": "2026-09-12T00:00:00Z", "seed": 4294967295, "source_date_epoch": 0,
    "mode": "unsilenced", "only": ["x"], "isolation": "split",
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "seconds", "nanoseconds"),
    [
        ("1970-01-01T00:00:00Z", 0, 0),
        ("2026-09-12T00:00:00Z", 1789171200, 0),
        ("2026-09-12T02:00:00+02:00", 1789171200, 0),
        ("2026-09-11T19:30:00.25-04:30", 1789171200, 250_000_000),
        ("1969-12-31T23:59:59.5Z", -1, 500_000_000),
        ("9999-12-31T23:59:59Z", 253402300799, 0),
        ("2016-02-29T12:00:00.000001Z", 1456747200, 1000),
    ],
)
def test_times(text, seconds, nanoseconds):
    assert Instant.parse(text) == Instant(seconds, nanoseconds)


@pytest.mark.parametrize("text", ["", "now", "2026-09-12", "2026-09-12T00:00:00", "2026-02-30T00:00:00Z", "1789171200"])
def test_times_that_are_not_plain(text):
    with pytest.raises(BadOrder):
        Instant.parse(text)


@pytest.mark.parametrize("size", [-1, "gone", None, True])
def test_a_src_without_a_size(size):
    assert src_size({"size": 0}) == 0
    with pytest.raises(BadOrder):
        src_size({"size": size})


def test_whole_orders():
    configure = Configure.parse(CONFIGURE)
    assert configure.hash_seeds == (0, 4294967295)
    assert (configure.clock, configure.seed) == (None, None)
    assert configure.policy.src_roots == ("src/", "parse.py")
    assert configure.policy.sealed_roots == ()
    attempt = Attempt.parse(ATTEMPT, 2)
    assert (attempt.unsilenced, attempt.must_fail, attempt.split) == (True, False, True)
    assert (attempt.product, attempt.stop_on_failure, attempt.cpu) == (Product("head"), False, None)
    assert Attempt.parse(ATTEMPT | {"cpu": 3}, 2).cpu == 3
    assert attempt.only == ("x",)
    assert not attempt.collect_only


def test_each_part_has_its_files():
    policy = Policy.parse(POLICY | {"shared": ["b", "d"]})
    split = Attempt.parse(ATTEMPT | {"product": {"mutant": 2, "of": 3}}, 2)
    shared = Attempt.parse(ATTEMPT | {"isolation": "shared", "product": "null", "mode": "must-fail"}, 2)
    assert files_of_part(policy, ("a", "b", "c", "d"), split.split) == ["a", "c"]
    assert files_of_part(policy, ("a", "b", "c", "d"), shared.split) == ["b", "d"]
    assert (split.product, shared.must_fail, shared.product) == (Product("mutant", 2, 3), True, Product("null"))
    with pytest.raises(BadOrder, match="shared parts"):
        Attempt.parse(ATTEMPT | {"mode": "must-fail"}, 2)


@pytest.mark.parametrize("ahead", [None, [0, 2], [-1], ["0"], [0] * 65])
def test_what_goes_ahead_is_a_short_list_of_starts(ahead):
    with pytest.raises(BadOrder, match="ahead"):
        parts_ahead({"ahead": ahead}, 2)


def test_nothing_need_go_ahead():
    assert parts_ahead({}, 2) == ()
    assert parts_ahead({"ahead": [0, 0, 1]}, 2) == (0, 0, 1)


def changed(base, key, value):
    return {name: item for name, item in (base | {key: value}).items() if item != "gone"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("attempt", -1), ("attempt", True), ("attempt", "3"), ("attempt", "gone"), ("start", 2), ("seed", 4294967296),
        ("seed", 1.0), ("clock", 5), ("clock", "gone"), ("mode", "quiet"), ("only", "x"), ("only", [1]),
        ("isolation", "gone"), ("isolation", "both"), ("stop_on_failure", 1), ("product", "tail"), ("product", None),
        ("product", {"mutant": 3, "of": 3}), ("product", {"mutant": 0}), ("product", {"mutant": 0, "of": 1, "x": 1}),
        ("collect_only", 1), ("source_date_epoch", -1), ("source_date_epoch", None),
        ("cpu", -1), ("cpu", "0"), ("cpu", True),
    ],
)  # fmt: skip
def test_attempts_of_the_wrong_shape(key, value):
    with pytest.raises(BadOrder):
        Attempt.parse(changed(ATTEMPT, key, value), 2)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("policy", "gone"), ("policy", []), ("starts", []), ("starts", [1]), ("starts", [{"hash_seed": -1}]),
        ("files", ["/etc/passwd"]), ("files", ["a/../b"]), ("files", "a"), ("uid_base", 0), ("uid_base", 999),
        ("uid_count", 0), ("seed", -1), ("clock", "today"),
        *(("policy", changed(POLICY, key, value)) for key, value in [
            ("src_roots", ["/src"]), ("src_roots", [".."]), ("src_roots", ["src//"]), ("src_roots", "src"),
            ("pythonpath", ["/usr"]), ("pythonpath", ["src\0"]), ("timezone", None), ("timezone", "a\0b"),
            ("cpus", 0), ("cpus", True), ("cpus", "1"), ("attempt_timeout_ms", 0), ("case_timeout_ms", "gone"),
            ("shared", ["tests/sealed/test_b.py"]), ("shared", "x"),
            ("output_bytes", 0), ("seed_env", [1]), ("sealed_roots", ["../x"]),
        ]),
    ],
)  # fmt: skip
def test_configurations_of_the_wrong_shape(key, value):
    with pytest.raises(BadOrder):
        Configure.parse(changed(CONFIGURE, key, value))


def test_fractions_of_a_processor_are_whole_ones_to_the_attempt():
    assert [Policy.parse(POLICY | {"cpus": cpus}).cpus for cpus in (0.5, 1, 1.4, 1.6, 4)] == [1, 1, 1, 2, 4]


@pytest.mark.parametrize("path", ["", "/", "/a", "a//b", "./a", "a/.", "a/../b", "..", "a\0"])
def test_what_is_no_repository_path(path):
    with pytest.raises(BadOrder):
        repo_path(path)


def test_the_page_has_the_agreed_layout(tmp_path):
    page = PinPage(str(tmp_path / "pins"))
    content = (tmp_path / "pins").read_bytes()
    assert len(content) == SIZE
    assert content[:8] == b"TRBPINS1"
    assert content[8:] == bytes(SIZE - 8)  # nothing is pinned yet
    page.write(Instant(-1, 500_000_000), 7, 3)
    content = (tmp_path / "pins").read_bytes()
    assert struct.unpack_from("<8sIIqII32s", content) == (
        b"TRBPINS1", 2, 7, -1, 500_000_000, 3, hashlib.sha256(b"tribunal-entropy:7").digest(),
    )  # fmt: skip
    assert content[64:] == bytes(SIZE - 64)
    assert (tmp_path / "pins").stat().st_mode & 0o777 == 0o644
    page.write(Instant(1, 0), 8, 1)
    assert (tmp_path / "pins").read_bytes()[8:12] == struct.pack("<I", 4)
    assert entropy_key(7) != entropy_key(8)

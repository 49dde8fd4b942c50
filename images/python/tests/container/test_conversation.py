"""The conversation itself: wrong orders, hostile tars, digests."""

import io
import json
import tarfile

import pytest
from room import Room, lay

FILES = {"tests/sealed/test_a.py": "def test_a(): pass\n"}


@pytest.fixture
def unconfigured(tmp_path):
    with Room(lay(tmp_path / "tree", FILES)) as room:
        yield room


def trouble(room):
    frame = list(room.until("trouble"))[-1]
    assert room.hang_up() == 1
    return frame["code"]


def test_ready_says_what_is_inside(unconfigured):
    ready = unconfigured.ready
    assert (ready["type"], ready["protocol"], ready["tag"]) == ("ready", 1, "cp313")
    assert ready["python"].startswith("3.13.")
    assert ready["pytest"] and ready["hypothesis"]


@pytest.mark.parametrize(
    "order",
    [
        {"type": "attempt", "attempt": 0},
        {"type": "nonesuch"},
        {},
        {"type": "configure"},
        {"type": "configure", "policy": {}, "files": [], "starts": [{"hash_seed": 0}]},
        {"type": "digests", "files": ["../etc/passwd"]},
        {"type": "digests", "files": ["/etc/passwd"]},
        {"type": "digests", "files": 3},
    ],
)
def test_an_order_of_the_wrong_shape(unconfigured, order):
    unconfigured.send(order)
    assert trouble(unconfigured) == "bad-order"


@pytest.mark.parametrize("raw", [b"{", b"[]", b"\xff", b"[" * 100_000])
def test_a_frame_that_is_no_order(unconfigured, raw):
    unconfigured.send_raw(b"J", raw)
    assert trouble(unconfigured) == "bad-order"


def test_a_frame_of_another_kind(unconfigured):
    unconfigured.send_raw(b"Z", b"")
    assert trouble(unconfigured) == "bad-order"


def member(name, kind=tarfile.REGTYPE, link="", body=b""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(body)
    return info, body


@pytest.mark.parametrize(
    "members",
    [
        [member("tests/sealed/test_a.py")],
        [member("src/../tests/x.py")],
        [member("/src/x.py")],
        [member("srcx.py")],
        [member("src/link", tarfile.SYMTYPE, "../../tests")],
        [member("src/link", tarfile.SYMTYPE, "/etc")],
        [member("src/link", tarfile.SYMTYPE, ".."), member("src/link/x.py")],
        [member("src/a", tarfile.SYMTYPE, "b"), member("src/b", tarfile.DIRTYPE), member("src/a/x.py")],
        [member("src/hard", tarfile.LNKTYPE, "src/x.py")],
        [member("src/fifo", tarfile.FIFOTYPE)],
        [member("src/device", tarfile.CHRTYPE)],
        [member("src/x.py"), member("src/x.py")],
        [member("src/x.py"), member("src/x.py/y.py")],
    ],
)
def test_a_tar_that_would_write_elsewhere(unconfigured, members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for info, body in members:
            archive.addfile(info, io.BytesIO(body))
    assert unconfigured.configure(out.getvalue())["code"] == "bad-order"


def test_a_tar_that_is_none(unconfigured):
    assert unconfigured.configure(b"x" * 5000)["code"] == "bad-order"


def test_digests_never_execute(open_room):
    room = open_room(
        FILES
        | {
            "tests/sealed/test_b.py": "import os\nos._exit(1)\ndef test_b(): return 1\n",
            "tests/sealed/test_bad.py": "def test_b(:\n",
            "tests/sealed/test_deep.py": "x = " + "(" * 5000 + ")" * 5000 + "\n",
            "tests/sealed/test_deeper.py": "def test_d(): return " + "-" * 200_000 + "1\n",
            "tests/sealed/test_many.py": "".join(f"def test_{n}(): return {n}\n" for n in range(4000)),
            "tests/sealed/test_null.py": "x = '\0'\n",
            "tests/sealed/test_z.py": "def test_z(): pass\n",
        }
    )
    files = [
        f"tests/sealed/test_{name}.py" for name in ("a", "b", "bad", "deep", "deeper", "gone", "many", "null", "z")
    ]
    answer = room.digests(files)
    assert answer["tag"] == "cp313"
    assert {name.split("::")[0] for name in answer["functions"]} == {
        f"tests/sealed/test_{name}.py" for name in ("a", "b", "many", "z")
    }
    assert len(answer["functions"]) == 4003
    assert set(answer["errors"]) == {
        f"tests/sealed/test_{name}.py" for name in ("bad", "deep", "deeper", "gone", "null")
    }
    one = answer["functions"]["tests/sealed/test_a.py::test_a"]
    assert one["v2"].startswith("v2:cp313:") and len(one["v2"]) == 9 + 64 and len(one["short"]) == 16
    assert room.digests(files) == answer


def test_digests_before_configure(unconfigured):
    assert list(unconfigured.digests(["tests/sealed/test_a.py"])["functions"]) == ["tests/sealed/test_a.py::test_a"]


def test_the_command_line_gives_the_same_digests(open_room, tmp_path):
    import subprocess

    from room import HARNESS, IMAGE

    room = open_room(FILES)
    tree = next(tmp_path.glob("tree*"))
    command = [
        "docker",
        "run",
        "--rm",
        "--network",
        "none",
        "-v",
        f"{tree}:/tree:ro",
        "-v",
        f"{HARNESS}:/opt/tribunal/harness:ro",
    ]
    command += [
        "--entrypoint",
        "/usr/bin/python3",
        IMAGE,
        "-I",
        "-S",
        "-B",
        "/opt/tribunal/harness",
        "digest",
        "tests/sealed/test_a.py",
    ]
    printed = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert printed["functions"] == room.digests(["tests/sealed/test_a.py"])["functions"]

"""Files: src laid out safely, places emptied whatever is in them."""

import io
import os
import stat
import tarfile
import types

import pytest

from harness import etc, sweep
from harness.layout import Layout, package_version
from harness.orders import Policy
from harness.overlay import Overlay, OverlayError, TarStream
from harness.source import Sides

ROOTS = ("src/", "lib/deep/", "parse.py", "tools/one.py")


@pytest.fixture
def layout(tmp_path, monkeypatch):
    # In a container each place is a file system of its own; here others write to the same one.
    monkeypatch.setattr(os, "statvfs", lambda _: types.SimpleNamespace(f_bfree=1, f_ffree=1))
    for name in ("tree/src", "tree/lib/deep", "srcfiles", "state", "home"):
        (tmp_path / name).mkdir(parents=True)
    return Layout(
        tree=str(tmp_path / "tree"), srcfiles=str(tmp_path / "srcfiles"), state=str(tmp_path / "state"),
        home=str(tmp_path / "home"),
    )  # fmt: skip


def tar(*entries) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, kind, content, mode in entries:
            info = tarfile.TarInfo(name)
            info.type, info.mode, info.mtime, info.uid = kind, mode, 1_700_000_000.5, 4711
            if kind == tarfile.REGTYPE:
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
            else:
                info.linkname = content
                archive.addfile(info)
    return out.getvalue()


def file(name, content=b"x", mode=0o644):
    return name, tarfile.REGTYPE, content, mode


def link(name, to):
    return name, tarfile.SYMTYPE, to, 0o777


def stream(data: bytes, step: int = 1000) -> TarStream:
    pieces = iter([data[at : at + step] for at in range(0, len(data), step)])
    return TarStream(lambda: next(pieces, b""))


@pytest.mark.parametrize("step", [1, 511, 513, 100_000])
def test_src_is_laid_as_sent(layout, step):
    long = "src/" + "d" * 90 + "/" + "n" * 120 + "é.py"
    overlay = Overlay(layout, ROOTS)
    data = tar(
        file("src/a.py", b"A" * 5000), file("src/pkg/run.sh", b"", 0o755), ("src/pkg/empty", tarfile.DIRTYPE, "", 0o700),
        file("src/odd.py", b"", 0o6777), link("src/pkg/up.py", "../a.py"), link("src/gone", "pkg/../nothing"), link("src/out", "../lib"),
        file("lib/deep/b.py"), file("parse.py", b"P"), file("tools/one.py", b"T"), file(long, b"L"),
        ("src/", tarfile.DIRTYPE, "", 0o755),
    )  # fmt: skip
    overlay.lay(stream(data, step))
    tree, srcfiles = layout.tree, layout.srcfiles
    assert open(f"{tree}/src/a.py", "rb").read() == b"A" * 5000
    assert open(f"{srcfiles}/parse.py", "rb").read() == b"P"
    assert open(f"{srcfiles}/tools/one.py", "rb").read() == b"T"
    assert open(f"{tree}/{long}", "rb").read() == b"L"
    assert os.readlink(f"{tree}/src/pkg/up.py") == "../a.py"
    modes = {
        name: stat.S_IMODE(os.lstat(f"{tree}/src/{name}").st_mode)
        for name in ("a.py", "pkg/run.sh", "pkg", "pkg/empty", "odd.py")
    }
    assert modes == {"a.py": 0o644, "pkg/run.sh": 0o755, "pkg": 0o755, "pkg/empty": 0o750, "odd.py": 0o755}
    assert os.stat(f"{tree}/src/pkg/empty").st_gid == layout.oracle_group  # closed to others: the oracle's
    assert os.stat(f"{tree}/src/a.py").st_mtime == 1_700_000_000
    assert os.stat(f"{tree}/src/a.py").st_uid == os.getuid()
    assert overlay.unchanged()


@pytest.mark.parametrize(
    "entries",
    [
        [file("other/a.py")], [file("srcs/a.py")], [file("/src/a.py")], [file("src/../a.py")], [file("src/./a.py")],
        [file("src//a.py")], [file("parse.py/x")], [file("parse.pyx")], [file("lib/a.py")], [("src/h", tarfile.LNKTYPE, "src/a", 0o644)],
        [("src/f", tarfile.FIFOTYPE, "", 0o644)], [("src/c", tarfile.CHRTYPE, "", 0o644)], [link("src/l", "/etc/passwd")],
        [link("src/l", "../../x")], [link("src/l", "../..")],
        [link("src/l", "d"), ("src/d", tarfile.DIRTYPE, "", 0o755), file("src/l/a.py")], [file("src/a"), file("src/a")],
        [file("src/a"), file("src/a/b")], [link("src/a", "b"), file("src/a")], [link("parse.py", "src/a.py")],
        [("src", tarfile.SYMTYPE, "lib", 0o777)],
    ],
)  # fmt: skip
def test_what_may_not_be_laid(layout, entries):
    with pytest.raises(OverlayError):
        Overlay(layout, ROOTS).lay(stream(tar(*entries)))
    for folder, _, files in os.walk(os.path.dirname(layout.tree)):
        for name in files:
            assert os.path.join(folder, name).startswith((f"{layout.tree}/src/", layout.srcfiles))


@pytest.mark.parametrize("data", [b"x" * 2000, tar(file("src/a.py", b"x" * 9000))[:4000], b"\x1f\x8b" + b"\0" * 600])
def test_what_is_no_whole_tar(layout, data):
    with pytest.raises(OverlayError):
        Overlay(layout, ROOTS).lay(stream(data))


def test_an_empty_src(layout):
    overlay = Overlay(layout, ROOTS)
    overlay.lay(stream(tar()))
    assert overlay.unchanged()


def test_a_change_is_seen(layout):
    overlay = Overlay(layout, ROOTS)
    overlay.lay(stream(tar(file("src/a.py"))))
    open(f"{layout.tree}/src/new.py", "w").close()
    assert not overlay.unchanged()


def test_emptying_whatever_is_there(tmp_path):
    top = tmp_path / "top"
    top.mkdir()
    (top / "closed").mkdir()
    (top / "closed" / "file").write_text("x")
    (top / "closed").chmod(0)
    (top / "link").symlink_to(tmp_path)
    os.mkfifo(top / "fifo")
    (top / "-rf\n\udcff").write_text("x")
    here = os.open(".", os.O_RDONLY)
    os.chdir(top)
    for _ in range(3000):  # longer than any path may be
        os.mkdir("deep" * 10)
        os.chdir("deep" * 10)
    os.fchdir(here)
    os.close(here)
    (tmp_path / "kept").write_text("x")
    top.chmod(0o500)
    sweep.empty(str(top), 0o1777)
    assert list(top.iterdir()) == []
    assert stat.S_IMODE(top.stat().st_mode) == 0o1777
    assert top.stat().st_mtime == 0
    assert (tmp_path / "kept").exists()
    sweep.empty(str(tmp_path / "nonesuch"), 0o755)


def test_accounts_and_import_path(layout):
    etc.write(layout, 70_000, 2, (".", "src", "a/b"))
    read = {name: open(f"{layout.etc}/{name}").read().splitlines() for name in os.listdir(layout.etc)}
    assert read["passwd"][0].startswith("root:x:0:0:")
    assert read["passwd"][2] == f"attempt-70001:x:70001:70001::{layout.home}:/bin/sh"
    assert read["group"] == ["root:x:0:", "oracle:x:990:", "attempt-70000:x:70000:", "attempt-70001:x:70001:"]
    assert read["project.pth"] == [layout.tree, f"{layout.tree}/src", f"{layout.tree}/a/b", "/opt/tribunal/deps"]


def test_versions_are_read_from_names(tmp_path):
    (tmp_path / "pytest-9.2.0.dist-info").mkdir()
    (tmp_path / "pytest_cov-1.0.dist-info").mkdir()
    assert package_version(str(tmp_path), "pytest") == "9.2.0"
    assert package_version(str(tmp_path), "hypothesis") is None


def test_the_side_of_a_file(layout):
    policy = Policy(
        src_roots=ROOTS, sealed_roots=("src/pkg/tests/",), pythonpath=(), own_names=None, shared=(), timezone="UTC", seed_env=(),
        attempt_timeout_ms=1, case_timeout_ms=1, output_bytes=1, preload="", cpus=1,
    )  # fmt: skip
    sides = Sides(layout, policy)
    tree = layout.tree
    assert {path: sides.of_file(path) for path in (
        f"{tree}/src/a.py", f"{tree}/src/pkg/tests/test_a.py", f"{tree}/tests/test_a.py", f"{tree}/parse.py",
        f"{tree}/parse.pyx", f"{layout.srcfiles}/parse.py", f"{tree}/srcs/a.py", "/usr/lib/python3/os.py", "<string>",
    )} == {
        f"{tree}/src/a.py": "product", f"{tree}/src/pkg/tests/test_a.py": "sealed", f"{tree}/tests/test_a.py": "sealed",
        f"{tree}/parse.py": "product", f"{tree}/parse.pyx": "sealed", f"{layout.srcfiles}/parse.py": "product",
        f"{tree}/srcs/a.py": "sealed", "/usr/lib/python3/os.py": None, "<string>": None,
    }  # fmt: skip

"""The import path of an attempt, and what a zygote warms of it."""

import pytest

FILES = {
    "src/mine.py": "VALUE = 'src'\n",
    "src/json.py": "VALUE = 'src'\n",
    "src/both.py": "VALUE = 'src'\n",
    "src/packaging.py": "VALUE = 'src'\n",
    "tests/sealed/helper.py": "VALUE = 'sealed'\n",
    "src/helper.py": "VALUE = 'src'\n",
    "tests/sealed/test_a.py": """
import os
import third.part
import both, helper, json, mine
def test_order():
    assert (mine.VALUE, both.VALUE, helper.VALUE) == ("src", "src", "sealed")
    assert json.loads("1") == 1
def test_part(): assert third.part.VALUE == "deps"
def test_where(): print(third.part.PID == os.getpid())
def test_pinned(): print(third.part.TIME)
""",
}
DEPS = {
    "third/__init__.py": "",
    "third/part.py": "import os, time\nVALUE, PID, TIME = 'deps', os.getpid(), time.time()\n",
    "both.py": "VALUE = 'deps'\n",
    "pytest/__init__.py": "raise RuntimeError('another pytest')\n",
}


@pytest.fixture
def deps(tmp_path):
    for name, text in DEPS.items():
        path = tmp_path / "deps" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return ["--volume", f"{tmp_path / 'deps'}:/opt/tribunal/deps:ro"]


@pytest.mark.parametrize(("preload", "own"), [("auto", "False"), ("none", "True")])
def test_the_order_of_places_and_what_is_warmed(open_room, deps, preload, own):
    ran = open_room(FILES, {"preload": preload, "pythonpath": ["src"]}, options=deps).attempt()
    assert set(ran.outcomes().values()) == {"passed"}, ran.failures()
    name = "tests/sealed/test_a.py::"
    assert ran.phase(name + "test_where", "call")["output"] == f"{own}\n"
    assert ran.phase(name + "test_pinned", "call")["output"] == "1789171200.0\n"  # even where a zygote imported it


def test_a_start_that_fails_is_the_harness_trouble(tmp_path):
    from room import Room, lay

    tree = lay(tmp_path / "tree", {"tests/sealed/test_a.py": "def test_a(): pass\n"})
    with Room(tree, options=["--tmpfs", "/opt/tribunal/runner"]) as room:
        assert (room.ready["pytest"], room.ready["hypothesis"]) == (None, None)
        answer = room.configure()
        assert (answer["type"], answer["code"]) == ("trouble", "zygote-failed")
        assert "pytest" in answer["message"]
        assert room.hang_up() == 1

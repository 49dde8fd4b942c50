"""A module that the product loads from outside of src, the tree, its dependencies and the interpreter is told."""

PRODUCT = """
import importlib.util, json.tool, os, sys, zipfile

def write(path, text="X = 1"):
    with open(path, "w") as file: file.write(text)
    return path

def by_path():
    sys.path.append(os.path.dirname(write("/tmp/written.py")))
    import written
    return written.X

def by_place():
    spec = importlib.util.spec_from_file_location("placed", write("/dev/shm/placed.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.X

def zipped():
    with zipfile.ZipFile("/tmp/more.zip", "w") as archive: archive.writestr("within.py", "X = 1")
    sys.path.append("/tmp/more.zip")
    import within
    return within.X

def around():
    sys.path.append("/tree/src/../../tmp/../home/attempt")
    write("/home/attempt/around.py")
    import around
    return around.X

def usual():
    import own, xml.dom.minidom, decimal
    return own.X
"""

SEALED = """
import lib, pytest
@pytest.mark.parametrize("name", ["usual", "by_path", "by_place", "zipped", "around"])
def test_it(name): assert getattr(lib, name)() == 1
def test_after(): assert lib.usual() == 1
"""


def test_a_module_from_elsewhere_is_told(split):
    files = {"src/lib.py": PRODUCT, "src/own.py": "X = 1", "tests/sealed/test_a.py": SEALED}
    ran = split(files)
    assert set(ran.outcomes().values()) == {"passed"}, ran.failures()
    told = {
        node.partition("::test_")[2]: [each for phase in phases for each in phase["tamper"]]
        for node, phases in ran.cases.items()
    }
    assert told == {
        "it[usual]": [], "after": [],
        "it[by_path]": [{"kind": "foreign-module", "what": "written from /tmp"}],
        "it[by_place]": [{"kind": "foreign-module", "what": "placed from /dev"}],
        "it[zipped]": [{"kind": "foreign-module", "what": "within from /tmp"}],
        "it[around]": [{"kind": "foreign-module", "what": "around from /home"}],
    }  # fmt: skip
    assert ran.end["tamper"] == []

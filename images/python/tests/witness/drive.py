"""Runs snippets as product and as sealed code under the witness, and prints what it told: one JSON object.

Usage: drive.py LIBRARY FOLDER, with the snippets as JSON on stdin: `[[name, product text, sealed text], ...]`. Each is
imported in a process of its own: first the product module `lib`, then the sealed module `check`, which may use it.
"""

import ctypes
import dis
import hashlib
import hmac
import importlib
import importlib.machinery
import importlib.util
import json
import os
import struct
import sys
import time
import traceback
from pathlib import Path

# What a zygote has loaded before any product code.
LOADED = "csv decimal enum functools gc inspect logging operator random re threading types typing unittest.mock weakref"
for name in LOADED.split():
    importlib.import_module(name)

KEY = bytes(range(32))
sys.dont_write_bytecode = True
STORING = [code for name, code in dis.opmap.items() if name.startswith(("STORE_", "DELETE_")) and code < 256]
STORES = bytes([dis.opmap["CALL_INTRINSIC_1"], *STORING])


class Sample:
    def __eq__(self, other):
        return self is other

    def __sub__(self, other):
        return other

    def __contains__(self, other):
        return self is other

    __hash__ = None


def locals_proxy():
    return sys._getframe().f_locals


def load(path):
    spec = importlib.machinery.ModuleSpec(
        "tribunal_witness", importlib.machinery.ExtensionFileLoader("tribunal_witness", path), origin=path
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def place(folder, name, text):
    path = Path(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


witness = None


def say(record):
    witness.send(json.dumps(record).encode())


def run(folder, product, sealed):
    place(folder, "src/lib.py", product)
    place(folder, "sealed/check.py", sealed)
    sys.path[:0] = [f"{folder}/src", f"{folder}/sealed"]
    try:
        import check  # noqa: F401
    except BaseException:
        traceback.print_exc()
    say({"kind": "end"})


def told(data):
    """Every record, with its mark checked."""
    at = number = 0
    facts = []
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        body = data[at + 5 : at + 4 + length]
        at += 4 + length
        mark, text = body[:32], body[32:]
        want = hmac.digest(KEY, struct.pack(">Q", number) + text, hashlib.sha256).hex()[:32]
        assert mark.decode() == want, (number, text)
        number += 1
        record = json.loads(text)
        if record["kind"] == "tamper":
            facts.append(f"{record['tamper']}: {record['what']}")
    return facts + ([] if number and record == {"kind": "end"} else ["no end"])


def main(library, folder):
    global witness
    witness = load(library)
    prefixes = [
        (f"{folder}/src/", "product"),
        (f"{folder}/sealed/", "sealed"),
        (__file__, "harness"),
        (f"{os.path.dirname(os.__file__)}/", "library"),
        ("<frozen ", "library"),
    ]
    begun = time.perf_counter()
    count = witness.watch(
        [*map(tuple, prefixes)],
        [f"{folder}/sealed/check.py"],
        ["SEED"],
        Sample(),
        locals_proxy(),
        type(ctypes.pythonapi.Py_IncRef).__mro__[1],
        STORES,
    )
    took = (time.perf_counter() - begun) * 1000
    out = {}
    for name, product, sealed in json.load(sys.stdin):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            key_reader, key_writer = os.pipe()
            os.write(key_writer, KEY)
            witness.open(key_reader, writer)
            witness.arm(say)
            run(folder, product, sealed)
            os._exit(0)
        os.close(writer)
        with open(reader, "rb") as stream:
            data = stream.read()
        os.waitpid(pid, 0)
        out[name] = told(data)
    print(json.dumps({"armed": count, "milliseconds": took, "facts": out}))


main(*sys.argv[1:])

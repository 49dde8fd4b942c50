"""Draws random bytes in every way and in every kind of child; one line a draw, `name<TAB>value`."""

import ctypes
import os
import random
import secrets
import subprocess
import sys
import uuid

libc = ctypes.CDLL(None)
DRAW = "import os; print(os.urandom(8).hex())"
KEPT = {name: os.environ[name] for name in ("LD_PRELOAD", "TRIBUNAL_TEST_PAGE") if name in os.environ}


def say(name, value):
    print(f"{name}\t{value}", flush=True)


def forked(draw):
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writer, draw().encode())
        os._exit(0)
    os.close(writer)
    value = os.read(reader, 1000).decode()
    os.close(reader)
    os.waitpid(pid, 0)
    return value


def spawned(function, *extra):
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    arguments = [sys.executable, "-c", f"import os; os.write({writer}, os.urandom(8).hex().encode())"]
    pid = function(sys.executable, arguments, KEPT, *extra)
    os.waitpid(pid, 0)
    os.close(writer)
    value = os.read(reader, 1000).decode()
    os.close(reader)
    return value


def became():
    """fork, then exec in the child."""

    def function(path, arguments, environment):
        pid = os.fork()
        if pid == 0:
            os.execve(path, arguments, environment)
        return pid

    return spawned(function)


def buffer(call):
    place = ctypes.create_string_buffer(8)
    assert call(place, 8) in (0, 8)
    return place.raw.hex()


def run(code=DRAW):
    return subprocess.run(
        [sys.executable, "-c", code], env=KEPT, check=True, capture_output=True, text=True
    ).stdout.strip()


say("urandom", os.urandom(8).hex())
say("urandom again", os.urandom(8).hex())
say("long", os.urandom(100).hex())
say("uuid4", uuid.uuid4())
say("secrets", secrets.token_hex(8))
say("random", random.random())  # seeded by os.urandom at import
say("SystemRandom", random.SystemRandom().random())
say("getentropy", buffer(libc.getentropy))
number = {"x86_64": 318, "aarch64": 278}[os.uname().machine]
say("syscall", buffer(lambda place, size: libc.syscall(number, place, size, 0)))
if hasattr(libc, "arc4random_buf"):
    place = ctypes.create_string_buffer(8)
    libc.arc4random_buf(place, 8)
    say("arc4random_buf", place.raw.hex())
say("first fork", forked(lambda: os.urandom(8).hex()))
say("second fork", forked(lambda: os.urandom(8).hex()))
say("grandchild", forked(lambda: forked(lambda: os.urandom(8).hex())))
say("parent after forks", os.urandom(8).hex())
say("first subprocess", run())
say("second subprocess", run())
say(
    "subprocess of a subprocess",
    run(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {DRAW!r}], check=True)"),
)
say("fork and exec", became())
say("posix_spawn", spawned(os.posix_spawn))
say("posix_spawnp", spawned(os.posix_spawnp))
shell = f"{sys.executable} -c '{DRAW}'; {sys.executable} -c '{DRAW}'"
for place, value in enumerate(
    subprocess.run(shell, shell=True, check=True, capture_output=True, text=True).stdout.split()
):
    say(f"in a shell {place}", value)
leaks = [name for name in os.environ if name.startswith("TRIBUNAL_LINEAGE")]
child = subprocess.run(["env"], env=KEPT, check=True, capture_output=True, text=True).stdout
say("environment", leaks + sorted(line.partition("=")[0] for line in child.splitlines()))

"""Finds nothing of an earlier attempt, and leaves all it can for the next."""

import os
import subprocess
import sys

PLACES = ["/tmp", "/dev/shm", "/dev/mqueue", os.environ["HOME"]]


def others():
    """Processes that are neither root's nor this attempt's own: the oracle's user, and the product's next to it."""
    mine = os.getuid()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                owner = os.stat(f"/proc/{name}").st_uid
            except FileNotFoundError:
                continue
            if owner not in (0, mine, mine + 1):
                found.append((name, owner))
    return found


#: passes
def test_finds_nothing():
    assert others() == []
    for place in PLACES:
        left = [name for name in os.listdir(place) if not name.startswith("pytest-of-")]
        assert left == [], (place, left)
    print("uid", os.getuid())


#: passes
def test_leaves_all_it_can():
    for place in PLACES:
        try:
            with open(f"{place}/left", "w") as file:
                file.write("behind")
        except OSError:
            assert place == "/dev/mqueue"
        if place != "/dev/mqueue":
            os.makedirs(f"{place}/deep/er", mode=0o000)
    pause = "import signal; signal.pause()"
    for _ in range(3):
        subprocess.Popen([sys.executable, "-I", "-c", pause], start_new_session=True)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                try:
                    if os.fork() == 0:
                        continue
                    os._exit(0)
                except OSError:
                    pass
        os._exit(0)

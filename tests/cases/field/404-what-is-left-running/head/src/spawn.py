"""Starts things."""
import atexit
import subprocess
import threading
import time


def spawn():
    threading.Thread(target=time.sleep, args=(900,)).start()
    subprocess.Popen(["sleep", "900"])
    atexit.register(time.sleep, 900)
    return 1

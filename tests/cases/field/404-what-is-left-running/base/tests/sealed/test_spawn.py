import threading
import time

from src.spawn import spawn


def test_spawn():
    threading.Thread(target=time.sleep, args=(900,)).start()
    assert spawn() == 1

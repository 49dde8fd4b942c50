"""What is seen of a process that ends."""

import os
import signal

from harness.reaper import is_leaving


def test_a_process_is_leaving_from_when_its_descriptors_close():
    closes, held = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(closes)
        signal.pause()
        os._exit(1)
    os.close(held)
    assert not is_leaving(pid)
    os.kill(pid, signal.SIGKILL)
    assert os.read(closes, 1) == b""  # its end of the pipe is closed, and nobody has reaped it
    assert is_leaving(pid)
    os.waitpid(pid, 0)
    assert not is_leaving(pid)
    os.close(closes)

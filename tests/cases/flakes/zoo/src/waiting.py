import asyncio
import queue
import subprocess
import threading
import time

from toss import heads


def saved_in_time():
    done = []
    worker = threading.Timer(jitter(0.001, 0.008), done.append, (1,))
    worker.start()
    time.sleep(0.004)
    saved = bool(done)
    worker.join()
    return saved


def jitter(low, high):
    """How long a machine takes: now this, now that."""
    return high if heads(time.monotonic_ns()) else low


def timed_out():
    async def main():
        try:
            await asyncio.wait_for(asyncio.sleep(jitter(0.001, 0.05)), 0.02)
        except TimeoutError:
            return True
        return False

    return asyncio.run(main())


def child_is_done():
    child = subprocess.Popen(["sleep", "0.02"])
    time.sleep(jitter(0.001, 0.2))
    done = child.poll() is not None
    child.wait()
    return done


def polls_until(seconds):
    """By how many tenths of a microsecond it was late."""
    until = time.monotonic() + seconds
    while (late := time.monotonic() - until) < 0:
        time.sleep(0.0003)
    return heads(int(late * 1e7))


def first_message():
    box = queue.Queue()
    threads = [threading.Timer(0.004, box.put, ("a",)), threading.Timer(jitter(0.001, 0.012), box.put, ("b",))]
    for thread in threads:
        thread.start()
    try:
        first = box.get(timeout=1)
    except queue.Empty:
        first = ""
    for thread in threads:
        thread.join()
    return first + (box.get() if first else "")


def lagged():
    began = time.monotonic()
    time.sleep(0.001)
    return heads(int((time.monotonic() - began) * 1e7))


async def _twice():
    await asyncio.sleep(0)
    return 2


def awaited():
    return asyncio.run(_twice())

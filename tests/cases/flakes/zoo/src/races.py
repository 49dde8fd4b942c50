import concurrent.futures
import sys
import threading
import time

from toss import heads


def counted(threads, times):
    """Read, wait for a moment, write: updates get lost."""
    total = [0]

    def work():
        for _ in range(times):
            value = total[0]
            for _ in range(20):
                pass
            total[0] = value + 1

    _together(work, threads)
    return total[0]


def logged(threads, lines):
    log = []

    def work():
        name = threading.current_thread().name
        for _ in range(lines):
            for _ in range(50):
                pass
            log.append(name)

    _together(work, threads)
    return [place for place, (one, other) in enumerate(zip(log, log[1:])) if one != other]


def shared_once(threads):
    """A lazy value without a lock."""
    made, held = [], []
    slow = 400000 if heads(time.monotonic_ns()) else 10

    def work():
        if not held:
            for _ in range(slow):
                pass
            made.append(1)
            held.append(1)

    _together(work, threads)
    return len(made)


def completed(n):
    def work(number):
        return sum(range(4000 + number)) and number

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(work, number) for number in range(n)]
        return [job.result() for job in concurrent.futures.as_completed(jobs)]


def summed(n):
    """Floating point: the order of threads is the order of the sum."""
    total = [0.0]

    def work():
        name = int(threading.current_thread().name)
        for step in range(400):
            value = total[0]
            for _ in range(10):
                pass
            total[0] = value + 10.0 ** ((name + step) % 12) / 3

    _together(work, n)
    return total[0]


def _together(work, threads):
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        group = [threading.Thread(target=work, name=str(number)) for number in range(threads)]
        for thread in group:
            thread.start()
        for thread in group:
            thread.join()
    finally:
        sys.setswitchinterval(before)

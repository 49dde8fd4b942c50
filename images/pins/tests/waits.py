"""Every way to wait that Python has, and the C ones that take a moment of the wall clock.

Prints one line a wait: its name and how long it took by the monotonic clock, in milliseconds. Each is
asked to wait for WAIT seconds and nothing ever comes to end it early.
"""

import asyncio
import concurrent.futures
import ctypes
import multiprocessing
import os
import queue
import select
import signal
import socket
import subprocess
import threading
import time

WAIT = 0.25
libc = ctypes.CDLL(None, use_errno=True)
REALTIME, MONOTONIC, ABSOLUTE = 0, 1, 1
ETIMEDOUT = 110


class Timespec(ctypes.Structure):
    _fields_ = (("sec", ctypes.c_long), ("nsec", ctypes.c_long))


class Itimerspec(ctypes.Structure):
    _fields_ = (("interval", Timespec), ("value", Timespec))


def soon(clock):
    moment = time.clock_gettime_ns(clock) + int(WAIT * 1e9)
    return Timespec(*divmod(moment, 1_000_000_000))


def opaque():
    return ctypes.create_string_buffer(256)


def condition(clock, how):
    attribute, variable, mutex = opaque(), opaque(), opaque()
    libc.pthread_condattr_init(attribute)
    libc.pthread_condattr_setclock(attribute, clock)
    libc.pthread_cond_init(variable, attribute)
    libc.pthread_mutex_init(mutex, None)
    libc.pthread_mutex_lock(mutex)
    assert how(variable, mutex) == ETIMEDOUT


def held_mutex():
    mutex = opaque()
    libc.pthread_mutex_init(mutex, None)
    libc.pthread_mutex_lock(mutex)
    return mutex


def held_rwlock():
    lock = opaque()
    libc.pthread_rwlock_init(lock, None)
    libc.pthread_rwlock_wrlock(lock)
    return lock


def elsewhere(timed_lock, lock):
    """A thread that holds a lock itself is refused with EDEADLK: another one waits for it."""
    results = []
    thread = threading.Thread(target=lambda: results.append(timed_lock(lock, ctypes.byref(soon(REALTIME)))))
    thread.start()
    thread.join()
    assert results == [ETIMEDOUT], results


def semaphore(how):
    empty = opaque()
    libc.sem_init(empty, 0, 0)
    assert how(empty) == -1
    assert ctypes.get_errno() == ETIMEDOUT, ctypes.get_errno()


def timerfd():
    fd = libc.timerfd_create(REALTIME, 0)
    libc.timerfd_settime(fd, ABSOLUTE, ctypes.byref(Itimerspec(Timespec(0, 0), soon(REALTIME))), None)
    assert select.select([fd], [], [], 5)[0]
    os.close(fd)


def monotonic_timerfd():
    fd = libc.timerfd_create(MONOTONIC, 0)
    libc.timerfd_settime(fd, ABSOLUTE, ctypes.byref(Itimerspec(Timespec(0, 0), soon(MONOTONIC))), None)
    assert select.select([fd], [], [], 5)[0]
    os.close(fd)


def posix_timer():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    timer = ctypes.c_void_p()
    assert libc.timer_create(REALTIME, None, ctypes.byref(timer)) == 0
    moment = Itimerspec(Timespec(0, 0), soon(REALTIME))
    assert libc.timer_settime(timer, ABSOLUTE, ctypes.byref(moment), None) == 0
    assert signal.sigtimedwait([signal.SIGALRM], 5) is not None
    libc.timer_delete(timer)


def futex():
    number = {"x86_64": 202, "aarch64": 98}[os.uname().machine]
    word = ctypes.c_int(0)
    wait_bitset_on_wall = 9 | 256
    libc.syscall.restype = ctypes.c_long
    arguments = (number, ctypes.byref(word), wait_bitset_on_wall, 0, ctypes.byref(soon(REALTIME)), None, -1)
    assert libc.syscall(*arguments) == -1
    assert ctypes.get_errno() == ETIMEDOUT


def times_out(error, call):
    try:
        call()
    except error:
        return
    raise AssertionError("it did not time out")


async def never():
    await asyncio.Event().wait()


async def nested():
    try:
        await asyncio.wait_for(never(), WAIT)
    except TimeoutError:
        return
    raise AssertionError("it did not time out")


def held():
    lock = threading.Lock()
    lock.acquire()
    return lock


def timer():
    fired = threading.Event()
    threading.Timer(WAIT, fired.set).start()
    assert fired.wait(5)


def alarm():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    signal.setitimer(signal.ITIMER_REAL, WAIT)
    assert signal.sigtimedwait([signal.SIGALRM], 5) is not None


def reading():
    left, right = socket.socketpair()
    left.settimeout(WAIT)
    times_out(socket.timeout, lambda: left.recv(1))
    right.close()


def unfinished():
    executor = concurrent.futures.ThreadPoolExecutor(1)
    future = executor.submit(time.sleep, 4 * WAIT)
    times_out(concurrent.futures.TimeoutError, lambda: future.result(WAIT))


def shared(kind):
    context = multiprocessing.get_context("fork")
    lock = getattr(context, kind)()
    lock.acquire()
    return lock


def thread_condition():
    variable = threading.Condition()
    with variable:
        assert not variable.wait(WAIT)


def join():
    thread = threading.Thread(target=time.sleep, args=(4 * WAIT,), daemon=True)
    thread.start()
    thread.join(WAIT)


def shared_condition():
    variable = multiprocessing.get_context("fork").Condition()
    with variable:
        assert not variable.wait(WAIT)


WAITS = {
    "time.sleep": lambda: time.sleep(WAIT),
    "Event.wait": lambda: threading.Event().wait(WAIT),
    "Lock.acquire": lambda: held().acquire(timeout=WAIT),
    "Condition.wait": thread_condition,
    "Semaphore.acquire": lambda: threading.Semaphore(0).acquire(timeout=WAIT),
    "Thread.join": join,
    "threading.Timer": timer,
    "Queue.get": lambda: times_out(queue.Empty, lambda: queue.Queue().get(timeout=WAIT)),
    "SimpleQueue.get": lambda: times_out(queue.Empty, lambda: queue.SimpleQueue().get(timeout=WAIT)),
    "asyncio.sleep": lambda: asyncio.run(asyncio.sleep(WAIT)),
    "asyncio.wait_for": lambda: asyncio.run(nested()),
    "Future.result": unfinished,
    "subprocess.run": lambda: times_out(
        subprocess.TimeoutExpired, lambda: subprocess.run(["sleep", "5"], timeout=WAIT, check=False)
    ),
    "sleep(1)": lambda: subprocess.run(["sleep", str(WAIT)], check=True),
    "multiprocessing.Lock": lambda: shared("Lock").acquire(timeout=WAIT),
    "multiprocessing.Semaphore": lambda: shared("Semaphore").acquire(timeout=WAIT),
    "multiprocessing.Event": lambda: multiprocessing.get_context("fork").Event().wait(WAIT),
    "multiprocessing.Condition": shared_condition,
    "multiprocessing.Queue": lambda: times_out(
        queue.Empty, lambda: multiprocessing.get_context("fork").Queue().get(timeout=WAIT)
    ),
    "select": lambda: select.select([], [], [], WAIT),
    "poll": lambda: select.poll().poll(WAIT * 1000),
    "epoll": lambda: select.epoll().poll(WAIT),
    "socket timeout": reading,
    "setitimer": alarm,
    "sigtimedwait": lambda: signal.sigtimedwait([signal.SIGUSR1], WAIT),
    "sem_timedwait": lambda: semaphore(lambda s: libc.sem_timedwait(s, ctypes.byref(soon(REALTIME)))),
    "sem_clockwait wall": lambda: semaphore(lambda s: libc.sem_clockwait(s, REALTIME, ctypes.byref(soon(REALTIME)))),
    "sem_clockwait monotonic": lambda: semaphore(
        lambda s: libc.sem_clockwait(s, MONOTONIC, ctypes.byref(soon(MONOTONIC)))
    ),
    "pthread_cond_timedwait wall": lambda: condition(
        REALTIME, lambda c, m: libc.pthread_cond_timedwait(c, m, ctypes.byref(soon(REALTIME)))
    ),
    "pthread_cond_timedwait monotonic": lambda: condition(
        MONOTONIC, lambda c, m: libc.pthread_cond_timedwait(c, m, ctypes.byref(soon(MONOTONIC)))
    ),
    "pthread_cond_clockwait wall": lambda: condition(
        MONOTONIC, lambda c, m: libc.pthread_cond_clockwait(c, m, REALTIME, ctypes.byref(soon(REALTIME)))
    ),
    "pthread_mutex_timedlock": lambda: elsewhere(libc.pthread_mutex_timedlock, held_mutex()),
    "pthread_rwlock_timedrdlock": lambda: elsewhere(libc.pthread_rwlock_timedrdlock, held_rwlock()),
    "pthread_rwlock_timedwrlock": lambda: elsewhere(libc.pthread_rwlock_timedwrlock, held_rwlock()),
    "clock_nanosleep": lambda: libc.clock_nanosleep(REALTIME, ABSOLUTE, ctypes.byref(soon(REALTIME)), None),
    "timerfd wall": timerfd,
    "timerfd monotonic": monotonic_timerfd,
    "timer_settime": posix_timer,
    "futex": futex,
}
if __name__ == "__main__":
    for name, wait in WAITS.items():
        before = time.monotonic()
        wait()
        print(f"{name}\t{(time.monotonic() - before) * 1000:.0f}", flush=True)
    os._exit(0)

"""What a test may and may not ask of the kernel in a sealed room: one JSON object on stdout."""

import asyncio
import concurrent.futures
import ctypes
import errno
import json
import mmap
import multiprocessing
import os
import platform
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

sys.path[:0] = ["/opt/tribunal/runner", "/opt/tribunal/deps"]

# Numbers of x86-64 and of AArch64.
DENIED = {
    "memfd_create": (319, 279),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "kcmp": (312, 272),
    "perf_event_open": (298, 241),
    "bpf": (321, 280),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "pidfd_getfd": (438, 438),
    "open_by_handle_at": (304, 265),
    "adjtimex": (159, 171),
    "clone3": (435, 435),
}
libc = ctypes.CDLL(None, use_errno=True)


def refusal(numbers):
    number = numbers[0 if platform.machine() == "x86_64" else 1]
    ctypes.set_errno(0)
    if libc.syscall(ctypes.c_long(number), 0, 0, 0, 0, 0, 0) >= 0:
        return "allowed"
    return errno.errorcode[ctypes.get_errno()]


def threads():
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return sum(pool.map(abs, range(-4, 0)))


def processes():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return sum(pool.map(abs, [-1, -2]))


def spawned():
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(abs, -3).result(60)


async def child():
    process = await asyncio.create_subprocess_exec("/usr/bin/true")
    return await process.wait()


def files():
    with tempfile.TemporaryFile() as file:
        file.write(b"x" * mmap.PAGESIZE)
        file.flush()
        with mmap.mmap(file.fileno(), 0) as memory:
            return memory[:1].decode()


def sockets():
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as client:
            client.sendall(b"x")
            peer, _ = server.accept()
            with peer:
                return peer.recv(1).decode()


def signals():
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    signal.pause()
    return "returned"


def arrays():
    import numpy

    return int(numpy.linalg.inv(numpy.eye(3)).sum()), float(numpy.dot([1.0, 2.0], [3.0, 4.0]))


def tests():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "test_it.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                "from hypothesis import given, strategies as st, settings\n"
                "@settings(database=None)\n@given(st.integers())\ndef test_it(number): assert number == number\n"
            )
        environment = {"PYTHONPATH": "/opt/tribunal/runner", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", path]
        return subprocess.run(command, env=environment, cwd=folder, capture_output=True, check=False).returncode


def polled():
    with select.epoll() as poll:
        return poll.poll(0.01)


def main():
    allowed = {
        "threads": threads(),
        "lock": threading.Lock().acquire(timeout=0.1),
        "processes": processes(),
        "spawned": spawned(),
        "asyncio": asyncio.run(child()),
        "files": files(),
        "sockets": sockets(),
        "signals": signals(),
        "sqlite": sqlite3.connect(":memory:").execute("select 1").fetchone(),
        "epoll": polled(),
        "sleep": time.sleep(0.01),
        "numpy": arrays(),
        "pytest": tests(),
    }
    json.dump({"denied": {name: refusal(numbers) for name, numbers in DENIED.items()}, "allowed": allowed}, sys.stdout)


if __name__ == "__main__":
    main()

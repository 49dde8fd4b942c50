"""What an attempt finds around it, in a room of a real engine. Each test passes only if its limit is set."""

import ctypes
import errno
import os
import pwd
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys

import pytest

LIBC = ctypes.CDLL(None, use_errno=True)
MIB = 1 << 20


def status():
    with open("/proc/self/status") as lines:
        return dict(line.rstrip("\n").split(":\t", 1) for line in lines if ":\t" in line)


def mounts():
    """Mount point to (its options, its kind, its file system's options)."""
    found = {}
    with open("/proc/self/mountinfo") as lines:
        for line in lines:
            left, right = line.rstrip("\n").split(" - ")
            fields, (kind, _, options) = left.split(" "), right.split(" ")
            found[fields[4]] = set(fields[5].split(",")), kind, set(options.split(","))
    return found


def refused(operation, *codes):
    with pytest.raises(OSError) as caught:
        operation()
    assert caught.value.errno in codes, caught.value


@pytest.mark.parametrize("line", ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"])
def test_no_capability(line):
    assert int(status()[line], 16) == 0


def test_no_new_privileges_and_a_filter():
    assert status()["NoNewPrivs"] == "1"
    assert status()["Seccomp"] == "2"


def test_a_user_of_its_own():
    uid = os.getuid()
    assert 10_000 <= uid < 60_000
    assert os.getresuid() == (uid, uid, uid)
    assert 0 not in os.getresgid()
    assert 0 not in os.getgroups()
    entry = pwd.getpwuid(uid)
    assert entry.pw_name == f"attempt-{uid}"
    assert entry.pw_dir == os.environ["HOME"]


def test_taken_first_when_memory_is_short():
    with open("/proc/self/oom_score_adj") as file:
        assert int(file.read()) == 1000
    with open("/proc/1/oom_score_adj") as file:
        assert int(file.read()) <= 0


@pytest.mark.parametrize("name", ["mem", "environ", "maps", "fd", "root"])
def test_the_first_process_is_closed(name):
    path = f"/proc/1/{name}"
    opened = os.listdir if name in ("fd", "root") else lambda path: open(path, "rb").read()
    refused(lambda: opened(path), errno.EACCES, errno.EPERM)


@pytest.mark.parametrize("number", [0, signal.SIGTERM, signal.SIGKILL])
def test_the_first_process_cannot_be_signalled(number):
    refused(lambda: os.kill(1, number), errno.EPERM)


@pytest.mark.parametrize("place", ["/", "/tree"])
def test_read_only(place):
    options, _, _ = mounts()[place]
    assert "ro" in options


@pytest.mark.parametrize(
    ("place", "mode", "size"),
    [
        ("/tree/src", 0o755, None),
        ("/srcfiles", 0o755, None),
        ("/run/tribunal", 0o711, 8 * MIB),
        ("/home/attempt", 0o700, 64 * MIB),
        ("/tmp", 0o1777, 16 * MIB),
        ("/dev/shm", 0o1777, 64 * MIB),
    ],
)
def test_a_writable_place(place, mode, size):
    options, kind, _ = mounts()[place]
    assert kind == "tmpfs"
    assert {"noexec", "nosuid", "nodev"} <= options
    assert stat.S_IMODE(os.stat(place).st_mode) == mode
    facts = os.statvfs(place)
    bytes_there = facts.f_blocks * facts.f_frsize
    assert bytes_there == size if size else 0 < bytes_there <= 4 * MIB


@pytest.mark.parametrize(
    "path",
    ["/x", "/etc/x", "/tree/x", "/tree/src/x", "/tree/src/app.py", "/srcfiles/x", "/run/tribunal/x",
     "/run/tribunal/pins", "/opt/tribunal/x", "/dev/x", "/home/x", "/var/tmp/x", "/proc/sys/kernel/hostname"],
)  # fmt: skip
def test_no_writing(path):
    refused(lambda: open(path, "r+b" if os.path.exists(path) else "wb"), errno.EROFS, errno.EACCES, errno.EPERM)


@pytest.mark.parametrize("path", ["/tree/src/app.py", "/run/tribunal/pins"])
def test_no_taking_away(path):
    assert os.path.exists(path)
    refused(lambda: os.unlink(path), errno.EROFS, errno.EACCES, errno.EPERM)
    refused(lambda: os.chmod(path, 0o777), errno.EROFS, errno.EACCES, errno.EPERM)


def test_nothing_writable_may_be_run(tmp_path):
    script = tmp_path / "script"
    shutil.copy("/usr/bin/true" if os.path.exists("/usr/bin/true") else sys.executable, script)
    script.chmod(0o755)
    refused(lambda: subprocess.run([script], check=False), errno.EACCES)
    library = next(path for path in open("/proc/self/maps").read().split() if "libc.so" in path)
    copied = shutil.copy(library, tmp_path / "copy.so")
    with pytest.raises(OSError, match="failed to map|not permitted"):
        ctypes.CDLL(str(copied))


def test_a_full_tmp_is_an_error_of_its_own():
    try:
        with open("/tmp/full", "wb", buffering=0) as file:
            refused(lambda: [file.write(bytes(MIB)) for _ in range(17)], errno.ENOSPC)
    finally:
        os.unlink("/tmp/full")


def test_no_network_but_loopback():
    up = set()
    for _, name in socket.if_nameindex():
        with open(f"/sys/class/net/{name}/operstate") as state:
            if state.read().strip() != "down":
                up.add(name)
    assert up == {"lo"}
    with socket.socket() as outside:
        outside.settimeout(5)
        refused(lambda: outside.connect(("192.0.2.1", 80)), errno.ENETUNREACH)
    with pytest.raises(socket.gaierror):
        socket.getaddrinfo("localhost.example.", 80)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        client.sendall(b"here")
        accepted, _ = server.accept()
        with accepted:
            assert accepted.recv(4) == b"here"


@pytest.mark.parametrize(
    ("name", "limits"),
    [("CORE", (0, 0)), ("NOFILE", (1024, 4096)), ("STACK", (8 * MIB, 64 * MIB)), ("MEMLOCK", (65536, 65536))],
)
def test_a_limit_of_each_process(name, limits):
    assert resource.getrlimit(getattr(resource, f"RLIMIT_{name}")) == limits


def test_host_name_and_environment():
    assert socket.gethostname() == "tribunal"
    assert not {"HOSTNAME", "DOCKER_HOST", "LD_PRELOAD", "LD_LIBRARY_PATH", "USER"} & set(os.environ)
    assert [name for name in os.environ if name.startswith("TRIBUNAL")] == ["TRIBUNAL_SEED"]


def call(name, *arguments):
    """A function of the C library that makes one system call: its errno, 0 for success."""
    ctypes.set_errno(0)
    result = getattr(LIBC, name)(*arguments)
    return 0 if result != -1 else ctypes.get_errno()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("memfd_create", (b"x", 0)),
        ("ptrace", (0, 0, 0, 0)),
        ("process_vm_readv", (os.getpid(), 0, 0, 0, 0, 0)),
        ("shmget", (0, 4096, 0o1600)),
        ("semget", (0, 1, 0o1600)),
        ("msgget", (0, 0o1600)),
        ("unshare", (0x10000000,)),
        ("mount", (b"none", b"/tmp", b"tmpfs", 0, 0)),
        ("setns", (0, 0)),
    ],
)
def test_no_such_system_call(name, arguments):
    assert call(name, *arguments) in (errno.EPERM, errno.ENOSYS)


@pytest.mark.parametrize("number", [425, 323, 248, 250, 321], ids=["io_uring", "userfaultfd", "add_key", "keyctl", "bpf"])
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of system calls")
def test_no_such_system_call_by_number(number):
    ctypes.set_errno(0)
    assert LIBC.syscall(number, 0, 0, 0, 0, 0) == -1
    assert ctypes.get_errno() in (errno.EPERM, errno.ENOSYS)


def test_processes_are_counted():
    children = []
    try:
        with pytest.raises(BlockingIOError):
            for _ in range(2000):
                pid = os.fork()
                if pid == 0:
                    signal.pause()
                    os._exit(0)
                children.append(pid)
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    assert 8 <= len(children) <= 64

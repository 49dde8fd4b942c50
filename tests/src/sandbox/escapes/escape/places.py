"""Name spaces, mounts, devices, files, programs of one's own."""

import ctypes
import fcntl
import mmap
import os
import signal
import stat
import struct
import sys

from .ways import LIBC, WAYS, call, in_a_child, said_of, system, way

# Name spaces, mounts, devices.

CLONE_NEWUSER = 0x10000000
for name, flag in {
    "mount": 0x00020000,
    "user": CLONE_NEWUSER,
    "pid": 0x20000000,
    "net": 0x40000000,
    "time": 0x80,
    "cgroup": 0x02000000,
}.items():
    WAYS[f"unshare-{name}"] = lambda flag=flag: call(LIBC.unshare, flag)


@way("clone-user")
def clone_user():
    pid = system(56, CLONE_NEWUSER | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


WAYS["clone3"] = lambda: system(
    435, ctypes.create_string_buffer(struct.pack("11Q", CLONE_NEWUSER, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)), 88
)
WAYS["mount-over-tmp"] = lambda: call(LIBC.mount, b"none", b"/tmp", b"tmpfs", 0, None)
WAYS["mount-bind"] = lambda: call(LIBC.mount, b"/tmp", b"/tree/tests", None, 4096, None)
WAYS["remount-tree"] = lambda: call(LIBC.mount, None, b"/tree", None, 32, None)
WAYS["mount-proc"] = lambda: call(LIBC.mount, b"proc", b"/tmp", b"proc", 0, None)
WAYS["umount-src"] = lambda: call(LIBC.umount2, b"/tree/src", 2)
WAYS["pivot_root"] = lambda: system(155, b"/tmp", b"/tmp")
WAYS["chroot"] = lambda: os.chroot("/tmp")
WAYS["fsopen"] = lambda: system(430, b"tmpfs", 0)
WAYS["open_tree"] = lambda: system(428, -100, b"/tree", 1)
WAYS["move_mount"] = lambda: system(429, -100, b"/tmp", -100, b"/tree", 0)
WAYS["mount_setattr"] = lambda: system(442, -100, b"/tree", 0, ctypes.create_string_buffer(32), 32)
WAYS["setns-file"] = lambda: os.open("/proc/1/ns/mnt", os.O_RDONLY)
WAYS["mknod-memory"] = lambda: os.mknod("/tmp/mem", stat.S_IFCHR | 0o666, os.makedev(1, 1))
WAYS["mknod-disk"] = lambda: os.mknod("/tmp/disk", stat.S_IFBLK | 0o666, os.makedev(254, 0))
WAYS["mknod-overlay"] = lambda: os.mknod("/dev/shm/white", stat.S_IFCHR | 0o666, os.makedev(0, 0)) or "DONE a whiteout"
for path in [
    "mem",
    "kmem",
    "port",
    "kmsg",
    "kvm",
    "fuse",
    "net/tun",
    "loop-control",
    "vda",
    "sda",
    "vsock",
    "console",
    "userfaultfd",
    "cpu/0/msr",
    "hwrng",
]:
    WAYS[f"open-dev-{path}"] = lambda path=path: os.open(f"/dev/{path}", os.O_RDWR)
WAYS["open-dev-tty"] = lambda: os.open("/dev/tty", os.O_RDWR)


@way("type-into-terminal")
def type_into_terminal():
    master, slave = os.openpty()
    try:
        return fcntl.ioctl(slave, 0x5412, b"x")
    finally:
        os.close(master)
        os.close(slave)


# Programs of one's own.


def program(folder):
    path = os.path.join(folder, "program")
    with open(path, "wb") as file:
        file.write(b"#!/bin/sh\nexit 0\n")
    os.chmod(path, 0o755)
    return path


def executed(path):
    return in_a_child(lambda: os.execv(path, [path]))


WAYS["exec-tmp"] = lambda: executed(program("/tmp"))
WAYS["exec-shm"] = lambda: executed(program("/dev/shm"))
WAYS["exec-home"] = lambda: executed(program(os.environ.get("HOME", "/home/attempt")))


@way("execveat")
def execveat():
    descriptor = os.open(program("/tmp"), os.O_RDONLY)
    null = (ctypes.c_char_p * 1)(None)
    try:
        return in_a_child(lambda: system(322, descriptor, b"", null, null, 0x1000))
    finally:
        os.close(descriptor)


@way("exec-by-loader")
def exec_by_loader():
    """The loader is a program that may be run, and runs what it is given."""
    with open("/usr/bin/env" if os.path.exists("/usr/bin/env") else sys.executable, "rb") as file:
        content = file.read()
    with open("/tmp/loaded", "wb") as file:
        file.write(content)
    loader = "/lib64/ld-linux-x86-64.so.2"

    def load():
        quiet = os.open("/dev/null", os.O_WRONLY)
        os.dup2(quiet, 2)
        os.execv(loader, [loader, "/tmp/loaded"])

    # 127 is what it ends with when it cannot map the file.
    return "not loaded" if in_a_child(load) == said_of(127) else "DONE it was loaded"


@way("map-file-executable")
def map_file_executable():
    with open("/tmp/code", "w+b") as file:
        file.write(bytes(4096))
        file.flush()
        mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)

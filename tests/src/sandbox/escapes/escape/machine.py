"""The machine: clocks, modules, calls that a test never needs."""

import ctypes
import errno
import mmap
import os
import struct

from .ways import LIBC, WAYS, call, in_a_child, read, system, way, write

# The machine.

for name, number, arguments in [
    ("clock_settime", 227, (0, (ctypes.c_long * 2)(1, 0))),
    ("settimeofday", 164, ((ctypes.c_long * 2)(1, 0), 0)),
    ("adjtimex", 159, (ctypes.create_string_buffer(struct.pack("I4x", 1) + bytes(256)),)),
    ("clock_adjtime", 305, (0, ctypes.create_string_buffer(struct.pack("I4x", 1) + bytes(256)))),
    ("sethostname", 170, (b"x", 1)),
    ("setdomainname", 171, (b"x", 1)),
    ("reboot", 169, (0xFEE1DEAD, 672274793, 0, 0)),
    ("kexec_load", 246, (0, 0, 0, 0)),
    ("kexec_file_load", 320, (0, 0, 0, 0, 0)),
    ("init_module", 175, (b"", 0, b"")),
    ("finit_module", 313, (0, b"", 0)),
    ("delete_module", 176, (b"x", 0)),
    ("swapon", 167, (b"/tmp/x", 0)),
    ("acct", 163, (b"/tmp/x",)),
    ("quotactl", 179, (0, 0, 0, 0)),
    ("syslog", 103, (3, ctypes.create_string_buffer(64), 64)),
    ("iopl", 172, (3,)),
    ("ioperm", 173, (0, 1, 1)),
    ("modify_ldt", 154, (0, 0, 0)),
    ("vhangup", 153, ()),
    ("fanotify_init", 300, (0, 0)),
    ("name_to_handle_at", 303, (-100, b"/", ctypes.create_string_buffer(256), ctypes.create_string_buffer(8), 0)),
    ("open_by_handle_at", 304, (-100, ctypes.create_string_buffer(256), 0)),
    ("request_key", 249, (b"user", b"x", 0, 0)),
    ("add_key", 248, (b"user", b"x", b"x", 1, -3)),
    ("keyctl", 250, (0, -3, 1)),
    ("io_uring_setup", 425, (1, ctypes.create_string_buffer(256))),
    ("io_uring_enter", 426, (0, 1, 1, 0, 0, 0)),
    ("io_uring_register", 427, (0, 0, 0, 0)),
    ("bpf", 321, (0, ctypes.create_string_buffer(128), 128)),
    ("userfaultfd", 323, (1,)),
    ("memfd_create", 319, (b"x", 0)),
    ("memfd_secret", 447, (0,)),
    ("mq_open", 240, (b"x", 0o102, 0o600, 0)),
    ("shmget", 29, (7, 4096, 0o1666)),
    ("shmat", 30, (0, 0, 0)),
    ("semget", 64, (7, 1, 0o1666)),
    ("msgget", 68, (7, 0o1666)),
    ("personality", 135, (0x0040000,)),
]:  # fmt: skip
    WAYS[name] = lambda number=number, arguments=arguments: system(number, *arguments)

WAYS["x32-calls"] = lambda: in_a_child(lambda: system(0x40000000 | 521, 16, 1, 0, 0))


@way("i386-calls")
def i386_calls():
    """`mov eax, 26 (ptrace); int 0x80`: the same call by another door."""

    def by_the_other_door():
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(b"\xb8\x1a\x00\x00\x00\xcd\x80\xc3")
        address = ctypes.addressof(ctypes.c_char.from_buffer(code))
        result = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
        if result < 0:
            raise OSError(-result, "")

    return in_a_child(by_the_other_door)


for path, content in {
    "/proc/sys/kernel/core_pattern": b"|/tmp/x", "/proc/sys/kernel/modprobe": b"/tmp/x", "/proc/sys/kernel/hostname": b"x",
    "/proc/sys/vm/drop_caches": b"3", "/proc/sys/net/ipv4/ip_forward": b"1", "/proc/sys/fs/binfmt_misc/register": b":x:M::x::/tmp/x:",
    "/proc/sysrq-trigger": b"b", "/proc/irq/default_smp_affinity": b"1", "/sys/kernel/uevent_helper": b"/tmp/x",
    "/sys/power/state": b"mem", "/sys/kernel/mm/transparent_hugepage/enabled": b"never",
    "/etc/ld.so.preload": b"/tmp/x.so", "/etc/passwd": b"x::0:0::/:/bin/sh", "/etc/group": b"x", "/etc/hosts": b"x",
    "/etc/resolv.conf": b"x", "/run/tribunal/pins": b"x", "/run/tribunal/etc/passwd": b"x", "/run/tribunal/etc/project.pth": b"import os",
    "/opt/tribunal/harness/attempt.py": b"x", "/opt/tribunal/lib/libtribunal_pins.so": b"x", "/tree/tests/sealed/test_escapes.py": b"x",
    "/tree/src/app.py": b"x",
}.items():  # fmt: skip
    WAYS[f"write{path}"] = lambda path=path, content=content: write(path, content)
for path in [
    "/proc/kcore",
    "/proc/keys",
    "/proc/timer_list",
    "/proc/kallsyms-",
    "/sys/kernel/debug/x",
    "/sys/firmware/dmi/tables/DMI",
    "/proc/1/root/etc/passwd",
    "/etc/shadow",
]:
    WAYS[f"read{path}"] = lambda path=path: read(path) or "empty"
for path in [
    "/tree/tests/sealed/new.py",
    "/tree/src/new.py",
    "/tree/conftest.py",
    "/opt/tribunal/new",
    "/opt/tribunal/runner/new.py",
    "/opt/tribunal/deps/new.py",
    "/run/tribunal/new",
    "/usr/local/lib/new.pth",
    "/etc/new",
    "/srcfiles/new.py",
    "/home/new",
]:
    WAYS[f"create{path}"] = lambda path=path: os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
for path in [
    "/tree/src/app.py",
    "/tree/src/escape/ways.py",
    "/tree/tests/sealed/test_escapes.py",
    "/run/tribunal/pins",
    "/run/tribunal/etc/passwd",
]:
    WAYS[f"unlink{path}"] = lambda path=path: os.unlink(path)
    WAYS[f"rename{path}"] = lambda path=path: os.rename(path, f"{path}.taken")
    WAYS[f"link{path}"] = lambda path=path: os.link(path, "/tmp/linked")
    WAYS[f"chmod{path}"] = lambda path=path: os.chmod(path, 0o777)
    WAYS[f"utime{path}"] = lambda path=path: os.utime(path, (0, 0))
WAYS["rename-tree-src"] = lambda: os.rename("/tree/src", "/tree/was")


@way("cgroup-files")
def cgroup_files():
    answers = set()
    for folder, _, names in os.walk("/sys/fs/cgroup"):
        for name in names:
            try:
                os.close(os.open(os.path.join(folder, name), os.O_WRONLY))
                answers.add(f"DONE {folder}/{name}")
            except OSError as error:
                answers.add(errno.errorcode[error.errno])
    return " ".join(sorted(answers)) or "none"


WAYS["cgroup-new"] = lambda: os.mkdir("/sys/fs/cgroup/own")
WAYS["cgroup-release-agent"] = lambda: write("/sys/fs/cgroup/release_agent", b"/tmp/x")


@way("map-pins-writable")
def map_pins_writable():
    with open("/run/tribunal/pins", "rb") as page:
        mmap.mmap(page.fileno(), 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)


@way("reopen-pins-writable")
def reopen_pins_writable():
    with open("/run/tribunal/pins", "rb") as page:
        os.close(os.open(f"/proc/self/fd/{page.fileno()}", os.O_RDWR))


@way("protect-pins-writable")
def protect_pins_writable():
    with open("/proc/self/maps") as maps:
        places = [line.split("-")[0] for line in maps if line.rstrip().endswith("/run/tribunal/pins")]
    if not places:
        with open("/run/tribunal/pins", "rb") as page:
            _kept = mmap.mmap(page.fileno(), 4096, mmap.MAP_SHARED, mmap.PROT_READ)
            with open("/proc/self/maps") as maps:
                places = [line.split("-")[0] for line in maps if line.rstrip().endswith("/run/tribunal/pins")]
    return call(LIBC.mprotect, ctypes.c_void_p(int(places[0], 16)), ctypes.c_size_t(4096), 3)

"""Each row: the way out, and the error it must end with. `MODE`, in front of this text, says how this file runs."""

import os

import pytest

import escape

CLOSED = "EACCES EPERM"
FIXED = "EROFS EACCES EPERM"
ABSENT = "ENOENT ENXIO ENODEV " + CLOSED

# Against other processes: PID 1, the zygotes and, where it is another process, the one that judges.
PROC = {
    **{f"read-{entry}": CLOSED for entry in (
        "mem", "maps", "smaps", "environ", "auxv", "syscall", "stack", "pagemap", "io", "personality", "timers")},
    **{f"list-{entry}": CLOSED for entry in ("fd", "fdinfo", "map_files", "ns", "cwd", "root")},
    **{f"link-{entry}": CLOSED for entry in ("exe", "cwd", "root", "ns/mnt", "ns/user", "ns/pid")},
    **{f"write-{entry}": FIXED for entry in (
        "mem", "oom_score_adj", "clear_refs", "comm", "coredump_filter", "uid_map", "gid_map", "setgroups",
        "timerslack_ns", "projid_map")},
    "write-autogroup": FIXED + " ENOENT EINVAL EAGAIN",
    "write-attr/current": FIXED + " ENOENT EINVAL",
    "write-sched": FIXED + " ENOENT",
    "thread-mem": CLOSED,
}  # fmt: skip
CALLS = {
    "ptrace-attach": "EPERM",
    "ptrace-seize": "EPERM",
    "process_vm_readv": "EPERM",
    "process_vm_writev": "EPERM",
    "pidfd_getfd": "EPERM",
    "pidfd_send_signal": "EPERM",
    "setns-by-pidfd": "EPERM",
    "process_madvise": "EPERM",
    "process_mrelease": "EPERM",
    "kcmp": "EPERM",
    "move_pages": "EPERM",
    "migrate_pages": "EPERM",
    "perf_event_open": "EPERM",
    "get_robust_list": "EPERM",
    "kill": "EPERM",
    "stop": "EPERM",
    "probe": "EPERM",
    "tgkill": "EPERM",
    "sigqueue": "EPERM",
    "renice": CLOSED,
    "set-affinity": "EPERM",
    "set-scheduler": "EPERM",
    "set-ioprio": "EPERM",
    "set-limit": "EPERM",
    "set-group": "EPERM ESRCH",
    "signal-by-descriptor": "ignored",
}

ROWS = {
    "kill-everyone": "ignored",
    # Who one is.
    "setuid-root": "EPERM",
    "setresuid-root": "EPERM",
    "setreuid-root": "EPERM",
    "setgid-root": "EPERM",
    "setresgid-root": "EPERM",
    "setgroups": "EPERM",
    "setgroups-none": "EPERM",
    "setuid-oracle": "EPERM",
    "setgid-oracle": "EPERM",
    "setfsuid-root": "ignored",
    "capset": "EPERM",
    "ambient-capability": "EPERM",
    "securebits": "EPERM",
    "new-privileges": "EINVAL",
    "no-filter": "EINVAL",
    "prctl-mm": "EPERM",
    "chown-to-root": "EPERM",
    "raise-limit": "EPERM",
    "raise-core": "EPERM",
    "raise-priority": CLOSED,
    "real-time": "EPERM",
    "spared-when-memory-is-short": CLOSED,
    "uid-map": CLOSED,
    "login-uid": "EPERM ENOENT EACCES",
    "own-memory-dump": CLOSED + " ENOENT",
    "setuid-files": "none",
    "writable-places": "none",
    # Name spaces, mounts, devices.
    **{f"unshare-{space}": "EPERM" for space in ("mount", "user", "pid", "net", "time", "cgroup")},
    "clone-user": "EPERM",
    "clone3": "ENOSYS",
    "mount-over-tmp": "EPERM",
    "mount-bind": "EPERM",
    "remount-tree": "EPERM",
    "mount-proc": "EPERM",
    "umount-src": "EPERM",
    "pivot_root": "EPERM",
    "chroot": "EPERM",
    "fsopen": "EPERM",
    "open_tree": "EPERM",
    "move_mount": "EPERM",
    "mount_setattr": "EPERM",
    "setns-file": CLOSED,
    "mknod-memory": "EPERM",
    "mknod-disk": "EPERM",
    **{f"open-dev-{name}": ABSENT for name in (
        "mem", "kmem", "port", "kmsg", "kvm", "fuse", "net/tun", "loop-control", "vda", "sda", "vsock", "console",
        "userfaultfd", "cpu/0/msr", "hwrng", "tty")},
    "type-into-terminal": "EPERM EIO",
    # The machine.
    **{name: "EPERM" for name in (
        "clock_settime", "settimeofday", "adjtimex", "clock_adjtime", "sethostname", "setdomainname", "reboot", "kexec_load",
        "kexec_file_load", "init_module", "finit_module", "delete_module", "swapon", "acct", "quotactl", "syslog", "iopl",
        "ioperm", "modify_ldt", "vhangup", "fanotify_init", "name_to_handle_at", "open_by_handle_at", "request_key",
        "add_key", "keyctl", "io_uring_setup", "io_uring_enter", "io_uring_register", "bpf", "userfaultfd", "memfd_create",
        "memfd_secret", "mq_open", "shmget", "shmat", "semget", "msgget", "personality")},
    "x32-calls": "SIGSYS ENOSYS EPERM",
    "i386-calls": "SIGSYS ENOSYS EPERM SIGSEGV",
    **{f"write{path}": FIXED + " ENOENT" for path in (
        "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname", "/proc/sys/vm/drop_caches",
        "/proc/sys/net/ipv4/ip_forward", "/proc/sys/fs/binfmt_misc/register", "/proc/sysrq-trigger",
        "/proc/irq/default_smp_affinity", "/sys/kernel/uevent_helper", "/sys/power/state",
        "/sys/kernel/mm/transparent_hugepage/enabled", "/etc/hosts", "/etc/resolv.conf")},
    **{f"write{path}": FIXED for path in (
        "/etc/ld.so.preload", "/etc/passwd", "/etc/group", "/run/tribunal/pins", "/run/tribunal/etc/passwd",
        "/run/tribunal/etc/project.pth", "/opt/tribunal/harness/attempt.py", "/opt/tribunal/lib/libtribunal_pins.so",
        "/tree/tests/sealed/test_escapes.py", "/tree/src/app.py")},
    **{f"read{path}": ABSENT for path in (
        "/proc/kcore", "/sys/kernel/debug/x", "/sys/firmware/dmi/tables/DMI", "/proc/1/root/etc/passwd", "/etc/shadow")},
    **{f"create{path}": FIXED for path in (
        "/tree/tests/sealed/new.py", "/tree/src/new.py", "/tree/conftest.py", "/opt/tribunal/new",
        "/opt/tribunal/runner/new.py", "/opt/tribunal/deps/new.py", "/run/tribunal/new", "/usr/local/lib/new.pth", "/etc/new",
        "/srcfiles/new.py", "/home/new")},
    **{f"{act}{path}": FIXED for act in ("unlink", "rename", "chmod", "utime") for path in (
        "/tree/src/app.py", "/tree/src/escape/ways.py", "/tree/tests/sealed/test_escapes.py", "/run/tribunal/pins",
        "/run/tribunal/etc/passwd")},
    **{f"link{path}": FIXED + " EXDEV" for path in (
        "/tree/src/app.py", "/tree/tests/sealed/test_escapes.py", "/run/tribunal/pins")},
    "rename-tree-src": FIXED + " EBUSY EXDEV",
    "cgroup-files": FIXED,
    "cgroup-new": FIXED,
    "cgroup-release-agent": FIXED + " ENOENT",
    "map-pins-writable": "EACCES",
    "reopen-pins-writable": "EACCES",
    "protect-pins-writable": "EACCES",
    # Programs of one's own.
    "exec-tmp": "EACCES",
    "exec-shm": "EACCES",
    "exec-home": "EACCES",
    "execveat": "EACCES",
    "exec-by-loader": "not loaded",
    "map-file-executable": "EPERM",
    # Sockets.
    **{f"connect {name}": "ENOENT ECONNREFUSED" for name in (
        "/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock",
        "/run/systemd/private", "@docker", "@/containerd-shim")},
    **{f"socket-{family}": "EPERM" for family in (
        "packet", "vsock", "alg", "key", "bluetooth", "tipc", "xdp", "can", "rds", "nfc", "smc", "kcm", "appletalk", "x25",
        "raw", "raw6")},
    **{f"netlink-{protocol}": "EPERM" for protocol in (
        "diag", "audit", "netfilter", "uevent", "generic", "xfrm", "connector")},
    "netlink-loopback-down": "EPERM",
    "loopback-down": "EPERM",
    "credentials-of-root": "EPERM",
    "named-sockets": "none",
    "command-lines": "none",
}  # fmt: skip

# Only a process that does not judge is kept from the sealed files.
SPLIT_ONLY = {
    "list-sealed": "EACCES",
    "read-sealed": "EACCES",
    "read-sealed-by-root": "EACCES",
    "read-sealed-by-links": "EACCES",
    "chdir-sealed": "EACCES",
    "watch-sealed": "EACCES",
    "stat-sealed": "EACCES",
}

TARGETS = ["first", "roots", "oracle"] if MODE == "split" else ["first", "roots"]
AGAINST = [(f"{way}~{target}", errors) for way, errors in {**PROC, **CALLS}.items() for target in TARGETS]


def holds(way, errors):
    came = escape.tries(way)
    assert came and (came == errors or set(came.split()) <= set(errors.split())), f"{way}: {came}"


def rows(table):
    return pytest.mark.parametrize(("way", "errors"), [pytest.param(*row, id=row[0]) for row in table])


@pytest.mark.parametrize(
    ("way", "answer"),
    [("control-write", "DONE 1"), ("control-child", "DONE exit 7"), ("control-connect", "connected")],
)
def test_what_may_be_done_works(way, answer):
    assert escape.tries(way) == answer


@pytest.mark.parametrize("way", ["control-read", "control-call"])
def test_what_may_be_called_works(way):
    assert escape.tries(way).startswith("DONE ")


def test_nothing_of_an_earlier_attempt():
    assert escape.tries("leftovers") == "none"


@rows(AGAINST)
def test_another_process(way, errors):
    holds(way, errors)


@rows(ROWS.items())
def test_way_out(way, errors):
    holds(way, errors)


@pytest.mark.parametrize("way", SPLIT_ONLY)
def test_the_sealed_files(way):
    if MODE == "split":
        holds(way, SPLIT_ONLY[way])
    else:
        assert escape.tries(way).startswith("DONE ")


def test_what_is_open():
    """The product has its standard streams and its links; in one process with the runner also what that one needs."""
    kinds = escape.tries("descriptors").split(",")
    print("open:", kinds)
    if MODE == "split":
        assert kinds[0] in ("/dev/null", "pipe")
        assert set(kinds[3:]) == {"socket"}
        assert len(kinds) <= 3 + 8 + 1, kinds
    assert not [kind for kind in kinds if kind.startswith(("/tree", "/run", "/opt", "/sys"))], kinds


def test_who_judges():
    mine = escape.pid()
    assert (mine == os.getpid()) == (MODE == "shared")


def test_leave_all_one_can():
    assert escape.tries("leave") == "left"

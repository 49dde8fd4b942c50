"""Counters of the container's own cgroup, version 1 or 2, as seen from inside.

What cannot be read counts as zero: the callers compare before and after.
"""

from . import kernel

ROOT = "/sys/fs/cgroup"


def _read(path: str) -> str:
    return kernel.text(f"{ROOT}/{path}") or ""


def _field(path: str, name: str) -> int:
    for line in _read(path).splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == name and words[1].isdigit():
            return int(words[1])
    return 0


def oom_kills() -> int:
    """Processes of this container that the kernel killed for want of memory so far."""
    return _field("memory.events", "oom_kill") or _field("memory/memory.oom_control", "oom_kill")


def cpu_ms() -> float:
    """Processor time of the whole container so far."""
    if usec := _field("cpu.stat", "usage_usec"):
        return usec / 1000
    for path in ("cpuacct/cpuacct.usage", "cpu,cpuacct/cpuacct.usage"):
        text = _read(path).strip()
        if text.isdigit():
            return int(text) / 1_000_000
    return 0.0

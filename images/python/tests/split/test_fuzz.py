"""A short run of the fuzzer; `make fuzz` is the long one."""

import subprocess
import sys
from pathlib import Path


def test_a_short_run_finds_nothing():
    fuzz = Path(__file__).with_name("fuzz.py")
    told = subprocess.run(
        [sys.executable, fuzz, "--seconds", "8", "--seed", "20260912"], capture_output=True, text=True, timeout=120
    )
    assert told.returncode == 0, told.stdout + told.stderr

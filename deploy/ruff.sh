#!/usr/bin/env bash
# ruff over the Python in images/ and of the page's trials: the one on PATH is not used, so that every machine says the same. `--fix` mends in place.
set -euo pipefail
cd "$(dirname "$0")/.."
version=0.17.6
tools=target/tools/ruff-$version
if [ ! -x "$tools/bin/ruff" ]; then
    python3 -m pip --version >/dev/null 2>&1 || {
        echo "ruff: python3 has no pip; install it (apt-get install python3-pip) and run this again" >&2
        exit 1
    }
    python3 -m pip install --quiet --disable-pip-version-check --target "$tools" "ruff==$version"
fi
ruff=$tools/bin/ruff
if [ "${1:-}" = "--fix" ]; then
    "$ruff" check --quiet --fix images tests/browser && "$ruff" format --quiet images tests/browser
else
    "$ruff" check --quiet images tests/browser && "$ruff" format --quiet --check images tests/browser
fi

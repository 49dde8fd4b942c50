#!/usr/bin/env bash
# `tribunal-server selftest` with the image that the demo and the tests of this tree use. Options are passed on.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
server=$PWD/target/debug/tribunal-server
"$server" init --data "$work/data" >/dev/null
ln -s "$PWD/target/tribunal-tests/images" "$work/data/images"
"$server" selftest --data "$work/data" "$@"

#!/usr/bin/env bash
# Build the runner image that the demo and the tests of this tree use; `--twice` builds it twice from nothing instead, in
# throw-away data directories, and compares the ids.
set -euo pipefail
cd "$(dirname "$0")/.."
server=$PWD/target/debug/tribunal-server
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mode=once
[ "${1:-}" != "--twice" ] || mode=twice
build() {
    "$server" init --data "$work/$1" >/dev/null
    if [ "$mode" = once ]; then
        mkdir -p target/tribunal-tests/images
        rm -rf "$work/$1/images"
        ln -s "$PWD/target/tribunal-tests/images" "$work/$1/images"
    fi
    "$server" image build --data "$work/$1"
    "$server" image list --data "$work/$1" --json >"$work/$1.json"
}
ids() { python3 -c 'import json,sys; print("\n".join(sorted(i["digest"] for i in json.load(open(sys.argv[1]))["images"])))' "$1"; }
build first
if [ "$mode" = twice ]; then
    build second
    first=$(ids "$work/first.json")
    second=$(ids "$work/second.json")
    if [ -n "$first" ] && [ "$first" = "$second" ]; then
        echo "the same inputs gave the same image: $first"
    else
        printf 'two builds of the same inputs differ:\n%s\n%s\n' "$first" "$second" >&2
        exit 1
    fi
fi

#!/usr/bin/env bash
# Build the runner image into a throw-away data directory; `--twice` does it again from nothing and compares the ids.
set -euo pipefail
cd "$(dirname "$0")/.."
server=$PWD/target/debug/tribunal-server
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build() {
    "$server" init --data "$work/$1" >/dev/null
    "$server" image build --data "$work/$1"
    "$server" image list --data "$work/$1" --json >"$work/$1.json"
}
build first
if [ "${1:-}" = "--twice" ]; then
    build second
    id() { python3 -c 'import json,sys; print("\n".join(sorted(i["image_id"] for i in json.load(open(sys.argv[1]))["images"])))' "$1"; }
    if [ "$(id "$work/first.json")" = "$(id "$work/second.json")" ]; then
        echo "the same inputs gave the same image: $(id "$work/first.json")"
    else
        echo "two builds of the same inputs differ:" >&2
        id "$work/first.json" >&2
        id "$work/second.json" >&2
        exit 1
    fi
fi

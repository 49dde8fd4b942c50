#!/usr/bin/env bash
# One static program: dist.sh [tribunal|tribunal-server] makes dist/NAME, for this machine's architecture, and its SHA-256 in
# dist/SHA256SUMS. Without a name it is the client, for CI jobs. `--twice` builds it in two folders and compares.
#
# The client with the musl target of rustup where it is installed, else, and the server always, with the C library of this
# machine linked in: then names of hosts are looked up in /etc/hosts and by DNS alone. The same source, toolchain and target
# give the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
name=tribunal
case "${1:-}" in tribunal | tribunal-server) name=$1 && shift ;; esac
host=$(rustc -vV | sed -n 's/^host: //p')
musl=${host%%-*}-unknown-linux-musl
target=$host
# What the server carries for the runner image is made for that image's own C library.
if [ "$name" = tribunal ] && [ -d "$(rustc --print sysroot)/lib/rustlib/$musl" ]; then
    target=$musl
fi
build() { # into which folder
    local paths="--remap-path-prefix=$PWD=tribunal --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"
    RUSTFLAGS="-C target-feature=+crt-static $paths" CARGO_INCREMENTAL=0 CARGO_TARGET_DIR=$1 \
        cargo build --locked --release --package "$name" --bin "$name" --target "$target" \
        --config 'profile.release.strip="symbols"' --config 'profile.release.codegen-units=1'
}
build target/dist
mkdir -p dist
install -m 0755 "target/dist/$target/release/$name" "dist/$name"
if ldd "dist/$name" 2>&1 | grep -q '=>'; then
    echo "dist: $name is not static" >&2
    exit 1
fi
(cd dist && find . -type f -name 'tribunal*' -printf '%P\n' | LC_ALL=C sort | xargs sha256sum | tee SHA256SUMS)
if [ "${1:-}" = "--twice" ]; then
    again=$(mktemp -d)
    trap 'rm -rf "$again"' EXIT
    build "$again"
    cmp "$again/$target/release/$name" "dist/$name"
    echo "the same inputs gave the same $name"
fi

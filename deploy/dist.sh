#!/usr/bin/env bash
# One static client for CI jobs: dist/tribunal and its SHA-256, for this machine's architecture. `--twice` builds it in two
# folders and compares.
#
# With the musl target of rustup where it is installed, else with the C library of this machine linked in: then names of
# hosts are looked up in /etc/hosts and by DNS alone. The same source, toolchain and target give the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
host=$(rustc -vV | sed -n 's/^host: //p')
musl=${host%%-*}-unknown-linux-musl
target=$host
if [ -d "$(rustc --print sysroot)/lib/rustlib/$musl" ]; then
    target=$musl
fi
build() { # into which folder
    local paths="--remap-path-prefix=$PWD=tribunal --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"
    RUSTFLAGS="-C target-feature=+crt-static $paths" CARGO_INCREMENTAL=0 CARGO_TARGET_DIR=$1 \
        cargo build --locked --release --package tribunal --bin tribunal --target "$target" \
        --config 'profile.release.strip="symbols"' --config 'profile.release.codegen-units=1'
}
build target/dist
mkdir -p dist
install -m 0755 "target/dist/$target/release/tribunal" dist/tribunal
(cd dist && sha256sum tribunal | tee SHA256SUMS)
if ldd dist/tribunal 2>&1 | grep -q '=>'; then
    echo "dist: the client is not static" >&2
    exit 1
fi
if [ "${1:-}" = "--twice" ]; then
    again=$(mktemp -d)
    trap 'rm -rf "$again"' EXIT
    build "$again"
    cmp "$again/$target/release/tribunal" dist/tribunal
    echo "the same inputs gave the same client"
fi

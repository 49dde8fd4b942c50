#!/usr/bin/env bash
# server-image.sh [BINARY]: the image tribunal/server:local without a registry: a Debian made by mmdebstrap, then what
# images/server/Dockerfile says from `AS server` on, with BINARY (or one made by dist.sh) in it. Equal packages are made once.
set -euo pipefail
cd "$(dirname "$0")/.."
recipe=images/server/Dockerfile
binary=${1:-}
if [ -z "$binary" ]; then
    deploy/dist.sh tribunal-server
    binary=dist/tribunal-server
fi
suite=trixie
packages=$(sed -n '/AS base$/,/AS server$/s/.*--no-install-recommends \(.*\) \\$/\1/p' "$recipe" | tr ' ' ',')
[ -n "$packages" ] || { echo "server-image: $recipe names no packages" >&2; exit 1; }
base=tribunal/server-base:$suite-$(sha256sum <<<"$packages" | cut -c 1-12)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! docker image inspect "$base" >/dev/null 2>&1; then
    mmdebstrap --variant=essential --quiet --include="$packages" --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-include=/usr/share/doc/*/copyright' \
        --customize-hook='find "$1" -xdev -type f -perm /6000 -exec chmod ug-s {} +' "$suite" - |
        docker import - "$base" >/dev/null
fi
mkdir "$work/out"
install -m 0755 "$binary" "$work/out/tribunal-server"
{
    echo "FROM $base AS base"
    sed -n '/^FROM base AS server$/,/^FROM server AS builder$/p' "$recipe" | sed -e '$d' -e 's|COPY --from=build /out/|COPY out/|'
} >"$work/Dockerfile"
grep -q '^ENTRYPOINT' "$work/Dockerfile"
DOCKER_BUILDKIT=0 docker build --quiet --tag "${TRIBUNAL_SERVER_IMAGE:-tribunal/server:local}" "$work" 2>/dev/null

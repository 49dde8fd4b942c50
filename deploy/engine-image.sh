#!/usr/bin/env bash
# engine-image.sh: the image tribunal/engine:local without a registry, for compose.yaml where docker:28-dind cannot be pulled:
# a Debian made by mmdebstrap with Docker Engine in it, and nothing of ours. Equal packages are made once.
set -euo pipefail
suite=trixie
packages=ca-certificates,docker.io,docker-cli,iptables
image=${TRIBUNAL_ENGINE_IMAGE:-tribunal/engine:local}
made=tribunal/engine-base:$suite-$(sha256sum <<<"$packages" | cut -c 1-12)
if ! docker image inspect "$made" >/dev/null 2>&1; then
    mmdebstrap --variant=minbase --quiet --include="$packages" --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-include=/usr/share/doc/*/copyright' "$suite" - |
        docker import --change 'CMD ["dockerd"]' - "$made" >/dev/null
fi
docker tag "$made" "$image"
echo "$image"

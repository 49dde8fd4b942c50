#!/usr/bin/env bash
# The contract of this tree becomes the one that `make check` holds later trees against. Run when a version is released; refuses
# where the tree breaks what was released before.
set -euo pipefail
cd "$(dirname "$0")/../proto"
released=released/tribunal-v1.binpb
[ ! -e "$released" ] || ../deploy/buf.sh breaking --against "$released"
../deploy/buf.sh build --exclude-source-info --output "$released"

#!/usr/bin/env bash
# The contract's names and shape, and that it breaks nothing of the last release. `lint-proto.sh DIR` looks at the copy in DIR.
set -euo pipefail
deploy=$(cd "$(dirname "$0")" && pwd)
buf=$deploy/buf.sh
cd "${1:-$deploy/../proto}"
"$buf" lint
"$buf" breaking --against released/tribunal-v1.binpb

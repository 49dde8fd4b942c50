#!/usr/bin/env bash
# The contract's names and shape, and that it breaks nothing of the last release. `lint-proto.sh DIR` looks at the copy in DIR.
set -euo pipefail
cd "${1:-$(dirname "$0")/../proto}"
buf=$(dirname "$(realpath "${BASH_SOURCE[0]}")")/buf.sh
"$buf" lint
"$buf" breaking --against released/tribunal-v1.binpb

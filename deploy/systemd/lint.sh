#!/usr/bin/env bash
# lint.sh UNIT BINARY: a unit held against systemd itself, with BINARY in the place of what it starts: it must parse without a
# word of complaint, and its exposure must not be above 2.0 of 10.
set -euo pipefail
unit=${1:?usage: lint.sh UNIT BINARY}
binary=${2:?usage: lint.sh UNIT BINARY}
command -v systemd-analyze >/dev/null || DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends systemd >&2 || {
    echo "lint: systemd-analyze is not here, and apt-get could not install systemd" >&2
    exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
copy=$work/$(basename "$unit")
sed "s|^ExecStart=/usr/bin/tribunal-server|ExecStart=$binary|" "$unit" >"$copy"
grep -q "^ExecStart=$binary " "$copy" || { echo "lint: $unit does not start /usr/bin/tribunal-server" >&2; exit 1; }
said=$(systemd-analyze verify --man=no --recursive-errors=no "$copy" 2>&1)
[ -z "$said" ] || { printf '%s\n' "$said" >&2; exit 1; }
systemd-analyze security --no-pager --offline=yes --threshold=20 "$copy" | tail -n 1

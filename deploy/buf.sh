#!/usr/bin/env bash
# buf, with the arguments that are given: buf.sh lint. The one on PATH is not used, so that every machine says the same; npm's or
# PyPI's package brings the same program, known by its hash, and no script of a package is run.
set -euo pipefail
version=1.75.0
root=$(cd "$(dirname "$0")/.." && pwd)
tools=$root/target/tools/buf-$version
case $(uname -m) in
x86_64) package=@bufbuild/buf-linux-x64 hash=fad1e38d6909bbb583a4da81d8c02a01046e2cd663bde7e337dd24277393764b ;;
aarch64) package=@bufbuild/buf-linux-aarch64 hash=00eb190aa82df17f393e05b04889cc60a0b13b3259d336e21a87d5f23ab4fd26 ;;
*) echo "buf: no program for $(uname -m)" >&2 && exit 1 ;;
esac
if [ ! -x "$tools/buf" ]; then
    mkdir -p "$root/target/tools"
    work=$(mktemp -d "$root/target/tools/buf.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    if command -v npm >/dev/null; then
        (cd "$work" && npm install --silent --no-audit --no-fund --no-save --ignore-scripts --prefix "$work" "$package@$version" >&2)
        found=$work/node_modules/$package/bin/buf
    elif python3 -m pip --version >/dev/null 2>&1; then
        python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target "$work" "buf-bin==$version" >&2
        found=$work/bin/buf
    else
        echo "buf: neither npm nor python3's pip is here; install one (apt-get install python3-pip) and run this again" >&2
        exit 1
    fi
    echo "$hash  $found" | sha256sum --check --quiet
    mkdir "$work/made"
    install -m 0755 "$found" "$work/made/buf"
    # Another run may have been quicker.
    mv -T "$work/made" "$tools" 2>/dev/null || [ -x "$tools/buf" ]
fi
[ "${1:-}" != "--path" ] || { echo "$tools/buf" && exit 0; }
exec "$tools/buf" "$@"

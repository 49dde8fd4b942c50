#!/usr/bin/env bash
# Put Debian 13's cosign into target/tools/cosign and print its path; the host's packages stay as they are.
# Only tests and `make verify` use it: a verdict is verified with ssh-keygen and openssl just as well.
set -euo pipefail
cd "$(dirname "$0")/.."
if command -v cosign; then exit 0; fi
tools=$PWD/target/tools/cosign
if [ ! -x "$tools/usr/bin/cosign" ]; then
    keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    if ! command -v apt-get >/dev/null || [ ! -e "$keyring" ]; then
        echo "cosign: not on PATH, and no apt with Debian's keyring to fetch it; install cosign 2.5 or later" >&2
        exit 1
    fi
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$tools"
    mirror=$(grep -rhoE '^(URIs:|deb) +(\[[^]]*\] +)?https?://[^ ]*/debian/? *' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | grep -oE 'https?://[^ ]+' | head -n 1 || true)
    if [ -z "$mirror" ]; then
        echo "cosign: no Debian mirror is configured here; install cosign 2.5 or later" >&2
        exit 1
    fi
    echo "deb [signed-by=$keyring] $mirror trixie main" >"$work/sources.list"
    apt=(apt-get -qq -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$work/lists"
        -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)
    "${apt[@]}" update >&2
    (cd "$work" && "${apt[@]}" download cosign >&2)
    dpkg-deb -x "$work"/cosign_*.deb "$tools"
fi
echo "$tools/usr/bin/cosign"

#!/bin/sh
# Puts the client into a folder: `install.sh URL SHA256 FOLDER`. Nothing is done where FOLDER has it already.
#
# Never installs what the hash does not name: the client decides what merges, so whoever could replace it could merge.
set -eu
url=${1:?the address of the client} wanted=${2:?its SHA-256, in hex} folder=${3:?where it goes}
sum() { sha256sum "$1" | cut -d ' ' -f 1; }
if [ -x "$folder/tribunal" ] && [ "$(sum "$folder/tribunal")" = "$wanted" ]; then
    exit 0
fi
mkdir -p "$folder"
new=$folder/.tribunal.$$
trap 'rm -f "$new"' EXIT
curl --fail --silent --show-error --location --proto '=https,file' --retry 3 --max-time 120 --output "$new" "$url"
found=$(sum "$new")
if [ "$found" != "$wanted" ]; then
    echo "tribunal: $url has the SHA-256 $found, not the pinned $wanted; it was not installed." >&2
    echo "tribunal: if the client was upgraded, pin the hash that its release tells." >&2
    exit 5
fi
chmod 0755 "$new"
mv "$new" "$folder/tribunal"

#!/usr/bin/env bash
# deb.sh [BINARIES]: dist/tribunal_VERSION_ARCH.deb with both programs, the unit, its user, the configuration and the docs. Of
# static programs that dist.sh makes, or of those in the folder BINARIES. Equal inputs give an equal package; DEB_COMPRESSION=gzip
# gives a larger one sooner. DEB_OUT names another folder than dist.
set -euo pipefail
cd "$(dirname "$0")/.."
binaries=${1:-}
if [ -z "$binaries" ]; then
    deploy/dist.sh tribunal-server
    deploy/dist.sh tribunal
    binaries=dist
fi
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
architecture=$(dpkg --print-architecture)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
chmod 0755 "$work"
put() { install -D -m "$1" "$2" "$work/$3"; } # MODE FROM TO

needs="git, systemd | systemd-sysusers"
for name in tribunal tribunal-server; do
    put 0755 "$binaries/$name" "usr/bin/$name"
    strip --strip-unneeded --remove-section=.comment --remove-section=.note "$work/usr/bin/$name"
    if ldd "$work/usr/bin/$name" 2>&1 | grep -q '=>'; then
        needs="$needs, libc6 (>= $(dpkg-query -W -f '${Version}' libc6 | sed 's/-.*//')), libgcc-s1"
    fi
done
needs=$(tr ',' '\n' <<<"$needs" | sed 's/^ *//' | sort -u | paste -sd, | sed 's/,/, /g')
put 0644 deploy/systemd/tribunal-server.service usr/lib/systemd/system/tribunal-server.service
put 0644 deploy/debian/sysusers.conf usr/lib/sysusers.d/tribunal.conf
put 0644 deploy/debian/tmpfiles.conf usr/lib/tmpfiles.d/tribunal.conf
put 0644 deploy/server.toml etc/tribunal/server.toml
for page in docs/*.md; do put 0644 "$page" "usr/share/doc/tribunal/$(basename "$page")"; done
put 0644 deploy/debian/copyright usr/share/doc/tribunal/copyright
put 0644 deploy/debian/lintian-overrides usr/share/lintian/overrides/tribunal
{
    printf 'tribunal (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md in the source.\n\n' "$version"
    printf ' -- Tribunal <tribunal@example.invalid>  %s\n' "$(date -u -R -d "@$SOURCE_DATE_EPOCH")"
} | gzip -9n >"$work/changelog"
put 0644 "$work/changelog" usr/share/doc/tribunal/changelog.gz
rm "$work/changelog"
put 0644 CHANGELOG.md usr/share/doc/tribunal/CHANGELOG.md

install -d -m 0755 "$work/DEBIAN"
for script in postinst prerm postrm; do put 0755 "deploy/debian/$script" "DEBIAN/$script"; done
echo /etc/tribunal/server.toml >"$work/DEBIAN/conffiles"
(cd "$work" && find etc usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$work/DEBIAN/md5sums"
cat >"$work/DEBIAN/control" <<EOF
Package: tribunal
Version: $version
Architecture: $architecture
Maintainer: Tribunal <tribunal@example.invalid>
Installed-Size: $(du -sk --apparent-size --exclude=DEBIAN "$work" | cut -f 1)
Depends: $needs
Recommends: docker.io | docker-ce, openssh-client, ca-certificates, mmdebstrap, debian-archive-keyring, python3-venv
Section: devel
Priority: optional
Description: scores commits with sealed tests and signs three verdicts
 A scoring server for patches that an agent wrote. It rebuilds the tree that may
 be judged, runs the tests that the agent cannot touch several times in sealed
 containers, and signs what came of it. This package holds the server, its
 systemd unit and the command line of agents, CI and maintainers.
EOF
find "$work" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
out=${DEB_OUT:-dist}
mkdir -p "$out"
dpkg-deb --root-owner-group -Z"${DEB_COMPRESSION:-xz}" --build "$work" "$out/tribunal_${version}_${architecture}.deb"

#!/usr/bin/env bash
# Debian's chromium and its driver: print the paths of both, of the driver first, and install them where that can be done.
# Only tests of the page and its pictures use them.
set -euo pipefail
if ! command -v chromium >/dev/null || ! command -v chromedriver >/dev/null; then
    if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
        echo "browser: no chromium and chromedriver on PATH; install both (apt-get install chromium chromium-driver)" >&2
        exit 1
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update >&2
    apt-get -qq install --no-install-recommends -y chromium chromium-driver fonts-dejavu-core >&2 || {
        echo "browser: chromium and chromium-driver could not be installed" >&2
        exit 1
    }
fi
command -v chromedriver
command -v chromium

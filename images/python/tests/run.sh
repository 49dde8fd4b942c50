#!/usr/bin/env bash
# The harness's own tests, with nothing installed: pytest comes out of the runner image.
# Its modules are tested inside the image, the whole thing in containers driven from here.
# Usage: run.sh [pytest options]; TRIBUNAL_RUNNER_IMAGE names another image.
set -euo pipefail
cd "$(dirname "$0")/.."
image=${TRIBUNAL_RUNNER_IMAGE:-tribunal/python:3.13}
docker image inspect "$image" >/dev/null 2>&1 || ../../deploy/image.sh
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "run.sh: the tests need Python 3.11 or newer as python3" >&2
    exit 1
}
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
container=$(docker create --entrypoint /bin/true "$image")
docker cp -q "$container:/opt/tribunal/runner" "$tools/" 2>/dev/null || docker cp "$container:/opt/tribunal/runner" "$tools/"
docker rm "$container" >/dev/null

echo "== modules, inside $image"
docker run --rm --network none --tmpfs /tmp:mode=1777,exec --volume "$PWD:/work:ro" --workdir /work \
    --env PYTHONPATH=/opt/tribunal/runner --env PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 --env PYTHONDONTWRITEBYTECODE=1 --entrypoint /usr/bin/python3 "$image" \
    -m pytest -q -p no:cacheprovider tests --ignore tests/container "$@"

# Each test has containers of its own and mostly waits for one, so two lists of them run at the same time.
containers() { # containers FILE...
    PYTHONPATH=$tools/runner PYTHONDONTWRITEBYTECODE=1 PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 TRIBUNAL_RUNNER_IMAGE=$image \
        python3 -m pytest -q -p no:cacheprovider "$@"
}
echo "== containers"
one=() two=()
while read -r file; do # the largest first, so that both lists are about as long
    if [ ${#one[@]} -gt ${#two[@]} ]; then two+=("$file"); else one+=("$file"); fi
done < <(ls -S tests/container/test_*.py)
containers "${two[@]}" "$@" >"$tools/two.log" 2>&1 &
other=$!
status=0
containers "${one[@]}" "$@" || status=$?
wait "$other" || status=$?
cat "$tools/two.log"
exit "$status"

#!/usr/bin/env bash
# The CI files that others take from deploy/ci, held against the schemas of GitHub and GitLab, and their shell parsed.
set -euo pipefail
cd "$(dirname "$0")/.."
version=0.39.0
tools=target/tools/check-jsonschema-$version
if [ ! -d "$tools/check_jsonschema" ]; then
    python3 -m pip --version >/dev/null 2>&1 || {
        echo "lint-ci: python3 has no pip; install it (apt-get install python3-pip) and run this again" >&2
        exit 1
    }
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target "$tools" "check-jsonschema==$version"
fi
holds() { PYTHONPATH=$tools python3 -m check_jsonschema --quiet --builtin-schema "$@"; }
holds vendor.github-actions deploy/ci/github/action.yml
holds vendor.github-workflows deploy/ci/github.yml deploy/ci/github/merge-queue.yml
job=$(mktemp --suffix=.yml)
trap 'rm -f "$job"' EXIT
# The second document of a component is the job; the first says what it may be told.
sed '1,/^---$/d' deploy/ci/gitlab-component/templates/gate.yml >"$job"
[ -s "$job" ]
holds vendor.gitlab-ci --data-transform gitlab-ci deploy/ci/gitlab.yml "$job"
for script in deploy/ci/*.sh; do sh -n "$script"; done

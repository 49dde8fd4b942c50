#!/bin/sh
# The merge gate of a CI job: fetches the verdicts on HEAD over BASE, or asks for them, joins them against a pinned key,
# and leaves the join's exit code. Nothing of the patch is run, and no file of it is checked out.
#
# Wants HEAD, BASE (full ids), KEY (a file: PEM or allowed_signers; never one that the server gave), and as the client does
# TRIBUNAL_SERVER, TRIBUNAL_REPO and TRIBUNAL_TOKEN or TRIBUNAL_TOKEN_FILE. May have OUT (ci_out), WAIT (45m), SUMMARY (a
# file that Markdown is appended to). Run where git has both commits, so that they can be sent if the server lacks them.
set -eu
: "${HEAD:?the commit that is to be merged, full id}"
: "${BASE:?the tip of the protected branch, full id}"
: "${KEY:?the file with the pinned key}"
: "${TRIBUNAL_SERVER:?the server}" "${TRIBUNAL_REPO:?the name of the repository on it}"
out=${OUT:-ci_out}
# The join decides; what fetch says is for people, and its trouble shows as verdicts that are missing.
tribunal fetch --head "$HEAD" --base "$BASE" --out "$out" --wait "${WAIT:-45m}" --or-score --key "$KEY" || true
set -- "$out" --key "$KEY" --repo "$TRIBUNAL_REPO" --head "$HEAD" --base "$BASE"
if [ -n "${SUMMARY:-}" ]; then
    set -- "$@" --summary "$SUMMARY"
fi
exec tribunal join "$@"

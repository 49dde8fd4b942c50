#!/usr/bin/env bash
# verify.sh DIR: the verdict files of DIR, checked with ssh-keygen, openssl and cosign, none of them ours, against
# DIR/../allowed_signers, DIR/../key.pem and the raw commit object in DIR.commit.
set -euo pipefail
dir=${1:?usage: verify.sh DIR}
[ -d "$dir" ] || { echo "verify: $dir is not there; run \`make demo\` first" >&2; exit 1; }
keys=$(dirname "$dir")
for kind in src_score oracle_integrity flake_lease; do
    echo "\$ ssh-keygen -Y verify -f allowed_signers -I tribunal -n tribunal-verdict -s $kind.json.sig < $kind.json"
    ssh-keygen -Y verify -f "$keys/allowed_signers" -I tribunal -n tribunal-verdict -s "$dir/$kind.json.sig" <"$dir/$kind.json"
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for kind in src_score oracle_integrity flake_lease; do
    python3 - "$dir/$kind.sigstore.json" "$dir/$kind.json" "$dir/$kind.txt" "$work" <<'PY'
import base64, json, pathlib, sys

bundle, payload, word, work = map(pathlib.Path, sys.argv[1:])
envelope = json.loads(bundle.read_text())["dsseEnvelope"]
body = base64.b64decode(envelope["payload"])
assert body == payload.read_bytes(), "the envelope holds other bytes than the payload file"
kind = envelope["payloadType"].encode()
(work / "pae").write_bytes(b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(body), body))
(work / "sig").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
# The name of a file can be changed, and cosign does not hold a bundle against its --type.
want = f"urn:tribunal:attestation/{payload.stem.replace('_', '-')}/v1"
assert json.loads(body)["predicateType"] == want, "another verdict than its file's name says"
said = {"PASSED": "PASS", "FAILED": "FAIL", "NOT_RUN": "NOT_RUN"}[json.loads(body)["predicate"]["result"]]
assert word.read_text() == said + "\n", "the word is not the signed one"
print(f"{payload.stem}: {said}")
PY
    openssl pkeyutl -verify -pubin -inkey "$keys/key.pem" -rawin -in "$work/pae" -sigfile "$work/sig"
done

if cosign=$("$(dirname "$0")/cosign.sh"); then
    # cosign asks the public Sigstore for its roots even where a key is given; ours is nobody's but its owner's.
    echo '{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}' >"$work/no-roots.json"
    for kind in src_score oracle_integrity flake_lease; do
        echo "\$ cosign verify-blob-attestation --bundle $kind.sigstore.json --key key.pem --type urn:tribunal:attestation/${kind//_/-}/v1 honest.commit"
        HOME=$work "$cosign" verify-blob-attestation --bundle "$dir/$kind.sigstore.json" --key "$keys/key.pem" \
            --type "urn:tribunal:attestation/${kind//_/-}/v1" --insecure-ignore-tlog --trusted-root "$work/no-roots.json" "$dir.commit"
    done
else
    echo "cosign is not here: the bundles were checked with openssl only"
fi

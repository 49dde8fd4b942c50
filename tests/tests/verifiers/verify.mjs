// verify.mjs KEY.pem BUNDLE: what npm's @sigstore/verify makes of one bundle, under the name that the bundle gives its key.
// Exit code 0: it verifies; anything else: it does not, and why is on stderr.
import { readFileSync } from "node:fs";
import { bundleFromJSON } from "@sigstore/bundle";
import { crypto } from "@sigstore/core";
import { Verifier, toSignedEntity } from "@sigstore/verify";

const [pem, path] = process.argv.slice(2);
const bundle = bundleFromJSON(JSON.parse(readFileSync(path, "utf8")));
const key = crypto.createPublicKey(readFileSync(pem, "utf8"));
const none = { certificateAuthorities: [], timestampAuthorities: [], tlogs: [], ctlogs: [] };
const trusted = { ...none, publicKey: () => ({ publicKey: key, validFor: () => true }) };
const verifier = new Verifier(trusted, { tlogThreshold: 0, ctlogThreshold: 0, timestampThreshold: 0 });
verifier.verify(toSignedEntity(bundle));

"""verify.py KEY.hex BUNDLE: what PyPI's securesystemslib makes of the envelope in one bundle, with the key under its own id.

Exit code 0: it verifies; anything else: it does not, and why is on stderr.
"""

import base64
import hashlib
import json
import sys

from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey


def fingerprint(public: bytes) -> str:
    """As OpenSSH names an ed25519 key."""

    def field(value: bytes) -> bytes:
        return len(value).to_bytes(4, "big") + value

    digest = hashlib.sha256(field(b"ssh-ed25519") + field(public)).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


with open(sys.argv[1], encoding="ascii") as key_file:
    public = bytes.fromhex(key_file.read())
with open(sys.argv[2], encoding="utf-8") as bundle_file:
    envelope = json.load(bundle_file)["dsseEnvelope"]
name = fingerprint(public)
key = SSlibKey(name, "ed25519", "ed25519", {"public": public.hex()})
accepted = Envelope.from_dict(envelope).verify([key], 1)
assert list(accepted) == [name], accepted

"""SSH signatures of data, as Git makes them of commits (OpenSSH, PROTOCOL.sshsig). Pure but for `cryptography`.

A signature carries its public key; whether that key is anybody's is for `allowed_signers` to say.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import textwrap

import msgspec

from trimtab.model.redacted import Redacted
from trimtab.runtime.git import ssh_keys
from trimtab.runtime.git.wire import BadForm, Reader, string

BEGIN, END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
NAMESPACE = "git"
LARGEST = 64 * 1024
_MAGIC = b"SSHSIG"
_HASHES = {"sha256": hashlib.sha256, "sha512": hashlib.sha512}


class SshSignature(msgspec.Struct, frozen=True, kw_only=True):
    key: bytes
    """The public key in its wire form, as in an allowed-signers line."""
    namespace: str
    hash: str
    form: str
    """The algorithm, such as rsa-sha2-512."""
    value: bytes


def parse(armoured: str) -> SshSignature:
    """BadForm when it is none."""
    lines = [line.strip() for line in armoured.strip().splitlines()]
    if len(armoured) > LARGEST or len(lines) < 3 or lines[0] != BEGIN or lines[-1] != END:
        raise BadForm("is no armoured SSH signature")
    try:
        blob = base64.b64decode("".join(lines[1:-1]), validate=True)
    except (binascii.Error, ValueError):
        raise BadForm("is no base64") from None
    reader = Reader(blob)
    if reader.take(len(_MAGIC)) != _MAGIC or reader.uint32() != 1:
        raise BadForm("is no SSH signature of version 1")
    key, namespace, _reserved, hashed = reader.string(), reader.text(), reader.string(), reader.text()
    inner = Reader(reader.string())
    reader.end()
    form = inner.text()
    value = inner.take(inner.uint32())
    rest = inner.take(5) if form.startswith("sk-") else b""  # flags and a counter, of a hardware key
    inner.end()
    if hashed not in _HASHES:
        raise BadForm(f"is made of the hash {hashed[:20]!r}; sha256 and sha512 are known")
    return SshSignature(key=key, namespace=namespace, hash=hashed, form=form, value=value + rest)


def holds(signature: SshSignature, payload: bytes) -> bool:
    """Whether the key made it of these bytes, for Git. BadForm for a key or an algorithm that is not known."""
    if signature.namespace != NAMESPACE:
        raise BadForm(f"is for {signature.namespace[:40]!r} and not for Git")
    return ssh_keys.verified(signature.key, signature.form, signature.value, _signed(payload, signature.hash))


def signed(payload: bytes, key: Redacted, passphrase: Redacted | None = None) -> str:
    """The armoured signature. ValueError, without the key, when it cannot be used."""
    public, form, value = ssh_keys.signed(key, passphrase, _signed(payload, "sha512"))
    blob = _MAGIC + (1).to_bytes(4, "big") + string(public) + string(NAMESPACE) + string("") + string("sha512")
    blob += string(string(form) + string(value))
    return "\n".join([BEGIN, *textwrap.wrap(base64.b64encode(blob).decode(), 70), END])


def _signed(payload: bytes, hashed: str) -> bytes:
    return _MAGIC + string(NAMESPACE) + string("") + string(hashed) + string(_HASHES[hashed](payload).digest())

"""SSH keys in their wire forms: checking signatures with public ones, making them with private ones (RFC 4253, 5656,
8332, 8709; OpenSSH's PROTOCOL.u2f for keys in hardware)."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from trimtab.model.redacted import Redacted
from trimtab.runtime.git.errors import GitMissing
from trimtab.runtime.git.wire import BadForm, Reader, mpint, string

RSA_BITS = 2048
_ED25519, _RSA = "ssh-ed25519", "ssh-rsa"
_SK_ED25519, _SK_ECDSA = "sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"
_PRESENT = 1
"""The flag of a hardware key that somebody touched."""


def fingerprint(key: bytes) -> str:
    """As OpenSSH shows it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")


def verified(key: bytes, form: str, value: bytes, data: bytes) -> bool:
    """Whether `value` is the signature of `data` by this public key. SHA-1 (form ssh-rsa) and DSA are not accepted."""
    from cryptography.exceptions import InvalidSignature

    reader = Reader(key)
    kind = reader.text()
    try:
        if kind in (_SK_ED25519, _SK_ECDSA):
            _in_hardware(kind, reader, form, value, data)
        elif kind == _ED25519:
            _same(form, kind)
            _ed25519(reader, value, data)
        elif kind.startswith("ecdsa-sha2-"):
            _same(form, kind)
            _ecdsa(kind, reader, value, data)
        elif kind == _RSA:
            _rsa(reader, form, value, data)
        else:
            raise BadForm(f"is by a key of type {kind[:40]!r}, which is not accepted")
    except InvalidSignature:
        return False
    return True


def _same(form: str, kind: str) -> None:
    if form != kind:
        raise BadForm(f"is of form {form[:40]!r}, which keys of type {kind} do not make")


def _ed25519(reader: Reader, value: bytes, data: bytes) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = Ed25519PublicKey.from_public_bytes(reader.string())
    except ValueError:
        raise BadForm("has a public key that is none") from None
    key.verify(value, data)


def _ecdsa(kind: str, reader: Reader, value: bytes, data: bytes) -> None:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    curves: dict[str, tuple[ec.EllipticCurve, hashes.HashAlgorithm]] = {
        "nistp256": (ec.SECP256R1(), hashes.SHA256()),
        "nistp384": (ec.SECP384R1(), hashes.SHA384()),
        "nistp521": (ec.SECP521R1(), hashes.SHA512()),
    }
    name = reader.text()
    if name not in curves or name not in kind:
        raise BadForm(f"is by a key on the curve {name[:20]!r}, which is not accepted")
    curve, hashed = curves[name]
    try:
        key = ec.EllipticCurvePublicKey.from_encoded_point(curve, reader.string())
    except ValueError:
        raise BadForm("has a public key that is none") from None
    numbers = Reader(value)
    encoded = encode_dss_signature(numbers.mpint(), numbers.mpint())
    numbers.end()
    key.verify(encoded, data, ec.ECDSA(hashed))


def _rsa(reader: Reader, form: str, value: bytes, data: bytes) -> None:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    hashed = {"rsa-sha2-256": hashes.SHA256(), "rsa-sha2-512": hashes.SHA512()}.get(form)
    if hashed is None:
        raise BadForm(f"is of form {form[:40]!r}; of RSA rsa-sha2-256 and rsa-sha2-512 are accepted")
    exponent, modulus = reader.mpint(), reader.mpint()
    if modulus.bit_length() < RSA_BITS:
        raise BadForm(f"is by an RSA key of {modulus.bit_length()} bits; at least {RSA_BITS} are needed")
    try:
        key = rsa.RSAPublicNumbers(exponent, modulus).public_key()
    except ValueError:
        raise BadForm("has a public key that is none") from None
    key.verify(value, data, padding.PKCS1v15(), hashed)


def _in_hardware(kind: str, reader: Reader, form: str, value: bytes, data: bytes) -> None:
    """The token signs a hash of ours together with the application, its flags and a counter."""
    _same(form, kind)
    value, rest = value[:-5], value[-5:]
    inner = reader.string() if kind == _SK_ED25519 else string(reader.text()) + string(reader.string())
    application = reader.string()
    if len(rest) != 5 or not rest[0] & _PRESENT:
        raise BadForm("is by a hardware key that nobody touched")
    told = hashlib.sha256(application).digest() + rest + hashlib.sha256(data).digest()
    if kind == _SK_ED25519:
        _ed25519(Reader(string(inner)), value, told)
    else:
        _ecdsa("ecdsa-sha2-nistp256", Reader(inner), value, told)


def signed(key: Redacted, passphrase: Redacted | None, data: bytes) -> tuple[bytes, str, bytes]:
    """The public key, the form and the signature of `data` by a private key in OpenSSH or PEM form."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    private = _loaded(key, passphrase)
    public = _public(private)
    if isinstance(private, Ed25519PrivateKey):
        return public, _ED25519, private.sign(data)
    if isinstance(private, rsa.RSAPrivateKey):
        return public, "rsa-sha2-512", private.sign(data, padding.PKCS1v15(), hashes.SHA512())
    if isinstance(private, ec.EllipticCurvePrivateKey):
        hashed = {256: hashes.SHA256(), 384: hashes.SHA384(), 521: hashes.SHA512()}.get(private.key_size)
        if hashed is not None:
            first, second = decode_dss_signature(private.sign(data, ec.ECDSA(hashed)))
            return public, Reader(public).text(), mpint(first) + mpint(second)
    raise ValueError("the signing key is of a type that is not supported; use ed25519, ecdsa or rsa")


def _loaded(key: Redacted, passphrase: Redacted | None) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key

    data = key.reveal_bytes().strip() + b"\n"
    word = passphrase.reveal_bytes() if passphrase else None
    unreadable = ValueError("the signing key cannot be read: it is no private key, or its passphrase is another")
    if b"BEGIN OPENSSH PRIVATE KEY" not in data:
        try:
            return load_pem_private_key(data, password=word)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise unreadable from None
    try:
        return load_ssh_private_key(data, password=word)
    except UnsupportedAlgorithm:  # bcrypt, by which OpenSSH locks its keys, is a package of its own
        if word is None:
            raise unreadable from None
    except (ValueError, TypeError):
        raise unreadable from None
    try:
        return load_ssh_private_key(_unlocked(data, word), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise unreadable from None


def _unlocked(data: bytes, word: bytes) -> bytes:
    """The same key without its passphrase, by ssh-keygen: the passphrase goes by the environment, not as an argument."""
    if shutil.which("ssh-keygen") is None:
        raise GitMissing("'ssh-keygen' is needed for a key with a passphrase; install the package 'openssh-client'")
    with tempfile.TemporaryDirectory(prefix="key-") as place:
        home = Path(place)
        for name, content, mode in (("key", data, 0o600), ("answer", ANSWER, 0o700)):
            (home / name).touch(mode=mode)
            (home / name).write_bytes(content)
        env = {"PATH": os.environ.get("PATH", os.defpath), **asking(home / "answer", word.decode(errors="replace"))}
        subprocess.run(  # noqa: S603
            ["ssh-keygen", "-q", "-p", "-N", "", "-f", str(home / "key")],  # noqa: S607
            env=env, stdin=subprocess.DEVNULL, capture_output=True, start_new_session=True, timeout=30, check=False,
        )  # fmt: skip
        return (home / "key").read_bytes()


ANSWER = b'#!/bin/sh\nprintf "%s\\n" "$TRIMTAB_ANSWER"\n'
"""A program that gives OpenSSH's programs what they would ask a person for."""


def asking(program: Path | str, answer: str) -> dict[str, str]:
    """The environment in which they ask it."""
    return {
        "SSH_ASKPASS": str(program), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": "none", "TRIMTAB_ANSWER": answer,
    }  # fmt: skip


def _public(private: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    line = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return base64.b64decode(line.split()[1])

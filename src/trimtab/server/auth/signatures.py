"""The keys that may sign tokens, and the algorithms of RFC 7518 §3 that go with them: those that kube-apiserver takes.

A key has one algorithm, so that a token never chooses by which it is verified. Import it late: `cryptography` is slow to load.
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import NamedTuple, Protocol

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

MIN_RSA = 2048

_PEM = re.compile(rb"-----BEGIN ((?:RSA |EC |ENCRYPTED )?PRIVATE KEY)-----.*?-----END \1-----", re.DOTALL)


class Signer(Protocol):
    """A key pair. `public` is what a JSON Web Key (RFC 7517) tells of it beside the algorithm and the id."""

    @property
    def algorithm(self) -> str: ...

    @property
    def key_id(self) -> str: ...

    @property
    def public(self) -> dict[str, str]: ...

    def sign(self, message: bytes) -> bytes: ...

    def verify(self, signature: bytes, message: bytes) -> bool: ...


def load_signer(pem: bytes) -> Signer:
    """The first private key in a PEM file, which may hold more: `openssl ecparam` puts the curve before it. ValueError."""
    block = _PEM.search(pem)
    if block is None:
        raise ValueError("there is no private key in PEM in it")
    try:
        key = serialization.load_pem_private_key(block[0], None)
    except TypeError:
        raise ValueError("its private key is encrypted") from None
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError("its private key cannot be read") from None
    if isinstance(key, rsa.RSAPrivateKey):
        if key.key_size < MIN_RSA:
            raise ValueError(f"its RSA key has {key.key_size} bits, fewer than {MIN_RSA}")
        return _Rsa(key)
    if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name in _CURVES:
        return _Ecdsa(key, _CURVES[key.curve.name])
    raise ValueError("its private key is neither an RSA key nor one on P-256, P-384 or P-521")


class _Curve(NamedTuple):
    algorithm: str
    name: str
    digest: hashes.HashAlgorithm
    size: int
    """Bytes of a coordinate, and of either half of a signature."""


_CURVES = {
    "secp256r1": _Curve("ES256", "P-256", hashes.SHA256(), 32),
    "secp384r1": _Curve("ES384", "P-384", hashes.SHA384(), 48),
    "secp521r1": _Curve("ES512", "P-521", hashes.SHA512(), 66),
}


class _Ecdsa:
    def __init__(self, key: ec.EllipticCurvePrivateKey, curve: _Curve) -> None:
        self._private, self._public, self._curve = key, key.public_key(), curve
        self.algorithm = curve.algorithm
        self.key_id = _key_id(self._public)

    @property
    def public(self) -> dict[str, str]:
        numbers, size = self._public.public_numbers(), self._curve.size
        x, y = (encoded(number.to_bytes(size, "big")) for number in (numbers.x, numbers.y))
        return {"kty": "EC", "crv": self._curve.name, "x": x, "y": y}

    def sign(self, message: bytes) -> bytes:
        r, s = decode_dss_signature(self._private.sign(message, ec.ECDSA(self._curve.digest)))
        return r.to_bytes(self._curve.size, "big") + s.to_bytes(self._curve.size, "big")

    def verify(self, signature: bytes, message: bytes) -> bool:
        size = self._curve.size
        if len(signature) != 2 * size:
            return False
        r, s = int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big")
        try:
            self._public.verify(encode_dss_signature(r, s), message, ec.ECDSA(self._curve.digest))
        except InvalidSignature:
            return False
        return True


class _Rsa:
    algorithm = "RS256"

    def __init__(self, key: rsa.RSAPrivateKey) -> None:
        self._private, self._public = key, key.public_key()
        self.key_id = _key_id(self._public)

    @property
    def public(self) -> dict[str, str]:
        numbers = self._public.public_numbers()
        n, e = (encoded(number.to_bytes((number.bit_length() + 7) // 8, "big")) for number in (numbers.n, numbers.e))
        return {"kty": "RSA", "n": n, "e": e}

    def sign(self, message: bytes) -> bytes:
        return self._private.sign(message, padding.PKCS1v15(), hashes.SHA256())

    def verify(self, signature: bytes, message: bytes) -> bool:
        try:
            self._public.verify(signature, message, padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            return False
        return True


def encoded(data: bytes) -> str:
    """RFC 7515 §2: base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _key_id(public: ec.EllipticCurvePublicKey | rsa.RSAPublicKey) -> str:
    der = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return encoded(hashlib.sha256(der).digest())

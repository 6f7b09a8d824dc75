"""Tokens by every kind of key that kube-apiserver signs with, verified by us and by a stranger."""

from __future__ import annotations

import subprocess

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from trimtab.server.auth.tokens import InvalidTokenError, Ref, TokenKey, encode_claims

NOW = 1_700_000_000.0

CLAIMS = encode_claims(
    issuer="https://issuer.example",
    audiences=("vault",),
    namespace="default",
    service_account=Ref("robot", "u-1"),
    bound={},
    now=NOW,
    seconds=600,
)

Private = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


def pem(key: Private, form: str = "PKCS8", password: bytes = b"") -> bytes:
    secret = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, getattr(serialization.PrivateFormat, form), secret)


KEYS = {
    "RS256": rsa.generate_private_key(65537, 2048),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "ES384": ec.generate_private_key(ec.SECP384R1()),
    "ES512": ec.generate_private_key(ec.SECP521R1()),
}


@pytest.mark.parametrize("form", ["PKCS8", "TraditionalOpenSSL"])
@pytest.mark.parametrize("algorithm", KEYS)
def test_a_token_is_verified_by_its_key_and_by_what_is_public_of_it(algorithm: str, form: str) -> None:
    key = TokenKey(pem(KEYS[algorithm], form))
    token = key.sign(CLAIMS)
    assert key.verify(token).name == "robot"
    assert jwt.get_unverified_header(token) == {"alg": algorithm, "kid": key.jwk()["kid"]}
    public = jwt.PyJWKSet.from_dict({"keys": [key.jwk()]})[key.jwk()["kid"]]
    claims = jwt.decode(token, public, algorithms=[algorithm], audience="vault", options={"verify_exp": False})
    assert (key.jwk()["alg"], claims["sub"]) == (algorithm, "system:serviceaccount:default:robot")


@pytest.mark.parametrize("algorithm", KEYS)
def test_a_key_believes_no_other(algorithm: str) -> None:
    key = TokenKey(pem(KEYS[algorithm]))
    head, claims, signature = key.sign(CLAIMS).split(".")
    for other in KEYS:
        if other != algorithm:
            foreign = TokenKey(pem(KEYS[other])).sign(CLAIMS)
            with pytest.raises(InvalidTokenError):
                key.verify(foreign)
            with pytest.raises(InvalidTokenError, match="invalid signature"):
                key.verify(f"{head}.{claims}.{foreign.rpartition('.')[2]}")
    for cut in (signature[:-4], ""):
        with pytest.raises(InvalidTokenError, match="invalid signature"):
            key.verify(f"{head}.{claims}.{cut}")


def test_nothing_private_is_told_of_an_rsa_key() -> None:
    assert TokenKey(pem(KEYS["RS256"])).jwk().keys() == {"use", "kty", "kid", "alg", "n", "e"}


def test_the_curve_may_stand_before_the_key_as_openssl_writes_it() -> None:
    command = ["openssl", "ecparam", "-name", "secp384r1", "-genkey"]
    made = subprocess.run(command, capture_output=True, check=True).stdout
    assert b"BEGIN EC PARAMETERS" in made
    assert TokenKey(made).jwk()["crv"] == "P-384"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no private key in PEM"),
        (b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "cannot be read"),
        (pem(KEYS["ES256"], password=b"secret"), "is encrypted"),
        (pem(rsa.generate_private_key(65537, 1024)), "1024 bits, fewer than 2048"),
        (pem(ec.generate_private_key(ec.SECP256K1())), "neither an RSA key nor one on P-256, P-384 or P-521"),
        (pem(ed25519.Ed25519PrivateKey.generate()), "neither an RSA key nor one on P-256, P-384 or P-521"),
    ],
    ids=["empty", "garbage", "encrypted", "short", "curve", "ed25519"],
)
def test_another_key_is_refused_with_the_reason(content: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        TokenKey(content).check()

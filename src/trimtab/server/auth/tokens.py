"""Service-account tokens: JSON Web Tokens (RFC 7519) with the claims that Kubernetes puts in them.

Nothing of a token is believed, or even parsed beyond its length and its three parts, before the signature was verified.
`cryptography` is imported at the first use of the key.
"""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from trimtab.server.auth.wording import quoted_list

if TYPE_CHECKING:
    from trimtab.server.auth.signatures import Signer

LEEWAY = 60.0
"""Seconds by which clocks may differ: a token is accepted this long before and after its time."""

ISSUER = "https://kubernetes.default.svc.cluster.local"
"""The issuer, and so the only audience, unless the server is told another."""


INVALID = "invalid bearer token"


class InvalidTokenError(Exception):
    """The token is not one of ours, not for us, or not valid now. The message never holds any of it."""


class Ref(msgspec.Struct, frozen=True, omit_defaults=True):
    """An object that a token is of or bound to."""

    name: str = ""
    uid: str = ""


class Bound(NamedTuple):
    """An object that must exist, as the same one, for a token to be valid."""

    resource: str
    namespace: str
    name: str
    uid: str


class _Kubernetes(msgspec.Struct, frozen=True, omit_defaults=True):
    namespace: str = ""
    serviceaccount: Ref = Ref()
    pod: Ref | None = None
    secret: Ref | None = None
    node: Ref | None = None


class _Claims(msgspec.Struct, frozen=True, omit_defaults=True):
    aud: tuple[str, ...] | str = ()
    exp: int | float = 0
    iat: int | float = 0
    iss: str = ""
    jti: str = ""
    kubernetes: _Kubernetes = msgspec.field(name="kubernetes.io", default=_Kubernetes())
    nbf: int | float = 0
    sub: str = ""


class ServiceAccountClaims:
    """The verified claims of a token. Its repr names the account only."""

    def __init__(self, claims: _Claims) -> None:
        self._claims = claims

    def __repr__(self) -> str:
        return f"ServiceAccountClaims({self.namespace}/{self.name})"

    @property
    def namespace(self) -> str:
        return self._claims.kubernetes.namespace

    @property
    def name(self) -> str:
        return self._claims.kubernetes.serviceaccount.name

    @property
    def uid(self) -> str:
        return self._claims.kubernetes.serviceaccount.uid

    @property
    def issuer(self) -> str:
        return self._claims.iss

    @property
    def jti(self) -> str:
        return self._claims.jti

    @property
    def expires(self) -> float:
        return self._claims.exp

    @property
    def audiences(self) -> tuple[str, ...]:
        audience = self._claims.aud
        return (audience,) if isinstance(audience, str) else audience

    @property
    def pod(self) -> Ref | None:
        return self._claims.kubernetes.pod

    @property
    def node(self) -> Ref | None:
        return self._claims.kubernetes.node

    @property
    def bound(self) -> tuple[Bound, ...]:
        """What the token is bound to. The node of a pod's token is information, not a condition."""
        claims = self._claims.kubernetes
        if claims.pod is not None:
            return (Bound("pods", claims.namespace, claims.pod.name, claims.pod.uid),)
        if claims.secret is not None:
            return (Bound("secrets", claims.namespace, claims.secret.name, claims.secret.uid),)
        if claims.node is not None:
            return (Bound("nodes", "", claims.node.name, claims.node.uid),)
        return ()

    def check(self, issuer: str, audiences: tuple[str, ...], now: float) -> None:
        """Raises InvalidTokenError unless the token is from `issuer`, for one of `audiences`, and valid at `now`."""
        claims = self._claims
        if claims.iss != issuer:
            raise InvalidTokenError(INVALID)
        if not set(self.audiences) & set(audiences):
            ours, wanted = quoted_list(self.audiences), quoted_list(audiences)
            raise InvalidTokenError(f"token audiences {ours} is invalid for the target audiences {wanted}")
        if not claims.exp or now - LEEWAY > claims.exp:
            raise InvalidTokenError("service account token has expired")
        if now + LEEWAY < claims.nbf:
            raise InvalidTokenError("service account token is not valid yet")
        if now + LEEWAY < claims.iat:
            raise InvalidTokenError("service account token is issued in the future")
        if not (self.namespace and self.name and self.uid):
            raise InvalidTokenError(INVALID)


class TokenKey:
    """The key pair that signs and verifies tokens. Its repr shows nothing of it."""

    def __init__(self, private_pem: bytes) -> None:
        self._pem = private_pem
        self._loaded: Signer | None = None

    def check(self) -> None:
        """Raises ValueError when the key is not one that can sign."""
        self._signer()

    def sign(self, claims: bytes) -> str:
        """A compact JWS over the encoded claims."""
        signer = self._signer()
        header = msgspec.json.encode({"alg": signer.algorithm, "kid": signer.key_id})
        signed = _encode(header) + "." + _encode(claims)
        return signed + "." + _encode(signer.sign(signed.encode()))

    def verify(self, token: str) -> ServiceAccountClaims:
        """The claims of a token that this key signed; their time, issuer and audience are still to be checked."""
        parts = token.split(".", 3)
        if len(parts) != 3 or not token.isascii():
            raise InvalidTokenError(INVALID)
        signer = self._signer()
        header, payload, signature = (_decode(part) for part in parts)
        # One algorithm and one key: what the header says can only be right or wrong, never a choice.
        try:
            said = msgspec.json.decode(header, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise InvalidTokenError(INVALID) from None
        if said.get("alg") != signer.algorithm or said.get("kid", signer.key_id) != signer.key_id or "crit" in said:
            raise InvalidTokenError(INVALID)
        if not signer.verify(signature, token.rpartition(".")[0].encode()):
            raise InvalidTokenError("invalid signature")
        try:
            return ServiceAccountClaims(msgspec.json.decode(payload, type=_Claims))
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise InvalidTokenError(INVALID) from None

    def jwk(self) -> dict[str, str]:
        """The public key as a JSON Web Key (RFC 7517), for others to verify with."""
        signer = self._signer()
        return {"use": "sig", "kid": signer.key_id, "alg": signer.algorithm, **signer.public}

    def _signer(self) -> Signer:
        if self._loaded is None:
            from trimtab.server.auth.signatures import load_signer

            self._loaded = load_signer(self._pem)
        return self._loaded


def encode_claims(
    *,
    issuer: str,
    audiences: tuple[str, ...],
    namespace: str,
    service_account: Ref,
    bound: Mapping[str, Ref],
    now: float,
    seconds: int,
) -> bytes:
    """The claims of a new token. `bound` has the keys pod, secret or node."""
    claims = _Claims(
        aud=audiences,
        exp=int(now) + seconds,
        iat=int(now),
        iss=issuer,
        jti=str(uuid.uuid4()),
        kubernetes=_Kubernetes(namespace=namespace, serviceaccount=service_account, **bound),
        nbf=int(now),
        sub=f"system:serviceaccount:{namespace}:{service_account.name}",
    )
    return msgspec.json.encode(claims)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(part: str) -> bytes:
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise InvalidTokenError(INVALID) from None

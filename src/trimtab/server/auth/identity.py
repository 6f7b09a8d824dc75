"""Who is asking: a client certificate, a bearer token, or nobody.

Flow: `known` answers from memory (a certificate, a static token, a token verified before, nobody); `authenticate` also
verifies service-account tokens, which needs reads. A credential that is wrong is a 401, never an anonymous request.

Guarantees
  - A token's answer is kept until the token expires, or until `changed` names an object that it depends on.
  - Tokens are kept as digests only, and compared in constant time.

Assumptions: TLS has verified the peer's certificate against our CA, for use by clients. `changed` is called for every
write or deletion of service accounts, secrets, pods and nodes, before or when readers see it.
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from trimtab.model.errors import unauthorized
from trimtab.server.auth.tokens import INVALID, LEEWAY, Bound, InvalidTokenError, ServiceAccountClaims, TokenKey

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"

INVALIDATED = "service account token has been invalidated"

MAX_TOKEN = 16_384
MAX_CACHED = 10_000


class User(msgspec.Struct, frozen=True):
    """Who a request is from, as RBAC and admission see it."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}

    def user_info(self) -> dict[str, Any]:
        """As `UserInfo` of authentication.k8s.io/v1: empty fields are left out."""
        info: dict[str, Any] = {"username": self.name}
        if self.uid:
            info["uid"] = self.uid
        if self.groups:
            info["groups"] = list(self.groups)
        if self.extra:
            info["extra"] = {key: list(values) for key, values in self.extra.items()}
        return info


ANONYMOUS = User("system:anonymous", groups=(UNAUTHENTICATED,))


class Reader(Protocol):
    """Objects by store resource ("serviceaccounts", "pods", …); None when there is no such object."""

    async def get(self, resource: str, namespace: str, name: str) -> Mapping[str, Any] | None: ...


class _Known(NamedTuple):
    user: User
    until: float
    depends: tuple[tuple[str, str, str], ...]


class Authenticator:
    """Turns credentials into a user. Hot: a known credential costs one digest and one look-up."""

    def __init__(
        self,
        key: TokenKey,
        reader: Reader,
        *,
        issuer: str,
        audiences: tuple[str, ...],
        former_issuers: tuple[str, ...] = (),
        static_tokens: Mapping[str, User] | None = None,
        now: Callable[[], float] = time.time,
        anonymous: bool = True,
    ) -> None:
        """Tokens of `former_issuers` are accepted as those of `issuer` are. Without `anonymous`, a request without
        credentials is a 401."""
        self._key = key
        self._reader = reader
        self._issuer = issuer
        self._former_issuers = former_issuers
        self._audiences = audiences
        self._static = {_digest(token): _with_authenticated(user) for token, user in (static_tokens or {}).items()}
        self._now = now
        self._certificates: dict[bytes, tuple[User | None, float]] = {}
        self._tokens: dict[bytes, _Known] = {}
        self._dependents: dict[tuple[str, str, str], set[bytes]] = {}
        self._epoch = 0
        self._nobody = ANONYMOUS if anonymous else None

    async def authenticate(self, authorization: str | bytes | None, peer_certificate: bytes | None = None) -> User:
        """The user behind a request. `peer_certificate` is DER. Raises StatusError 401 for a wrong credential."""
        user = self.known(authorization, peer_certificate)
        if user is not None:
            return user
        token = _bearer(authorization)
        if token is None:
            raise unauthorized()
        return await self.authenticate_token(token)

    def known(self, authorization: str | bytes | None, peer_certificate: bytes | None = None) -> User | None:
        """The user, when no read is needed to tell; else None, and `authenticate` must be asked."""
        if peer_certificate is not None:
            user = self._by_certificate(peer_certificate)
            if user is not None:
                return user
        if authorization is None:
            return self._nobody
        token = _bearer(authorization)
        if token is None:
            return self._nobody
        return self._by_known_token(_digest(token))

    async def authenticate_token(self, token: str) -> User:
        """The user that a token stands for. Raises StatusError 401, which says no more than that."""
        try:
            user, _ = await self.review_token(token)
        except InvalidTokenError:
            raise unauthorized() from None
        return user

    async def review_token(self, token: str, audiences: Sequence[str] = ()) -> tuple[User, tuple[str, ...]]:
        """The user that a token stands for, and for which of `audiences` (the server's if none are given).

        Raises InvalidTokenError, whose message may be shown to who asked for the review."""
        wanted = tuple(audiences) or self._audiences
        if len(token) > MAX_TOKEN:
            raise InvalidTokenError(INVALID)
        digest = _digest(token)
        user = self._by_known_token(digest) if wanted == self._audiences else self._by_static_token(digest)
        if user is not None:
            return user, self._static_audiences(wanted)
        epoch = self._epoch
        claims = self._key.verify(token)
        issuer = claims.issuer if claims.issuer in self._former_issuers else self._issuer
        claims.check(issuer, wanted, self._now())
        await self._check_objects(claims)
        user = service_account_user(claims)
        # While we read, something may have been deleted: then the answer is right for now, and not kept.
        if wanted == self._audiences and epoch == self._epoch:
            self._remember(digest, user, claims)
        return user, tuple(audience for audience in claims.audiences if audience in wanted)

    def changed(self, resource: str, namespace: str, name: str) -> None:
        """An object was written or deleted: forget the tokens that depend on it."""
        self._epoch += 1
        for digest in self._dependents.pop((resource, namespace, name), ()):
            self._forget(digest)

    def changed_unknown(self) -> None:
        """Changes may have been missed: forget every token."""
        self._epoch += 1
        self._tokens.clear()
        self._dependents.clear()

    def _by_certificate(self, der: bytes) -> User | None:
        found = self._certificates.get(der)
        if found is None:
            found = _parse_certificate(der)
            if len(self._certificates) >= MAX_CACHED:
                self._certificates.clear()
            self._certificates[der] = found
        user, until = found
        if self._now() > until:  # a connection may outlive the certificate that opened it
            raise unauthorized()
        return user

    def _by_known_token(self, digest: bytes) -> User | None:
        known = self._tokens.get(digest)
        if known is not None:
            if self._now() <= known.until:
                return known.user
            self._forget(digest)
        return self._by_static_token(digest)

    def _by_static_token(self, digest: bytes) -> User | None:
        match = None
        for candidate, user in self._static.items():
            if hmac.compare_digest(candidate, digest):
                match = user
        return match

    def _static_audiences(self, wanted: tuple[str, ...]) -> tuple[str, ...]:
        """Static tokens, and known ones, are for this server."""
        shared = tuple(audience for audience in self._audiences if audience in wanted)
        if not shared:
            raise InvalidTokenError(INVALID)
        return shared

    async def _check_objects(self, claims: ServiceAccountClaims) -> None:
        now = self._now()
        account = await self._reader.get("serviceaccounts", claims.namespace, claims.name)
        if account is None:
            raise InvalidTokenError(f'serviceaccounts "{claims.name}" not found')
        _check_alive(account, claims.uid, now)
        for bound in claims.bound:
            found = await self._reader.get(bound.resource, bound.namespace, bound.name)
            if found is None:
                raise InvalidTokenError(INVALIDATED)
            _check_alive(found, bound.uid, now)

    def _remember(self, digest: bytes, user: User, claims: ServiceAccountClaims) -> None:
        if len(self._tokens) >= MAX_CACHED:
            self._tokens.clear()
            self._dependents.clear()
        account = Bound("serviceaccounts", claims.namespace, claims.name, claims.uid)
        depends = tuple((b.resource, b.namespace, b.name) for b in (account, *claims.bound))
        self._tokens[digest] = _Known(user, claims.expires + LEEWAY, depends)
        for key in depends:
            self._dependents.setdefault(key, set()).add(digest)

    def _forget(self, digest: bytes) -> None:
        known = self._tokens.pop(digest, None)
        if known is None:
            return
        for key in known.depends:
            dependents = self._dependents.get(key)
            if dependents is not None:
                dependents.discard(digest)
                if not dependents:
                    del self._dependents[key]


def service_account_user(claims: ServiceAccountClaims) -> User:
    """The user that a service account's token stands for."""
    extra: dict[str, tuple[str, ...]] = {}
    if claims.jti:
        extra[CREDENTIAL_ID] = (f"JTI={claims.jti}",)
    for kind, reference in (("pod", claims.pod), ("node", claims.node)):
        if reference is not None:
            extra[f"authentication.kubernetes.io/{kind}-name"] = (reference.name,)
            if reference.uid:
                extra[f"authentication.kubernetes.io/{kind}-uid"] = (reference.uid,)
    return User(
        service_account_name(claims.namespace, claims.name),
        claims.uid,
        ("system:serviceaccounts", f"system:serviceaccounts:{claims.namespace}", AUTHENTICATED),
        extra,
    )


def service_account_name(namespace: str, name: str) -> str:
    return f"system:serviceaccount:{namespace}:{name}"


def _with_authenticated(user: User) -> User:
    if AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return msgspec.structs.replace(user, groups=(*user.groups, AUTHENTICATED))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _bearer(authorization: str | bytes | None) -> str | None:
    """The token of an Authorization header; None when the header is of another scheme, as if there were none."""
    if authorization is None:
        return None
    text = authorization.decode("latin-1") if isinstance(authorization, bytes) else authorization
    scheme, _, token = text.strip().partition(" ")
    if scheme.lower() != "bearer" or not token:
        return None
    return token.partition(" ")[0] or None


def _check_alive(found: Mapping[str, Any], uid: str, now: float) -> None:
    """An object that a token depends on must be the same one, and not be deleted for longer than clocks may differ."""
    metadata = found.get("metadata") or {}
    if metadata.get("uid") != uid:
        raise InvalidTokenError(INVALIDATED)
    deleted = metadata.get("deletionTimestamp")
    if deleted and msgspec.convert(deleted, type=datetime.datetime).timestamp() < now - LEEWAY:
        raise InvalidTokenError(INVALIDATED)


def _parse_certificate(der: bytes) -> tuple[User | None, float]:
    """The user that a certificate names (none without a CN) and the end of its validity."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        certificate = x509.load_der_x509_certificate(der)
        names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        organizations = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        until = certificate.not_valid_after_utc.timestamp()
    except ValueError:
        raise unauthorized() from None
    if not names or not names[-1].value:
        return None, until
    groups = tuple(str(attribute.value) for attribute in organizations)
    extra = {CREDENTIAL_ID: (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)}
    return _with_authenticated(User(str(names[-1].value), groups=groups, extra=extra)), until

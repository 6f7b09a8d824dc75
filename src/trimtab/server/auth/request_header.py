"""Who is asking, as a proxy in front of us says: an API server that aggregates others knows its users, and tells their names in
headers.

What it says counts only when its connection shows a client certificate of the one authority that signs front proxies, with a
name that is allowed. From anybody else the same headers are nothing: whoever can reach us could write them.

Assumptions: TLS has verified that the peer holds the certificate's key. Certificates are issued by a certificate of the bundle
itself; a chain that only the peer knows does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec

from trimtab.server.auth.identity import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User

if TYPE_CHECKING:
    from cryptography import x509

MAX_CACHED = 1000
MAX_GROUPS = 1000


class FrontProxy(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to believe, and in which headers. `names` empty: every certificate of the authority."""

    ca: bytes  # PEM, one or more
    names: tuple[str, ...] = ()
    username: tuple[str, ...] = ("x-remote-user",)
    group: tuple[str, ...] = ("x-remote-group",)
    extra: tuple[str, ...] = ("x-remote-extra-",)  # beginnings: the rest is the key
    uid: tuple[str, ...] = ()  # only where the cluster says so: older proxies pass on what their clients wrote there

    @property
    def headers(self) -> tuple[bytes, ...]:
        """Beginnings of the names of all headers that matter, for the wire to keep each time they come."""
        found = dict.fromkeys(name.lower() for name in (*self.username, *self.group, *self.extra, *self.uid))
        return tuple(name.encode() for name in found)


def front_proxy(data: Mapping[str, str]) -> FrontProxy:
    """From the ConfigMap kube-system/extension-apiserver-authentication. ValueError, which names the key."""
    ca = data.get("requestheader-client-ca-file", "")
    if "BEGIN CERTIFICATE" not in ca:
        raise ValueError(
            "requestheader-client-ca-file holds no certificate: the API server must run with "
            "--requestheader-client-ca-file and --proxy-client-cert-file to have others behind it"
        )

    def listed(key: str, otherwise: tuple[str, ...]) -> tuple[str, ...]:
        if not data.get(key):
            return otherwise
        try:
            return msgspec.json.decode(data[key], type=tuple[str, ...])
        except msgspec.DecodeError as error:
            raise ValueError(f"{key} is no list of names in JSON: {error}") from None

    usual = FrontProxy(ca=b"")
    return FrontProxy(
        ca=ca.encode(),
        names=listed("requestheader-allowed-names", ()),
        username=_lower(listed("requestheader-username-headers", usual.username)),
        group=_lower(listed("requestheader-group-headers", usual.group)),
        extra=_lower(listed("requestheader-extra-headers-prefix", usual.extra)),
        uid=_lower(listed("requestheader-uid-headers", usual.uid)),
    )


class RequestHeader:
    """Believes one front proxy. `use` changes whom, while it runs."""

    def __init__(self, proxy: FrontProxy, *, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self.use(proxy)

    def use(self, proxy: FrontProxy) -> None:
        """ValueError when the authority is no certificate."""
        from cryptography import x509

        self._authorities = x509.load_pem_x509_certificates(proxy.ca)
        self._known: dict[bytes, float] = {}  # certificate → until when it is believed; 0 is never
        self.proxy = proxy

    def user(self, peer: bytes | None, headers: Iterable[tuple[bytes, bytes]]) -> User | None:
        """Who the proxy says is asking; None when the peer (its certificate, DER) is no front proxy, or names nobody."""
        if peer is None or not self.believes(peer):
            return None
        name = uid = ""
        groups: list[str] = []
        extra: dict[str, list[str]] = {}
        proxy = self.proxy
        for raw, value in headers:
            header, text = raw.decode("latin-1").lower(), value.decode("utf-8", "replace")
            if header in proxy.username:
                name = name or text
            elif header in proxy.group:
                if text and len(groups) < MAX_GROUPS:
                    groups.append(text)
            elif header in proxy.uid:
                uid = uid or text
            else:
                prefix = next((prefix for prefix in proxy.extra if header.startswith(prefix)), None)
                if prefix is not None:
                    extra.setdefault(unquote(header[len(prefix) :]), []).append(text)
        if not name:
            return None
        if name != ANONYMOUS.name and AUTHENTICATED not in groups and UNAUTHENTICATED not in groups:
            groups.append(AUTHENTICATED)  # an API server that asks for itself leaves it out
        return User(name, uid, tuple(groups), {key: tuple(values) for key, values in extra.items()})

    def believes(self, peer: bytes) -> bool:
        """Whether this certificate is a front proxy's. A connection may outlive the certificate that opened it."""
        until = self._known.get(peer)
        if until is None:
            if len(self._known) >= MAX_CACHED:
                self._known.clear()
            until = self._known[peer] = self._judge(peer)
        return self._now() < until

    def _judge(self, peer: bytes) -> float:
        from cryptography import x509
        from cryptography.x509.oid import NameOID

        try:
            certificate = x509.load_der_x509_certificate(peer)
            names = [str(name.value) for name in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
            if self.proxy.names and not set(names[-1:]) & set(self.proxy.names):
                return 0.0
            if certificate.not_valid_before_utc.timestamp() > self._now() or not _for_clients(certificate):
                return 0.0
            issuer = next((each for each in self._authorities if _issued(certificate, each)), None)
        except ValueError:
            return 0.0
        if issuer is None:
            return 0.0
        return min(certificate.not_valid_after_utc.timestamp(), issuer.not_valid_after_utc.timestamp())


def _issued(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _for_clients(certificate: x509.Certificate) -> bool:
    """A certificate that says what it is for must say so."""
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    try:
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    return ExtendedKeyUsageOID.CLIENT_AUTH in usage or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in usage


def _lower(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)

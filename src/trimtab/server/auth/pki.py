"""What the server needs to be trusted and to trust: a CA, its serving certificate, the administrator's certificate and
token, and the key that signs service-account tokens. All of it lives in one private directory.

A start with everything in place must cost next to nothing, so what decides about renewal (hosts, ends of validity) is
kept in `state.json`, and certificates are not parsed. A certificate and its key share one file: renewal is one rename.
"""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import secrets
import ssl
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from trimtab.server.auth.files import UnsafeFileError, private_directory, read_private, write_private
from trimtab.server.auth.tokens import TokenKey

if TYPE_CHECKING:
    from trimtab.server.auth.certificates import Issuer

ALWAYS_HOSTS = (
    "localhost",
    "127.0.0.1",
    "::1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
ADMIN, MASTERS = "trimtab-admin", "system:masters"
PROXY = "front-proxy-client"

DAY = 86_400.0
CA_DAYS, LEAF_DAYS, RENEW_DAYS = 3650, 365, 30


class State(msgspec.Struct, frozen=True):
    """What was issued: the hosts of the serving certificate, and the ends of validity in seconds since the epoch."""

    hosts: tuple[str, ...]
    ca_until: float
    serving_until: float
    admin_until: float
    proxy_until: float = 0.0
    token_key: str = ""
    """The digest of the key for tokens that was last found to be one that can sign."""


class Pki(msgspec.Struct, frozen=True):
    """The directory of keys, complete. Holds paths only: a repr of it gives nothing away."""

    directory: Path

    @property
    def ca(self) -> Path:
        return self.directory / "ca.crt"

    @property
    def ca_key(self) -> Path:
        return self.directory / "ca.key"

    @property
    def serving(self) -> Path:
        return self.directory / "serving.pem"

    @property
    def admin(self) -> Path:
        return self.directory / "admin.pem"

    @property
    def admin_token(self) -> Path:
        return self.directory / "admin.token"

    @property
    def service_account_key(self) -> Path:
        return self.directory / "sa.key"

    @property
    def proxy_ca(self) -> Path:
        """The authority of the certificate by which servers behind this one know it. It signs nobody else's."""
        return self.directory / "front-proxy-ca.crt"

    @property
    def proxy_ca_key(self) -> Path:
        return self.directory / "front-proxy-ca.key"

    @property
    def proxy_client(self) -> Path:
        return self.directory / "front-proxy-client.pem"

    @property
    def state(self) -> Path:
        return self.directory / "state.json"


def ensure_pki(directory: Path, hosts: Iterable[str] = (), *, now: float | None = None) -> Pki:
    """The keys in `directory`, made or renewed as far as needed. `hosts` are names and addresses beside localhost.

    A CA within a month of its end is replaced, with all that it signed. Tokens and their key are never replaced."""
    moment = time.time() if now is None else now
    private_directory(directory)
    pki = Pki(directory)
    wanted = tuple(dict.fromkeys((*ALWAYS_HOSTS, *(_normal_host(host) for host in hosts))))
    _check_authority(pki)
    state = _read_state(pki)
    tried = "" if state is None else state.token_key
    token_key = _token_key(pki, tried)
    if state is None or not _complete(pki) or _due(state, wanted, moment):
        _issue(pki, wanted, moment, token_key)
    elif token_key != tried:
        write_private(pki.state, msgspec.json.encode(msgspec.structs.replace(state, token_key=token_key)))
    return pki


def ssl_context(pki: Pki) -> ssl.SSLContext:
    """The server's side of TLS. A client may show a certificate; one that our CA did not sign ends the handshake."""
    for path in (pki.serving, pki.ca):
        read_private(path)  # refuses links and files that others can write
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.load_cert_chain(pki.serving)
    context.load_verify_locations(cafile=pki.ca)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context


def load_authority(pki: Pki) -> Issuer:
    """The CA, ready to sign. It is read when it is needed: a server that signs nothing keeps no key."""
    authority = _load_authority(pki.ca, pki.ca_key)
    if authority is None:
        raise UnsafeFileError(f"{pki.ca} and {pki.ca_key} are gone: restart the server to have new ones")
    return authority


def split_pem(pem: bytes) -> tuple[bytes, bytes]:
    """The certificates and the key of a combined PEM file."""
    begin = pem.index(b"-----BEGIN PRIVATE KEY-----")
    return pem[:begin], pem[begin:]


def _check_authority(pki: Pki) -> None:
    """A key without a certificate is what a crash leaves at the first start; the other way round it was lost."""
    if pki.ca.exists() and not pki.ca_key.exists():
        raise UnsafeFileError(
            f"{pki.ca_key} is gone, but {pki.ca} is there: restore the key from a backup, or remove {pki.ca} too "
            "to have a new authority, which voids all certificates that were issued"
        )


def _token_key(pki: Pki, tried: str) -> str:
    """The digest of the key for tokens, made if there is none. One that is not the `tried` one must be able to sign."""
    try:
        key = read_private(pki.service_account_key)
    except FileNotFoundError:
        from trimtab.server.auth.certificates import signing_key

        key = signing_key()
        write_private(pki.service_account_key, key)
    digest = hashlib.sha256(key).hexdigest()
    if digest != tried:
        try:
            TokenKey(key).check()
        except ValueError as error:
            raise UnsafeFileError(
                f"{pki.service_account_key} cannot be used: {error}; restore it from a backup, or remove it to have a "
                "new one, which voids all tokens of service accounts"
            ) from None
    return digest


def _read_state(pki: Pki) -> State | None:
    try:
        return msgspec.json.decode(read_private(pki.state), type=State)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _complete(pki: Pki) -> bool:
    own = (pki.ca, pki.ca_key, pki.serving, pki.admin, pki.admin_token, pki.service_account_key)
    files = (*own, pki.proxy_ca, pki.proxy_ca_key, pki.proxy_client)
    for path in files:
        try:
            if not read_private(path):
                return False
        except FileNotFoundError:
            return False
    return True


def _due(state: State, hosts: tuple[str, ...], now: float) -> bool:
    soon = now + RENEW_DAYS * DAY
    return state.hosts != hosts or min(state.ca_until, state.serving_until, state.admin_until, state.proxy_until) < soon


def _issue(pki: Pki, hosts: tuple[str, ...], now: float, token_key: str) -> None:
    moment = datetime.datetime.fromtimestamp(now, datetime.UTC).replace(microsecond=0)
    leaf = datetime.timedelta(days=LEAF_DAYS)
    authority = _authority(pki.ca, pki.ca_key, "trimtab-ca", now)
    proxies = _authority(pki.proxy_ca, pki.proxy_ca_key, "trimtab-front-proxy-ca", now)
    write_private(pki.serving, authority.serving(hosts, moment, leaf))
    write_private(pki.admin, authority.client(ADMIN, (MASTERS,), moment, leaf))
    write_private(pki.proxy_client, proxies.client(PROXY, (), moment, leaf))
    if not pki.admin_token.exists():
        write_private(pki.admin_token, secrets.token_urlsafe(32).encode() + b"\n")
    until = now + LEAF_DAYS * DAY
    # Last: without a state that fits, the next start issues anew, so a crash on the way is harmless.
    state = State(hosts, authority.until, until, until, min(until, proxies.until), token_key)
    write_private(pki.state, msgspec.json.encode(state))


def _authority(certificate: Path, key: Path, name: str, now: float) -> Issuer:
    """The one that is there; a new one in place of one that is near its end."""
    from trimtab.server.auth.certificates import Issuer

    found = _load_authority(certificate, key)
    if found is None or found.until < now + RENEW_DAYS * DAY:
        moment = datetime.datetime.fromtimestamp(now, datetime.UTC).replace(microsecond=0)
        found = Issuer.create(f"{name}@{int(now)}", moment, datetime.timedelta(days=CA_DAYS))
        write_private(key, found.key_pem)
        write_private(certificate, found.certificate_pem)
    return found


def _load_authority(certificate_file: Path, key_file: Path) -> Issuer | None:
    from trimtab.server.auth.certificates import Issuer

    try:
        certificate, key = read_private(certificate_file), read_private(key_file)
    except FileNotFoundError:
        return None
    try:
        return Issuer.load(certificate, key)
    except ValueError as error:
        raise UnsafeFileError(f"{certificate_file} and {key_file} cannot be used: {error}") from None


def _normal_host(host: str) -> str:
    try:
        return str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        return host.lower().rstrip(".")

"""Whom an outbound client trusts, and the certificate that it shows."""

from __future__ import annotations

import ssl

import msgspec

from trimtab.client.tls import load_pair
from trimtab.model.redacted import Redacted


class Tls(msgspec.Struct, frozen=True, kw_only=True):
    """All in PEM. `ca` is trusted besides the system's authorities. `insecure` trusts anybody: it must be asked for."""

    ca: bytes = b""
    certificate: bytes = b""
    key: Redacted | None = None
    insecure: bool = False


class TlsError(ValueError):
    """What was given cannot be used. The text holds no part of it."""


def context(tls: Tls, *, with_identity: bool = True) -> ssl.SSLContext:
    """Reads the system's authorities: takes some milliseconds."""
    made = ssl.create_default_context()
    if tls.ca:
        try:
            made.load_verify_locations(cadata=tls.ca.decode("ascii", "ignore"))  # comments may be in any language
        except ssl.SSLError:
            raise TlsError("the certificate authority is no certificate in PEM") from None
    if tls.insecure:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    if with_identity and tls.certificate:
        try:
            load_pair(made, tls.certificate, tls.key.reveal_bytes() if tls.key is not None else b"")
        except ssl.SSLError as error:
            raise TlsError(
                f"the client certificate or its key cannot be used: {error.reason or 'not in PEM'}"
            ) from None
    return made

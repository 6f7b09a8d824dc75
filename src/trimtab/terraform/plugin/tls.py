"""TLS between Terraform and the provider: each side knows the other's certificate, and nobody else gets in."""

from __future__ import annotations

import ssl


def server_context(identity: str, client: str) -> ssl.SSLContext:
    """`identity` is the PEM file with our certificate and key, `client` the PEM of the one certificate that may connect."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _both(context, identity)
    context.load_verify_locations(cadata=client)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(identity: str, server: bytes) -> ssl.SSLContext:
    """For the other end: `server` is the certificate, in DER, that a provider named in its first line."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _both(context, identity)
    context.load_verify_locations(cadata=server)
    return context


def _both(context: ssl.SSLContext, identity: str) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2"])
    context.load_cert_chain(identity)

"""What commands that take requests from elsewhere have in common: where they listen, and with which certificate."""

from __future__ import annotations

import ipaddress
import ssl
from pathlib import Path

from trimtab.cli.codes import USAGE, Problem


def address(text: str) -> tuple[str, int]:
    """Of HOST:PORT."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdecimal()) or not 0 <= int(port) <= 65535:
        raise Problem(f'--listen "{text}" is not HOST:PORT, as 127.0.0.1:7480', USAGE)
    return host.removeprefix("[").removesuffix("]"), int(port)


def tls(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """None when there is neither: plain HTTP."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise Problem("--tls-certificate and --tls-key go together", USAGE)
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        made.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        raise Problem(f"{certificate} and {key} are no certificate and its key in PEM: {error.reason}") from None
    except OSError as error:
        raise Problem(f"the certificate or its key cannot be read: {error.strerror}") from None
    return made


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

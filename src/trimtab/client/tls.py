"""The TLS of a client: what it trusts, and the certificate that it shows."""

from __future__ import annotations

import os
import ssl
import tempfile

from trimtab.client.config import Config, ConfigError
from trimtab.client.credentials import Identity


def context(config: Config, identity: Identity) -> ssl.SSLContext:
    """A context for a server on https."""
    try:
        made = ssl.create_default_context(cadata=config.ca.decode("ascii", "replace") if config.ca else None)
    except ssl.SSLError:
        raise ConfigError(f"{config.source}: the certificate authority is no certificate in PEM") from None
    if not config.verify:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    if identity.certificate:
        try:
            load_pair(made, identity.certificate, identity.key)
        except ssl.SSLError as error:
            raise ConfigError(
                f"{config.source}: the client certificate or its key cannot be used: {error.reason or 'not in PEM'}"
            ) from None
    return made


def load_pair(made: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Show this certificate from now on; SSLError when the pair, in PEM, cannot be used. The library reads files only: one
    in memory where there is such, else a private one that is gone at once."""
    pem = certificate + b"\n" + key
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        with os.fdopen(os.memfd_create("certificate", os.MFD_CLOEXEC), "wb") as file:
            file.write(pem)
            file.flush()
            made.load_cert_chain(f"/proc/self/fd/{file.fileno()}", password=_no_password)
        return
    with tempfile.NamedTemporaryFile() as file:  # mode 0600
        file.write(pem)
        file.flush()
        made.load_cert_chain(file.name, password=_no_password)


def _no_password() -> bytes:
    """Without this the library would ask at the terminal."""
    return b""

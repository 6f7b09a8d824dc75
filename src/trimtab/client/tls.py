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
        _load(made, identity, config.source)
    return made


def _load(made: ssl.SSLContext, identity: Identity, source: str) -> None:
    """The library reads certificates from files only: a private one, gone at once."""
    descriptor, path = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(identity.certificate + b"\n" + identity.key)
        made.load_cert_chain(path, password=_no_password)
    except ssl.SSLError as error:
        raise ConfigError(f"{source}: the client certificate or its key cannot be used: {error.reason}") from None
    finally:
        os.unlink(path)


def _no_password() -> bytes:
    """Without this the library would ask at the terminal."""
    return b""

"""The certificate by the `openssl` program, where Python has no package that could make one: the same one otherwise."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

DAY = 24 * 3600
PATIENCE = 30.0

_SETTINGS = """\
[req]
distinguished_name = name
x509_extensions = extensions
prompt = no
[name]
CN = localhost
[extensions]
subjectAltName = DNS:localhost
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, digitalSignature, keyAgreement, keyCertSign
extendedKeyUsage = serverAuth, clientAuth
"""


def program() -> str | None:
    return shutil.which("openssl")


def pem(begins: int, ends: int) -> bytes:
    """Certificate and key. They lie, for a moment, in a folder that only its owner can enter."""
    with tempfile.TemporaryDirectory(prefix="trimtab-") as folder:
        settings, key, certificate = (Path(folder, name) for name in ("settings", "key", "certificate"))
        settings.write_text(_SETTINGS)
        days = -(-(ends - begins) // DAY)
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-sha256", "-days", str(days)]
        files = ["-config", str(settings), "-keyout", str(key), "-out", str(certificate)]
        command = [program() or "openssl", "req", "-x509", *curve, *files]
        subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=PATIENCE, check=True)  # noqa: S603
        return certificate.read_bytes() + key.read_bytes()

"""Makes the certificate and key by which the provider proves itself to Terraform, at install time and when they near their end.

The `cryptography` package does it, which takes 100 ms to load: that is why it is not done at each start. What is made is a
file that only its owner can read, in a folder that only its owner can enter. It gets its name when it is whole, and one
process at a time makes one. Beside it lies the path of the Python that made it: the provider runs without the packages of
that one, and asks it (`python -m trimtab.terraform.certificate FOLDER`) when the certificate nears its end.
"""

from __future__ import annotations

import datetime
import os
import secrets
import sys
import time
from collections.abc import Callable

from trimtab.terraform.plugin.identity import DAY, MAKER, RENEW, Identity, Unsafe, find

LIFE = 120 * DAY


def ensure(where: str, now: float | None = None, pem: Callable[[int, int], bytes] | None = None) -> Identity:
    """The identity that lies there, or a new one when there is none or it ends within `RENEW`. `pem` makes one of two
    moments where `cryptography` shall not."""
    moment = time.time() if now is None else now
    found = find(where, moment)
    if found is not None and found.ends - moment >= RENEW:
        return found
    os.makedirs(where, mode=0o700, exist_ok=True)
    with _Locked(where):
        found = find(where, moment)  # another may have made it while we waited
        if found is not None and found.ends - moment >= RENEW:
            return found
        _make(where, int(moment), pem)
        _clear(where, moment)
    made = find(where, moment)
    if made is None:
        raise Unsafe(f"{where}: the certificate that was just made is gone")
    return made


def _make(where: str, moment: int, pem: Callable[[int, int], bytes] | None) -> None:
    ends = moment + LIFE
    _write(where, f"{ends}.pem", (pem or _pem)(moment, ends))
    if pem is None:
        _write(where, MAKER, os.fsencode(sys.executable))


def _write(where: str, name: str, data: bytes) -> None:
    partial = os.path.join(where, f".{secrets.token_hex(8)}.partial")
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, os.path.join(where, name))
    except BaseException:
        os.unlink(partial)
        raise


def _pem(moment: int, ends: int) -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    usage = x509.KeyUsage(True, False, False, False, True, True, False, False, False)  # sign, agree, certify itself
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.datetime.fromtimestamp(moment - 3600, datetime.UTC))  # clocks differ
        .not_valid_after(datetime.datetime.fromtimestamp(ends, datetime.UTC))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM) + secret


def _clear(where: str, moment: float) -> None:
    """Takes away what has ended, and what a maker that died left behind."""
    for name in os.listdir(where):
        stem, dot, kind = name.rpartition(".")
        ended = kind == "pem" and stem.isdecimal() and int(stem) <= moment
        if ended or (dot and kind == "partial"):
            os.unlink(os.path.join(where, name))


class _Locked:
    """One maker at a time. The lock is the system's, so it ends with a process that dies."""

    def __init__(self, where: str) -> None:
        self._path = os.path.join(where, ".lock")
        self._handle = -1

    def __enter__(self) -> None:
        self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        if os.name == "posix":
            import fcntl

            fcntl.flock(self._handle, fcntl.LOCK_EX)

    def __exit__(self, *error: object) -> None:
        os.close(self._handle)


if __name__ == "__main__":
    ensure(sys.argv[1])

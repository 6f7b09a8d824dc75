"""The certificates of a throw-away cluster: an authority, a server on loopback, and an administrator.

All are valid for a week. The key of the authority is kept in memory only.
"""

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID = datetime.timedelta(days=7)


class Pair(NamedTuple):
    """A certificate and its key, as PEM files."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates into one folder; its own certificate is `ca.crt` there."""

    def __init__(self, folder: Path, *, name: str = "trimtab-testing") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        certificate = self._build(self._name, self._key.public_key()).add_extension(constraints, critical=True)
        self.certificate = folder / "ca.crt"
        self.certificate.write_bytes(certificate.sign(self._key, hashes.SHA256()).public_bytes(_PEM))

    def server(self, name: str, *, hosts: Sequence[str] = ("localhost",)) -> Pair:
        names = [*map(x509.DNSName, hosts), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        return self._issue(name, x509.SubjectAlternativeName(names), ExtendedKeyUsageOID.SERVER_AUTH, ())

    def client(self, user: str, *, groups: Sequence[str] = ()) -> Pair:
        return self._issue(user, None, ExtendedKeyUsageOID.CLIENT_AUTH, groups)

    def _issue(
        self, name: str, names: x509.SubjectAlternativeName | None, use: x509.ObjectIdentifier, groups: Sequence[str]
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
        subject += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        builder = self._build(x509.Name(subject), key.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        pair = Pair(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        pair.certificate.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(_PEM))
        write_key(pair.key, key)
        return pair

    def _build(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return x509.CertificateBuilder(
            issuer_name=self._name,
            subject_name=subject,
            public_key=key,
            serial_number=x509.random_serial_number(),
            not_valid_before=now - datetime.timedelta(minutes=5),
            not_valid_after=now + _VALID,
        )


def write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    """Writes a private key that only we may read."""
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


_PEM = serialization.Encoding.PEM

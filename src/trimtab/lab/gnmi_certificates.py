"""Certificates of devices, as good and as bad as those in the field. `cryptography` is slow to import: import this late."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from trimtab.lab.gnmi import ServerTls

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class Authority:
    """Signs certificates; its own is `pem`."""

    def __init__(self, name: str = "lab") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        basic = x509.BasicConstraints(ca=True, path_length=None)
        self.pem = _pem(
            _builder(self._name, self._name, self._key, expired=False).add_extension(basic, True), self._key
        )

    def sign(
        self, name: str = "device", *, names: Sequence[str] = (), addresses: Sequence[str] = (), expired: bool = False
    ) -> ServerTls:
        """A certificate and its key, for a server or a client."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _named(_builder(_name(name), self._name, key, expired=expired), names, addresses)
        return ServerTls(_pem(builder, self._key), _key_pem(key))


def self_signed(
    name: str = "device",
    *,
    names: Sequence[str] = (),
    addresses: Sequence[str] = (),
    expired: bool = False,
    key: Key | None = None,
) -> ServerTls:
    """What a device makes for itself at first boot: no CA, and without names also no alternative names."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    basic = x509.BasicConstraints(ca=False, path_length=None)
    builder = _builder(_name(name), _name(name), key, expired=expired).add_extension(basic, critical=True)
    return ServerTls(_pem(_named(builder, names, addresses), key), _key_pem(key))


def old_rsa_key() -> Key:
    """Of 1024 bits, as old devices have."""
    return rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505 - that is the point


def _named(builder: x509.CertificateBuilder, names: Sequence[str], addresses: Sequence[str]) -> x509.CertificateBuilder:
    general: list[x509.GeneralName] = [x509.DNSName(each) for each in names]
    general += [x509.IPAddress(ipaddress.ip_address(each)) for each in addresses]
    return builder.add_extension(x509.SubjectAlternativeName(general), critical=False) if general else builder


def _builder(subject: x509.Name, issuer: x509.Name, key: Key, *, expired: bool) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - datetime.timedelta(days=30),
        not_valid_after=now + datetime.timedelta(days=-1 if expired else 30),
    )


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(builder: x509.CertificateBuilder, key: Key) -> bytes:
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _key_pem(key: Key) -> bytes:
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(encoding, form, serialization.NoEncryption())

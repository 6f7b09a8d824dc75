"""X.509 certificates of the server's own CA. All keys are P-256: made in well under a millisecond, accepted everywhere.

`cryptography` takes tens of milliseconds to import, so `pki` imports this module only when something must be issued.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence, Set

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CLOCK_SKEW = datetime.timedelta(hours=1)
"""Certificates are valid from a little before now: clients' clocks differ."""


class Issuer:
    """A CA that can sign. Its repr shows no key."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self._certificate = certificate
        self._key = key

    @classmethod
    def load(cls, certificate: bytes, key: bytes) -> Issuer:
        """Raises ValueError when the two are not PEM or do not belong together."""
        loaded = serialization.load_pem_private_key(key, None)
        if not isinstance(loaded, ec.EllipticCurvePrivateKey):
            raise ValueError("the key of the CA is not an EC key")
        issuer = cls(x509.load_pem_x509_certificate(certificate), loaded)
        if issuer._certificate.public_key() != loaded.public_key():
            raise ValueError("the certificate and the key of the CA do not belong together")
        return issuer

    @classmethod
    def create(cls, name: str, now: datetime.datetime, lifetime: datetime.timedelta) -> Issuer:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = (
            _builder(subject, subject, key.public_key(), now, lifetime)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(certificate, key)

    @property
    def until(self) -> float:
        """The end of validity, in seconds since the epoch."""
        return self._certificate.not_valid_after_utc.timestamp()

    @property
    def certificate_pem(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return key_pem(self._key)

    def serving(self, hosts: Sequence[str], now: datetime.datetime, lifetime: datetime.timedelta) -> bytes:
        """Certificate and key, in one PEM, of a server that is reached by these names and addresses."""
        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "trimtab")])
        return self._issue(subject, ExtendedKeyUsageOID.SERVER_AUTH, names, now, lifetime)

    def client(self, user: str, groups: Sequence[str], now: datetime.datetime, lifetime: datetime.timedelta) -> bytes:
        """Certificate and key, in one PEM, of a user: CN is the name, each O a group."""
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        return self._issue(subject, ExtendedKeyUsageOID.CLIENT_AUTH, None, now, lifetime)

    def certify(
        self,
        request: x509.CertificateSigningRequest,
        usages: Set[str],
        purposes: Sequence[str],
        begin: datetime.datetime,
        end: datetime.datetime,
    ) -> bytes:
        """A certificate, as PEM, for the name, the key and the alternative names of a request; for these key usages (names
        of `x509.KeyUsage`) and extended ones (OIDs), whatever else the request asks for."""
        builder = (
            x509.CertificateBuilder()
            .subject_name(request.subject)
            .issuer_name(self._certificate.subject)
            .public_key(request.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if usages:
            chosen = {name: name in usages for name in _USAGES}
            if not chosen["key_agreement"]:
                chosen["encipher_only"] = chosen["decipher_only"] = False  # they qualify key agreement alone
            builder = builder.add_extension(x509.KeyUsage(**chosen), critical=True)
        if purposes:
            oids = [x509.ObjectIdentifier(purpose) for purpose in purposes]
            builder = builder.add_extension(x509.ExtendedKeyUsage(oids), critical=False)
        if names := _alternative_names(request):
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _issue(
        self,
        subject: x509.Name,
        purpose: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None,
        now: datetime.datetime,
        lifetime: datetime.timedelta,
    ) -> bytes:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(subject, self._certificate.subject, key.public_key(), now, lifetime)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return certificate.public_bytes(serialization.Encoding.PEM) + key_pem(key)


def signing_key() -> bytes:
    """A new key for service-account tokens (ES256), as PEM."""
    return key_pem(ec.generate_private_key(ec.SECP256R1()))


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime.datetime,
    lifetime: datetime.timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + lifetime)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


_USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


def _alternative_names(request: x509.CertificateSigningRequest) -> list[x509.GeneralName]:
    """Those of the kinds that are handed on."""
    try:
        asked = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return []
    handed_on = (x509.DNSName, x509.IPAddress, x509.RFC822Name, x509.UniformResourceIdentifier)
    return [name for name in asked if isinstance(name, handed_on)]


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)

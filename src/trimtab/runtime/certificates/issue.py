"""Webhook certificates, made: from a bundle and an action to the bundle after it. Keys are P-256.

`cryptography` is slow to import, so `certificates` imports this module only when something must be issued.
"""

from __future__ import annotations

import ipaddress
from datetime import datetime, timedelta

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from trimtab.runtime.certificates.rotation import Action, Bundle, Lives, Pair, Retired

CLOCK_SKEW = timedelta(hours=1)
"""Certificates are valid from a little before now: the clocks of clients differ."""


def perform(action: Action, bundle: Bundle | None, now: datetime, *, hosts: tuple[str, ...], lives: Lives) -> Bundle:
    """The bundle after an action that `step` asked for."""
    now = now.replace(microsecond=0)
    if action is Action.MAKE or bundle is None:
        authority = _authority(now, lives)
        return Bundle(current=authority, serving=_serving(authority, hosts, now, lives), hosts=hosts)
    if action is Action.ANNOUNCE:
        return msgspec.structs.replace(bundle, next=_authority(now, lives), carried=None)
    if action is Action.CARRY:
        return msgspec.structs.replace(bundle, carried=now)
    if action is Action.RECALL:
        return msgspec.structs.replace(bundle, carried=None)
    if action is Action.RETIRE:
        return msgspec.structs.replace(bundle, previous=None)
    if action is Action.SWITCH and bundle.next is not None:
        return Bundle(
            current=bundle.next,
            serving=_serving(bundle.next, hosts, now, lives),
            hosts=hosts,
            previous=Retired(bundle.current.certificate, bundle.serving.until),
        )
    if action is Action.EXTEND:
        hosts = tuple(dict.fromkeys((*bundle.hosts, *hosts)))
    return msgspec.structs.replace(bundle, serving=_serving(bundle.current, hosts, now, lives), hosts=hosts)


def _authority(now: datetime, lives: Lives) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    # Two authorities in one bundle must have different names, or a client may take the wrong one.
    name = _name(f"trimtab-webhooks-{x509.SubjectKeyIdentifier.from_public_key(key.public_key()).digest.hex()[:16]}")
    builder = (
        _builder(name, name, key.public_key(), now, now + lives.authority)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
    )
    return _pair(builder.sign(key, hashes.SHA256()), key, now)


def _serving(authority: Pair, hosts: tuple[str, ...], now: datetime, lives: Lives) -> Pair:
    issuer = x509.load_pem_x509_certificate(authority.certificate.encode())
    signer = serialization.load_pem_private_key(authority.key.encode(), None)
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise ValueError("the key of the authority is not an EC key")
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    until = min(now + lives.serving, authority.until)
    builder = (
        _builder(_name("trimtab-webhooks"), issuer.subject, key.public_key(), now, until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(names, critical=False)
        .add_extension(identifier, critical=False)
    )
    return _pair(builder.sign(signer, hashes.SHA256()), key, now)


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey, now: datetime) -> Pair:
    form, cipher = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return Pair(
        certificate=certificate.public_bytes(serialization.Encoding.PEM).decode(),
        key=key.private_bytes(serialization.Encoding.PEM, form, cipher).decode(),
        since=now,
        until=certificate.not_valid_after_utc,
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, until: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)

"""Certificates for who asks for one: PKCS#10 requests (RFC 2986) in, certificates of our CA out. Pure but for randomness.

What is asked for beyond name, key and alternative names is not listened to: usages are those that were approved.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cryptography import x509

    from trimtab.server.auth.certificates import Issuer

LIFETIME = 365 * 86_400
MIN_LIFETIME = 600
BACKDATE = 300  # seconds by which a certificate is valid before it is made: clocks differ
SHORT = 8 * 3600  # those that live shorter keep their whole time
MAX_REQUEST = 64 * 1024

_BEGIN = re.compile(rb"-----BEGIN ([A-Z0-9 ]{1,64})-----\r?\n")

KEY_USAGES = {
    "signing": "digital_signature",
    "digital signature": "digital_signature",
    "content commitment": "content_commitment",
    "key encipherment": "key_encipherment",
    "key agreement": "key_agreement",
    "data encipherment": "data_encipherment",
    "cert sign": "key_cert_sign",
    "crl sign": "crl_sign",
    "encipher only": "encipher_only",
    "decipher only": "decipher_only",
}
EXTENDED_USAGES = {  # RFC 5280 §4.2.1.12 and its precursors
    "any": "2.5.29.37.0",
    "server auth": "1.3.6.1.5.5.7.3.1",
    "client auth": "1.3.6.1.5.5.7.3.2",
    "code signing": "1.3.6.1.5.5.7.3.3",
    "email protection": "1.3.6.1.5.5.7.3.4",
    "s/mime": "1.3.6.1.5.5.7.3.4",
    "ipsec end system": "1.3.6.1.5.5.7.3.5",
    "ipsec tunnel": "1.3.6.1.5.5.7.3.6",
    "ipsec user": "1.3.6.1.5.5.7.3.7",
    "timestamping": "1.3.6.1.5.5.7.3.8",
    "ocsp signing": "1.3.6.1.5.5.7.3.9",
    "microsoft sgc": "1.3.6.1.4.1.311.10.3.3",
    "netscape sgc": "2.16.840.1.113730.4.1",
}


class RequestError(ValueError):
    """What is wrong with a request, or a certificate."""


def decoded(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return b""


class Block(NamedTuple):
    """One part of a PEM text (RFC 7468)."""

    label: bytes
    inside: bytes
    text: bytes


def _blocks(pem: bytes) -> Iterator[Block]:
    """Those that are whole. What begins and never ends costs one look for its end, however often it comes."""
    place, endless = 0, set()
    while begin := _BEGIN.search(pem, place):
        place, label = begin.end(), begin[1]
        if label in endless:
            continue
        mark = b"-----END %b-----" % label
        end = pem.find(mark, place)
        if end < 0:
            endless.add(label)
            continue
        yield Block(label, pem[place:end], pem[begin.start() : end + len(mark)])
        place = end + len(mark)


def read_request(encoded: str) -> x509.CertificateSigningRequest:
    """The request in base64 of PEM, which its sender has signed. RequestError."""
    from cryptography import x509

    pem = decoded(encoded)
    if len(pem) > MAX_REQUEST:
        raise RequestError(f"must be at most {MAX_REQUEST} bytes")
    block = next(_blocks(pem), None)
    if block is None or block.label != b"CERTIFICATE REQUEST":
        raise RequestError("PEM block type must be CERTIFICATE REQUEST")
    try:
        request = x509.load_pem_x509_csr(block.text)
        genuine = request.is_signature_valid
        request.public_key()
    except Exception as error:  # the library has many for keys and algorithms that it does not know
        raise RequestError(f"the request cannot be read: {error}") from None
    if not genuine:
        raise RequestError("the signature of the request does not fit its key")
    return request


def check_certificates(encoded: str) -> None:
    """RequestError unless it is nothing, or certificates alone, in base64 of PEM."""
    from cryptography import x509

    if not encoded:
        return
    blocks = list(_blocks(decoded(encoded)))
    if not blocks:
        raise RequestError("must contain at least one CERTIFICATE PEM block")
    for word, inside, _ in blocks:
        if word != b"CERTIFICATE":
            raise RequestError(f'only CERTIFICATE PEM blocks are allowed, found "{word.decode()}"')
        if b":" in inside:
            raise RequestError("no PEM block headers are permitted")
        try:
            x509.load_der_x509_certificate(base64.b64decode(inside))
        except (ValueError, binascii.Error) as error:
            raise RequestError(f"the certificate cannot be read: {error}") from None


def organizations(request: x509.CertificateSigningRequest) -> list[str]:
    """The groups that a client would have by this certificate."""
    from cryptography.x509.oid import NameOID

    return [str(name.value) for name in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]


def client_usage_problem(usages: Sequence[str]) -> str:
    """What a certificate for clients of this server may not be used for; "" is nothing."""
    for usage in usages:
        if usage not in ("digital signature", "key encipherment", "client auth"):
            return f"invalid usage for client certificate: {usage}"
    return "" if "client auth" in usages else "missing required usage for client certificate: client auth"


def signed(
    issuer: Issuer,
    request: x509.CertificateSigningRequest,
    usages: Sequence[str],
    seconds: int | None,
    now: datetime.datetime,
) -> bytes:
    """A certificate, as PEM, for at most a year and no longer than the CA itself. RequestError when that has ended."""
    lifetime = LIFETIME if seconds is None else max(MIN_LIFETIME, min(seconds, LIFETIME))
    begin = now - datetime.timedelta(seconds=BACKDATE)
    end = now + datetime.timedelta(seconds=lifetime if lifetime < SHORT else lifetime - BACKDATE)
    last = datetime.datetime.fromtimestamp(issuer.until, datetime.UTC)
    if now >= last:
        raise RequestError("the certificate authority of this server has expired")
    extended = [EXTENDED_USAGES[usage] for usage in usages if usage in EXTENDED_USAGES]
    plain = {KEY_USAGES[usage] for usage in usages if usage in KEY_USAGES}
    return issuer.certify(request, plain, tuple(dict.fromkeys(extended)), begin, min(end, last))

"""TLS to a device: whom to trust, and by which key it is known again.

Verified, by the system's CAs or those of a Secret; or, with skipVerify, pinned: any certificate is taken on first use,
also one that is expired, unnamed, or weak, and later only the same public key. Python's own TLS makes the connection and
gRPC speaks over it (see `gnmi_link`), because gRPC's refuses an expired certificate whatever one trusts and never shows
the one it met. So the key that was judged is the key of the very connection in use: nothing can be swapped in between.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import ssl
from typing import TYPE_CHECKING

from trimtab.client.tls import load_pair
from trimtab.systems.discovery.findings import Access, NotIdentified, Outcome, Tls
from trimtab.systems.discovery.kinds.rule import REPIN_ANNOTATION

if TYPE_CHECKING:
    from cryptography import x509

ALPN = "h2"


def context(tls: Tls, *, verify: bool) -> ssl.SSLContext:
    """NotIdentified when the Secret's CA or client certificate cannot be used. Costs milliseconds: keep it."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_alpn_protocols([ALPN])
    if not verify:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
        made.set_ciphers("DEFAULT:@SECLEVEL=0")  # a pinned key may be an old device's RSA key of 1024 bits
    elif tls.ca is None:
        made.load_default_certs()
    else:
        made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # ca.crt may be the device's own certificate
        try:
            made.load_verify_locations(cadata=tls.ca.decode("ascii", "replace"))
        except ssl.SSLError:
            raise _unusable("ca.crt of the tlsSecret is no certificate in PEM") from None
    if tls.certificate is not None:
        if tls.key is None:
            raise _unusable("the tlsSecret has tls.crt but no tls.key")
        try:
            load_pair(made, tls.certificate, tls.key.reveal_bytes())
        except (ssl.SSLError, ValueError):
            raise _unusable("tls.crt and tls.key of the tlsSecret are no pair in PEM without a passphrase") from None
    return made


def name(access: Access) -> str:
    """Whom the certificate should name: serverName, else the address, without the zone of a link-local one."""
    return access.profile.server_name or access.address.partition("%")[0]


def check_name(context: ssl.SSLContext, host: str) -> None:
    """NotIdentified for a name that TLS cannot carry; found later, it would leave an open socket behind."""
    try:
        context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname=host)
    except (ValueError, TypeError):  # TypeError for a null character
        raise _unusable(f"serverName of the connection profile is no host name: {_clean(host)!r}") from None


def fingerprint(certificate: bytes) -> str:
    """Of the public key in a certificate (DER), as OpenSSH writes one: `SHA256:` and base64. ValueError."""
    digest = hashlib.sha256(_public_key(certificate)).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def judge(access: Access, certificate: bytes | None) -> str:
    """The fingerprint to trust, NotIdentified when it is not the pinned one. Verified keys may change as they like."""
    try:
        shown = fingerprint(certificate or b"")
    except ValueError:
        detail = "The device's certificate cannot be read."
        raise NotIdentified(Outcome.TLS_FAILED, detail, login="unsent") from None
    if access.profile.skip_verify and access.pins and shown not in access.pins:
        detail = (
            f"The device shows another TLS key ({shown}) than on first use; no credential was sent. If that is meant,"
            f" annotate the rule with {REPIN_ANNOTATION}={access.address}."
        )
        raise NotIdentified(Outcome.KEY_CHANGED, detail, login="unsent", pin=shown)
    return shown


async def explain(error: ssl.SSLError, access: Access, seconds: float) -> NotIdentified:
    """What went wrong with TLS, and which field mends it."""
    if not isinstance(error, ssl.SSLCertVerificationError):
        return NotIdentified(Outcome.TLS_FAILED, _broken(error))
    shown = await _look(access, seconds)
    code = error.verify_code
    if code in _WRONG_TIME:
        detail = f"The device's certificate {_WRONG_TIME[code]}{_until(shown)}; renew it, or set skipVerify."
    elif code in _WRONG_NAME:
        detail = (
            f"The device's certificate is not for {name(access)}{_names(shown)}; set serverName to a name that it has."
        )
    elif code in _UNKNOWN_CA:
        which = "the system's CAs" if access.tls.ca is None else "ca.crt of the tlsSecret"
        detail = (
            f"The device's certificate is not signed by {which}{_issuer(shown)}; give its CA as ca.crt of tlsSecret."
        )
    else:
        detail = f"The device's certificate is refused: {error.verify_message}. Replace it, or set skipVerify."
    with contextlib.suppress(ValueError):
        return NotIdentified(Outcome.TLS_FAILED, detail, pin=fingerprint(shown or b""))
    return NotIdentified(Outcome.TLS_FAILED, detail)


def dismissed(access: Access) -> NotIdentified:
    """The device broke off after the handshake, before it said a word: so TLS 1.3 looks to one whose certificate is
    not taken, or who has none, where the device does not wait to say so."""
    if access.tls.certificate is None:
        hint = "it may want a client certificate: give tls.crt and tls.key in tlsSecret"
    else:
        hint = "it may not accept our client certificate: look at tls.crt of tlsSecret"
    return NotIdentified(Outcome.TLS_FAILED, f"The device broke off right after the TLS handshake; {hint}.")


_WRONG_TIME = {9: "is not valid yet", 10: "has expired"}
_WRONG_NAME = (62, 63, 64)
_UNKNOWN_CA = (2, 18, 19, 20, 21, 24, 79)
"""X509_V_ERR_* of OpenSSL's x509_vfy.h."""


def _broken(error: ssl.SSLError) -> str:
    reason = (error.reason or "").upper()
    if "WRONG_VERSION_NUMBER" in reason or "UNKNOWN_PROTOCOL" in reason or "HTTP_REQUEST" in reason:
        return "The device does not speak TLS at this port; if it speaks gNMI in plain text, set insecure."
    if "CERTIFICATE_REQUIRED" in reason or "BAD_CERTIFICATE" in reason or "HANDSHAKE_FAILURE" in reason:
        return "The device refuses us in the TLS handshake; it may want a client certificate: tls.crt and tls.key of tlsSecret."
    if "UNKNOWN_CA" in reason or "CERTIFICATE_UNKNOWN" in reason or "CERTIFICATE_EXPIRED" in reason:
        return "The device does not accept our client certificate; look at tls.crt of tlsSecret."
    return f"TLS broke: {error.reason or 'the device sent what is no TLS'}."


async def _look(access: Access, seconds: float) -> bytes | None:
    """The certificate that could not be verified; only read, nothing is sent to its owner."""
    looking = context(Tls(), verify=False)
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(
                access.address, access.profile.used_port, ssl=looking, server_hostname=name(access)
            )
    except (OSError, TimeoutError):
        return None
    session = writer.get_extra_info("ssl_object")
    writer.transport.abort()
    return session.getpeercert(binary_form=True) if session else None


def _until(certificate: bytes | None) -> str:
    seen = _parsed(certificate)
    return f" (valid from {seen.not_valid_before_utc:%Y-%m-%d} to {seen.not_valid_after_utc:%Y-%m-%d})" if seen else ""


def _issuer(certificate: bytes | None) -> str:
    seen = _parsed(certificate)
    if seen is None:
        return ""
    if seen.issuer == seen.subject:
        return " (it signed itself)"
    return f" (its issuer is {_clean(seen.issuer.rfc4514_string())})"


def _names(certificate: bytes | None) -> str:
    seen = _parsed(certificate)
    if seen is None:
        return ""
    from cryptography import x509

    try:
        held = seen.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        names = [str(each) for kind in (x509.DNSName, x509.IPAddress) for each in held.get_values_for_type(kind)]
    except (x509.ExtensionNotFound, ValueError):
        names = []
    return f" (it is for {_clean(', '.join(names[:8]))})" if names else " (it has no names)"


def _parsed(certificate: bytes | None) -> x509.Certificate | None:
    from cryptography import x509

    try:
        return x509.load_der_x509_certificate(certificate) if certificate else None
    except ValueError:
        return None


def _clean(text: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in text[:200])


def _unusable(detail: str) -> NotIdentified:
    return NotIdentified(Outcome.TLS_FAILED, f"{detail}; nothing was sent.", login="unsent")


def _public_key(certificate: bytes) -> bytes:
    """The SubjectPublicKeyInfo of a certificate (RFC 5280 §4.1), found by its place: stricter readers refuse
    certificates that devices in the field have, for their serial number or their version."""
    body, _ = _inside(certificate, 0, _SEQUENCE)
    position, _ = _inside(certificate, body, _SEQUENCE)
    if certificate[position : position + 1] == _VERSION:
        position = _after(certificate, position)
    for _ in ("serialNumber", "signature", "issuer", "validity", "subject"):
        position = _after(certificate, position)
    _, end = _inside(certificate, position, _SEQUENCE)
    return certificate[position:end]


_SEQUENCE, _VERSION = 0x30, b"\xa0"


def _inside(data: bytes, position: int, tag: int) -> tuple[int, int]:
    """Where the contents of a DER value begin and end; ValueError when it is another one or runs over."""
    if position + 2 > len(data) or data[position] != tag:
        raise ValueError("not a certificate")
    length, begin = data[position + 1], position + 2
    if length & 0x80:
        count = length & 0x7F
        length, begin = int.from_bytes(data[begin : begin + count]), begin + count
    if begin + length > len(data):
        raise ValueError("not a certificate")
    return begin, begin + length


def _after(data: bytes, position: int) -> int:
    if position >= len(data):
        raise ValueError("not a certificate")
    return _inside(data, position, data[position])[1]

"""Whom to trust, and the fingerprint of a key."""

from __future__ import annotations

import base64
import hashlib

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.systems.discovery.gnmi_kit import der
from trimtab.lab.gnmi import ServerTls
from trimtab.lab.gnmi_certificates import Authority, old_rsa_key, self_signed
from trimtab.model.redacted import Redacted
from trimtab.systems.discovery.findings import NotIdentified, Outcome, Tls
from trimtab.systems.discovery.identify.tls import context, fingerprint

ELLIPTIC, RSA = self_signed(), self_signed(key=old_rsa_key())


@pytest.mark.parametrize("tls", [ELLIPTIC, RSA, Authority().sign(names=["a"])], ids=["EC", "RSA", "of a CA"])
def test_a_fingerprint_is_of_the_public_key(tls: ServerTls) -> None:
    key = x509.load_pem_x509_certificate(tls.certificate).public_key()
    spki = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    expected = base64.b64encode(hashlib.sha256(spki).digest()).decode().rstrip("=")
    assert fingerprint(der(tls)) == f"SHA256:{expected}"


@example(b"\x30\x02\x30\x00")
@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=64) | st.builds(lambda cut: der(ELLIPTIC)[:cut], st.integers(0, len(der(ELLIPTIC)) - 1)))
def test_what_is_no_certificate_has_no_fingerprint(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a certificate"):
        fingerprint(data)


@pytest.mark.parametrize(
    ("tls", "says"),
    [
        (Tls(b"no PEM"), "ca.crt of the tlsSecret"),
        (Tls(None, ELLIPTIC.certificate), "no tls.key"),
        (Tls(None, ELLIPTIC.certificate, Redacted(RSA.key)), "are no pair"),
        (Tls(None, b"no PEM", Redacted(b"no PEM")), "are no pair"),
    ],
)
def test_a_tls_secret_that_cannot_be_used_says_which_key_of_it(tls: Tls, says: str) -> None:
    with pytest.raises(NotIdentified) as raised:
        context(tls, verify=True)
    assert raised.value.outcome is Outcome.TLS_FAILED
    assert says in raised.value.detail

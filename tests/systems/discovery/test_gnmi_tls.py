"""gNMI over TLS: verified, pinned on first use, and with a certificate of our own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.systems.discovery.gnmi_kit import CREDENTIALS, access, access_at, der, failure, identified
from trimtab.lab.gnmi import GnmiDevice, ServerTls
from trimtab.lab.gnmi_certificates import Authority, old_rsa_key, self_signed
from trimtab.lab.gnmi_devices import srlinux
from trimtab.lab.gnmi_faults import Fault
from trimtab.model.redacted import Redacted
from trimtab.systems.discovery.findings import Outcome, Tls
from trimtab.systems.discovery.identify.tls import fingerprint
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import Process

CA = Authority()
OTHER_CA = Authority("another")


def served(tls: ServerTls) -> GnmiDevice:
    return GnmiDevice(srlinux(), login=CREDENTIALS, tls=tls)


async def test_a_certificate_of_the_given_ca_is_verified_and_its_key_is_evidence() -> None:
    tls = CA.sign(addresses=["127.0.0.1"])
    async with served(tls) as device:
        found = await identified(access(device, tls=Tls(CA.pem)))
    assert found.info.hostname == "leaf1"
    assert found.pin == found.evidence.tls_key == fingerprint(der(tls))


async def test_a_certificate_by_name_is_verified_with_server_name() -> None:
    async with served(CA.sign(names=["leaf1.example.com"])) as device:
        found = await identified(access(device, tls=Tls(CA.pem), server_name="leaf1.example.com"))
    assert found.info.hostname == "leaf1"


async def test_the_devices_own_certificate_may_be_the_ca() -> None:
    tls = self_signed(addresses=["127.0.0.1"])
    async with served(tls) as device:
        assert (await identified(access(device, tls=Tls(tls.certificate)))).info.hostname == "leaf1"


async def test_a_verified_key_may_change() -> None:
    async with served(CA.sign(addresses=["127.0.0.1"])) as device:
        found = await identified(access(device, tls=Tls(CA.pem), pins=frozenset({"SHA256:before"})))
    assert found.info.hostname == "leaf1"


@pytest.mark.parametrize(
    ("certificate", "ca", "says"),
    [
        (CA.sign(addresses=["127.0.0.1"], expired=True), CA.pem, "has expired (valid from "),
        (
            CA.sign(names=["leaf1.example.com"]),
            CA.pem,
            "not for 127.0.0.1 (it is for leaf1.example.com); set serverName",
        ),
        (CA.sign(), CA.pem, "not for 127.0.0.1 (it has no names); set serverName"),
        (
            CA.sign(addresses=["127.0.0.1"]),
            OTHER_CA.pem,
            "not signed by ca.crt of the tlsSecret (its issuer is CN=lab)",
        ),
        (
            CA.sign(addresses=["127.0.0.1"]),
            None,
            "not signed by the system's CAs (its issuer is CN=lab); give its CA as ca.crt",
        ),
        (self_signed(addresses=["127.0.0.1"]), None, "not signed by the system's CAs (it signed itself)"),
    ],
)
async def test_a_certificate_that_does_not_verify_names_the_reason_and_the_field(
    certificate: ServerTls, ca: bytes | None, says: str
) -> None:
    async with served(certificate) as device:
        why = await failure(access(device, tls=Tls(ca)))
        assert device.calls["Capabilities"] == 0
    assert (why.outcome, why.pin) == (Outcome.TLS_FAILED, fingerprint(der(certificate)))
    assert says in why.detail


@pytest.mark.parametrize(
    "certificate",
    [
        self_signed(),
        self_signed(expired=True),
        self_signed(names=["elsewhere.example.com"]),
        self_signed(key=old_rsa_key()),
        CA.sign(expired=True),
    ],
    ids=["self-signed without a name", "expired", "for another name", "RSA of 1024 bits", "expired, of a CA"],
)
async def test_skip_verify_takes_any_certificate_on_first_use_and_pins_its_key(certificate: ServerTls) -> None:
    async with served(certificate) as device:
        first = await identified(access(device, skip_verify=True))
        assert first.pin == fingerprint(der(certificate))
        again = await identified(access(device, skip_verify=True, pins=frozenset({first.pin, "SHA256:other"})))
    assert again == first


async def test_another_key_than_on_first_use_gets_no_credential() -> None:
    tls = self_signed()
    async with served(tls) as device:
        why = await failure(access(device, skip_verify=True, pins=frozenset({"SHA256:before"})))
        assert device.calls == {"Capabilities": 0, "Get": 0, "refused": 0}
    assert (why.outcome, why.pin) == (Outcome.KEY_CHANGED, fingerprint(der(tls)))
    assert "discovery.trimtab.dev/repin=127.0.0.1" in why.detail


async def test_the_key_is_judged_on_the_connection_that_is_used() -> None:
    async with GnmiDevice(srlinux(), login=CREDENTIALS, tls=self_signed(), fault=Fault.NONE) as device:
        await identified(access(device, skip_verify=True))
        assert device.connections == 1


async def test_a_renewed_certificate_with_the_same_key_is_the_same_device() -> None:
    key = old_rsa_key()
    async with served(self_signed(key=key)) as before:
        first = await identified(access(before, skip_verify=True))
    async with served(self_signed("renewed", key=key)) as after:
        assert (await identified(access(after, skip_verify=True, pins=frozenset({first.pin})))).pin == first.pin


async def test_a_device_that_wants_our_certificate_gets_it() -> None:
    ours = CA.sign("trimtab")
    wants = CA.sign(addresses=["127.0.0.1"])
    async with served(ServerTls(wants.certificate, wants.key, client_ca=CA.pem)) as device:
        shown = Tls(CA.pem, ours.certificate, Redacted(ours.key))
        assert (await identified(access(device, tls=shown))).info.hostname == "leaf1"
        assert (await identified(access(device, tls=shown, skip_verify=True))).info.hostname == "leaf1"


@pytest.mark.parametrize("shown", [None, OTHER_CA.sign("trimtab")], ids=["none", "of another CA"])
async def test_a_device_that_wants_another_certificate_of_us_says_so(shown: ServerTls | None) -> None:
    wants = CA.sign(addresses=["127.0.0.1"])
    async with served(ServerTls(wants.certificate, wants.key, client_ca=CA.pem)) as device:
        given = Tls(CA.pem, shown.certificate, Redacted(shown.key)) if shown else Tls(CA.pem)
        why = await failure(access(device, tls=given))
    assert why.outcome is Outcome.TLS_FAILED
    assert "tls.crt" in why.detail


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
@pytest.mark.parametrize(
    ("shown", "says"),
    [
        (None, "it may want a client certificate: tls.crt and tls.key of tlsSecret"),
        (OTHER_CA.sign("trimtab"), "does not accept our client certificate; look at tls.crt of tlsSecret"),
        (CA.sign("trimtab", expired=True), "does not accept our client certificate; look at tls.crt of tlsSecret"),
    ],
    ids=["none", "of another CA", "expired"],
)
async def test_what_openssl_says_of_our_certificate_is_told(
    version: str, shown: ServerTls | None, says: str, tmp_path: Path
) -> None:
    wants = CA.sign(addresses=["127.0.0.1"])
    pem, port = tmp_path / "device.pem", free_ports(1)[0]
    pem.write_bytes(wants.certificate + wants.key + CA.pem)
    command = ["openssl", "s_server", version, "-accept", f"127.0.0.1:{port}", "-cert", str(pem), "-CAfile", str(pem)]
    server = Process([*command, "-Verify", "1", "-verify_return_error", "-alpn", "h2", "-www"], log=tmp_path / "log")
    try:
        server.wait_until(lambda: "ACCEPT" in server.log.read_text(), within=20)
        given = Tls(CA.pem, shown.certificate, Redacted(shown.key)) if shown else Tls(CA.pem)
        why = await failure(access_at("127.0.0.1", port, tls=given))
    finally:
        server.stop()
    assert why.outcome is Outcome.TLS_FAILED
    assert says in why.detail


async def test_a_key_too_weak_to_verify_says_so() -> None:
    weak = self_signed(addresses=["127.0.0.1"], key=old_rsa_key())
    async with served(weak) as device:
        why = await failure(access(device, tls=Tls(weak.certificate)))
    assert why.outcome is Outcome.TLS_FAILED
    assert "too weak" in why.detail

"""What comes of a device that misbehaves: an outcome, and a sentence that says what to do."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from tests.systems.discovery.gnmi_kit import (
    CREDENTIALS,
    LOGIN,
    PASSWORD,
    SRLINUX_PATHS,
    access,
    access_at,
    der,
    failure,
    profile,
)
from trimtab.lab.gnmi import GnmiDevice
from trimtab.lab.gnmi_certificates import self_signed
from trimtab.lab.gnmi_devices import Json, srlinux
from trimtab.lab.gnmi_faults import Fault
from trimtab.model.duration import Duration
from trimtab.model.redacted import Redacted
from trimtab.systems.discovery.findings import Login, NotIdentified, Outcome
from trimtab.systems.discovery.identify.gnmi_grpc import grpc
from trimtab.systems.discovery.identify.tls import fingerprint
from trimtab.systems.discovery.vendors.choice import Vendors
from trimtab.testing.ports import free_ports

SOON = Duration("300ms")


ANYWHERE = [
    (Fault.HANG, Outcome.TIMED_OUT, "did not answer Capabilities within 300ms"),
    (Fault.HANG_ON_GET, Outcome.TIMED_OUT, "did not answer Get within 300ms"),
    (Fault.GO_AWAY, Outcome.DISCONNECTED, "broke off during Get"),
    (Fault.EMPTY, Outcome.PROTOCOL_ERROR, "none of the paths of vendor profile srlinux.nokia"),
]
IN_PLAIN_TEXT = [
    (Fault.SILENT, Outcome.TIMED_OUT, "did not answer Capabilities"),
    (Fault.DRIP, Outcome.TIMED_OUT, "did not answer Capabilities"),
    (Fault.GARBAGE, Outcome.PROTOCOL_ERROR, "no HTTP/2"),
    (Fault.BREAK, Outcome.DISCONNECTED, "broke off during Capabilities"),
]
BEFORE_TLS = [
    (Fault.SILENT, Outcome.TIMED_OUT, "TLS handshake took more than 300ms"),
    (Fault.DRIP, Outcome.TIMED_OUT, "TLS handshake took more than 300ms"),
    (Fault.GARBAGE, Outcome.TLS_FAILED, "does not speak TLS at this port"),
    (Fault.BREAK, Outcome.DISCONNECTED, "broke off"),
]


@pytest.mark.parametrize(("fault", "outcome", "says"), ANYWHERE + IN_PLAIN_TEXT)
async def test_a_device_that_misbehaves_has_a_clear_outcome(fault: Fault, outcome: Outcome, says: str) -> None:
    async with GnmiDevice(srlinux(), login=CREDENTIALS, fault=fault) as device:
        why = await failure(access(device, insecure=True, timeout=SOON))
    assert (why.outcome, why.pin) == (outcome, "")
    assert says in why.detail


@pytest.mark.parametrize(("fault", "outcome", "says"), ANYWHERE)
async def test_a_device_that_misbehaves_behind_tls_is_known_by_its_key(
    fault: Fault, outcome: Outcome, says: str
) -> None:
    tls = self_signed()
    async with GnmiDevice(srlinux(), login=CREDENTIALS, fault=fault, tls=tls) as device:
        why = await failure(access(device, skip_verify=True, timeout=SOON))
    assert (why.outcome, why.pin) == (outcome, fingerprint(der(tls)))
    assert says in why.detail


@pytest.mark.parametrize(("fault", "outcome", "says"), BEFORE_TLS)
async def test_a_device_that_misbehaves_before_tls_has_a_clear_outcome(
    fault: Fault, outcome: Outcome, says: str
) -> None:
    async with GnmiDevice(srlinux(), login=CREDENTIALS, fault=fault) as device:
        why = await failure(access(device, skip_verify=True, timeout=SOON))
    assert (why.outcome, why.pin) == (outcome, "")
    assert says in why.detail


@pytest.mark.parametrize("fault", [fault for fault, *_ in IN_PLAIN_TEXT])
@pytest.mark.parametrize("more", [{"insecure": True}, {"skip_verify": True}], ids=["plain", "tls"])
async def test_a_device_that_never_spoke_http2_got_no_login(fault: Fault, more: dict[str, bool]) -> None:
    async with GnmiDevice(srlinux(), login=CREDENTIALS, fault=fault) as device:
        assert (await failure(access(device, timeout=SOON, **more))).login == "unsent"


@pytest.mark.parametrize("fault", [Fault.HANG, Fault.HANG_ON_GET, Fault.GO_AWAY])
async def test_a_call_that_nobody_answers_leaves_its_login_unknown(fault: Fault) -> None:
    async with GnmiDevice(srlinux(), login=CREDENTIALS, fault=fault) as device:
        assert (await failure(access(device, insecure=True, timeout=SOON))).login == "unknown"


@pytest.mark.parametrize("fault", [Fault.EMPTY, Fault.HUGE])
async def test_a_call_that_is_answered_is_a_login_that_worked(fault: Fault) -> None:
    async with GnmiDevice(srlinux(), login=CREDENTIALS, fault=fault) as device:
        assert (await failure(access(device, insecure=True))).login == "accepted"


@pytest.mark.parametrize("greeting", [b"", b"\xff" * 64], ids=["silent", "garbage"])
async def test_before_the_device_speaks_http2_no_call_is_sent(greeting: bytes) -> None:
    """What `greeted` stands on. A call would be a frame of type 1 (HEADERS)."""
    heard = bytearray()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greeting)
        while data := await reader.read(4096):
            heard.extend(data)
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert (await failure(access_at("127.0.0.1", port, insecure=True, timeout=SOON))).login == "unsent"
    frames, place = set(), len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    while place < len(heard):
        frames.add(heard[place + 3])
        place += 9 + int.from_bytes(heard[place : place + 3], "big")
    assert 1 not in frames


async def test_an_answer_of_more_than_8_mib_is_not_taken() -> None:
    async with GnmiDevice(srlinux(), login=CREDENTIALS, fault=Fault.HUGE) as device:
        why = await failure(access(device, insecure=True))
    assert (why.outcome, "more than 8 MiB" in why.detail) == (Outcome.PROTOCOL_ERROR, True)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({f"system/x[n={n}]": n for n in range(20_001)}, "more than 20000 values"),
        ({"system": {"x": "y" * 1024 * 1024}}, "more than 1024 KiB of JSON"),
    ],
)
async def test_a_path_that_is_too_wide_asks_for_a_narrower_one(values: dict[str, Json], says: str) -> None:
    vendors = Vendors([profile("nokia", {"hostname": "system"}, organization="Nokia")])
    async with GnmiDevice(msgspec.structs.replace(srlinux(), values=values), login=CREDENTIALS) as device:
        why = await failure(access(device, insecure=True), vendors)
    assert why.outcome is Outcome.PROTOCOL_ERROR
    assert f"{says}; ask for narrower paths" in why.detail


async def test_a_wrong_password_is_sent_once_and_is_no_absence() -> None:
    wrong = Login("old-login", {"username": Redacted("admin"), "password": Redacted("wr0ng")})
    async with GnmiDevice(srlinux(), login=CREDENTIALS) as device:
        why = await failure(access(device, insecure=True, login=wrong))
        assert (why.outcome, device.calls["refused"]) == (Outcome.AUTHENTICATION_FAILED, 1)
    assert why.detail == "The device refused username and password of Secret old-login."
    assert why.login == "refused"


async def test_a_login_without_username_is_named_where_the_device_wants_one() -> None:
    async with GnmiDevice(srlinux(), login=CREDENTIALS) as device:
        why = await failure(access(device, insecure=True, login=Login("community", {})))
    assert why.outcome is Outcome.AUTHENTICATION_FAILED
    assert "Secret community has no username" in why.detail


async def test_a_password_with_a_line_break_is_not_sent() -> None:
    broken = Login("lab-login", {"username": Redacted("admin"), "password": Redacted(PASSWORD + "\n")})
    async with GnmiDevice(srlinux(), login=CREDENTIALS) as device:
        why = await failure(access(device, insecure=True, login=broken))
        assert device.calls["Capabilities"] == 0
    assert "ends with a line break" in why.detail
    assert why.login == "unsent"


async def test_a_port_where_nothing_listens_is_refused() -> None:
    async with GnmiDevice(srlinux()) as device:
        device.port = free_ports(1)[0]
        assert (await failure(access(device, insecure=True))).outcome is Outcome.REFUSED


async def test_a_device_that_speaks_tls_is_told_from_one_that_is_gone() -> None:
    async with GnmiDevice(srlinux(), tls=self_signed()) as device:
        why = await failure(access(device, insecure=True))
    assert "insecure" in why.detail


async def other_server(answer: bytes | None) -> NotIdentified:
    """Why a gRPC server is no device: one without gNMI, or one that answers Capabilities so."""

    async def capabilities(request: bytes, context: object) -> bytes | None:
        return answer

    server = grpc.aio.server()
    if answer is not None:
        handler = grpc.unary_unary_rpc_method_handler(capabilities)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("gnmi.gNMI", {"Capabilities": handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        return await failure(access_at("127.0.0.1", port, insecure=True))
    finally:
        await server.stop(None)


async def test_a_grpc_server_without_gnmi_is_no_device() -> None:
    why = await other_server(None)
    assert (why.outcome, "no gNMI Capabilities" in why.detail) == (Outcome.PROTOCOL_ERROR, True)


async def test_an_answer_that_is_no_message_of_gnmi_is_no_device() -> None:
    why = await other_server(b"\xff\xff\xff")
    assert (why.outcome, "no message of gNMI" in why.detail) == (Outcome.PROTOCOL_ERROR, True)


async def test_a_device_that_refuses_every_path_says_why() -> None:
    vendors = Vendors([profile("nokia", {"hostname": "no/such", "version": "nor/this"}, organization="Nokia")])
    async with GnmiDevice(srlinux(), login=CREDENTIALS, fault=Fault.ONE_BAD_PATH) as device:
        why = await failure(access(device, insecure=True), vendors)
    assert why.outcome is Outcome.PROTOCOL_ERROR
    assert "unknown element 'such'" in why.detail
    assert why.login == "accepted"


async def test_a_device_that_echoes_our_password_does_not_bring_it_into_the_detail() -> None:
    vendors = Vendors([profile("nokia", {"hostname": PASSWORD}, organization="Nokia")])
    async with GnmiDevice(srlinux(), login=CREDENTIALS, fault=Fault.ONE_BAD_PATH) as device:
        why = await failure(access(device, insecure=True), vendors)
    assert "unknown element '[redacted]'" in why.detail


async def test_a_device_whose_login_ends_in_the_middle_is_not_asked_again() -> None:
    """Get by get, each with the credential, would lock us out."""
    vendors = Vendors([profile("nokia", {**SRLINUX_PATHS, "platform": "no/such/path"}, organization="Nokia")])
    fault = Fault.ONE_BAD_PATH
    async with GnmiDevice(srlinux(), login=CREDENTIALS, fault=fault, logins=2) as device:
        why = await failure(access(device, insecure=True, login=msgspec.structs.replace(LOGIN, secret="s")), vendors)
        assert (why.outcome, device.calls["refused"]) == (Outcome.AUTHENTICATION_FAILED, 1)

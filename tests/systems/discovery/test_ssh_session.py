"""A login by SSH: what is sent when, what is never sent, and what becomes of devices that misbehave."""

import asyncio
import socket
import time

import asyncssh
import pytest
from msgspec.structs import replace

from tests.systems.discovery.ssh_access import access
from trimtab.lab.ssh import SshDevice
from trimtab.lab.ssh_personalities import IOS, Fault
from trimtab.systems.discovery.findings import Access, NotIdentified, Outcome
from trimtab.systems.discovery.identify.ssh_session import logged_in
from trimtab.testing.ports import free_ports

KEY = asyncssh.generate_private_key("ssh-ed25519")
PEM = KEY.export_private_key().decode()


def to(device: SshDevice, *, timeout: str = "5s", pins: frozenset[str] = frozenset(), **values: str) -> Access:
    return access("ssh", device.address, device.port, timeout=timeout, pins=pins, **values)


async def refusal(access: Access) -> NotIdentified:
    with pytest.raises(NotIdentified) as caught:
        async with logged_in(access):
            pass
    return caught.value


@pytest.mark.parametrize("method", ["password", "keyboard-interactive"])
async def test_a_password_logs_in_by_either_way(method: str) -> None:
    async with SshDevice(methods=frozenset({method})) as device, logged_in(to(device)):
        assert device.credentials == [method]


@pytest.mark.parametrize("algorithm", ["ssh-ed25519", "ecdsa-sha2-nistp256", "ssh-rsa"])
async def test_a_key_logs_in(algorithm: str) -> None:
    key = asyncssh.generate_private_key(algorithm)
    pem = key.export_private_key().decode()
    async with SshDevice(authorized_key=key) as device, logged_in(to(device, username="admin", ssh_privatekey=pem)):
        assert set(device.credentials) == {"publickey"}


async def test_a_password_is_tried_after_a_key_of_the_same_secret() -> None:
    async with SshDevice() as device, logged_in(to(device, username="admin", ssh_privatekey=PEM, password="admin")):
        assert device.credentials == ["publickey", "password"]


async def test_a_wrong_password_is_sent_once_though_the_device_takes_it_by_two_ways() -> None:
    async with SshDevice() as device:
        failure = await refusal(to(device, username="admin", password="wrong"))
        assert failure.outcome is Outcome.AUTHENTICATION_FAILED
        assert device.credentials == ["password"]


async def test_a_wrong_password_is_sent_once_though_the_device_asks_again() -> None:
    async with SshDevice(methods=frozenset({"keyboard-interactive"})) as device:
        failure = await refusal(to(device, username="admin", password="wrong"))
        assert failure.outcome is Outcome.AUTHENTICATION_FAILED
        assert device.credentials == ["keyboard-interactive"]


async def test_a_refused_key_and_password_do_not_lock_the_account() -> None:
    async with SshDevice(lock_after=3) as device:
        failure = await refusal(to(device, username="admin", ssh_privatekey=PEM, password="wrong"))
        assert failure.outcome is Outcome.AUTHENTICATION_FAILED
        assert not device.locked


async def test_a_refusal_tells_the_host_key_and_not_the_password() -> None:
    async with SshDevice() as device:
        failure = await refusal(to(device, username="admin", password="hunter2"))
        assert failure.login == "refused"
        assert failure.pin == device.pin
        assert "hunter2" not in repr(failure) + failure.detail


async def test_nothing_is_sent_to_a_device_with_another_host_key() -> None:
    async with SshDevice() as device:
        failure = await refusal(to(device, pins=frozenset({"SHA256:of another"})))
        assert (failure.outcome, failure.login) == (Outcome.KEY_CHANGED, "unsent")
        assert device.credentials == []
        assert failure.pin == device.pin


async def test_a_pinned_host_key_is_accepted() -> None:
    async with SshDevice() as device:
        pins = frozenset({"SHA256:of another", device.pin})
        async with logged_in(to(device, pins=pins)) as session:
            assert session.pin == device.pin


async def test_a_host_key_that_is_claimed_and_not_proved_is_no_evidence() -> None:
    (pair,) = asyncssh.load_keypairs(KEY)
    pair.public_data = asyncssh.generate_private_key("ssh-ed25519").public_data
    async with asyncssh.listen("127.0.0.1", 0, server_host_keys=[pair], config=None) as liar:
        failure = await refusal(access("ssh", "127.0.0.1", liar.get_port()))
    assert failure.outcome is Outcome.PROTOCOL_ERROR
    assert failure.pin == ""


@pytest.mark.parametrize("method", ["publickey", "password", "keyboard-interactive"])
async def test_nothing_is_sent_to_a_device_that_is_not_admitted(method: str) -> None:
    shown = []

    async def admit(key: str) -> None:
        shown.append(key)
        raise NotIdentified(Outcome.WAITING, "it refused a login at another address")

    async with SshDevice(methods=frozenset({method})) as device:
        asked = to(device, username="admin", password="admin", ssh_privatekey=PEM)
        failure = await refusal(replace(asked, admit=admit))
        assert (failure.outcome, failure.detail) == (Outcome.WAITING, "it refused a login at another address")
        assert failure.login == "unsent"
        assert shown == [device.pin]
        assert device.credentials == []


async def test_a_device_that_is_admitted_gets_the_credential() -> None:
    async def admit(key: str) -> None:
        pass

    async with SshDevice() as device, logged_in(replace(to(device), admit=admit)):
        assert device.logins == 1


async def test_keys_and_agents_of_this_machine_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/nonexistent/agent")
    async with SshDevice() as device, logged_in(to(device)):
        assert "publickey" not in device.credentials


async def test_a_login_that_the_device_has_no_way_for_is_not_tried() -> None:
    async with SshDevice(methods=frozenset({"publickey"})) as device:
        failure = await refusal(to(device))
        assert (failure.outcome, failure.login) == (Outcome.AUTHENTICATION_FAILED, "unsent")
        assert "Nothing was tried" in failure.detail


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"password": "x"}, "needs username"),
        ({"username": "x"}, "needs username"),
        ({"username": "x", "ssh_privatekey": "no key"}, "ssh-privatekey"),
        (
            {"username": "x", "ssh_privatekey": KEY.export_private_key("pkcs8-pem", passphrase="p").decode()},
            "unencrypted",
        ),
    ],
)
async def test_a_secret_that_cannot_log_in_opens_no_connection(values: dict[str, str], says: str) -> None:
    async with SshDevice() as device:
        failure = await refusal(to(device, **values))
        assert (failure.outcome, failure.login) == (Outcome.OPEN, "unsent")
        assert says in failure.detail
        assert device.connections == 0


async def test_a_username_that_ssh_does_not_allow_opens_no_connection() -> None:
    async with SshDevice() as device:
        failure = await refusal(to(device, username="a\u0007b", password="x"))
        assert (failure.outcome, failure.login) == (Outcome.OPEN, "unsent")
        assert device.connections == 0


async def test_a_password_is_not_given_where_a_code_is_asked_for() -> None:
    async with SshDevice(methods=frozenset({"keyboard-interactive"}), question="Verification code: ") as device:
        failure = await refusal(to(device))
        assert (failure.outcome, failure.login) == (Outcome.AUTHENTICATION_FAILED, "refused")
        assert device.credentials == []


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (Fault.SILENT, Outcome.TIMED_OUT),
        (Fault.SLOW, Outcome.TIMED_OUT),
        (Fault.GARBAGE, Outcome.PROTOCOL_ERROR),
        (Fault.GARBAGE_PACKETS, Outcome.PROTOCOL_ERROR),
        (Fault.CHATTER, Outcome.PROTOCOL_ERROR),
        (Fault.BANNER, Outcome.PROTOCOL_ERROR),
    ],
)
async def test_a_device_that_misbehaves_before_the_login_ends_soon(fault: Fault, outcome: Outcome) -> None:
    async with SshDevice(fault=fault) as device:
        started = time.monotonic()
        failure = await refusal(to(device, timeout="500ms" if outcome is Outcome.TIMED_OUT else "5s"))
        assert failure.outcome is outcome, failure.detail
        assert failure.login == "unsent"
        assert device.credentials == []
        assert time.monotonic() - started < 4


@pytest.mark.parametrize("fault", [Fault.DROP_AT_LOGIN, Fault.HANG_AT_LOGIN])
async def test_a_credential_without_an_answer_counts_as_refused(fault: Fault) -> None:
    async with SshDevice(fault=fault) as device:
        failure = await refusal(to(device, timeout="1s"))
        assert (failure.outcome, failure.login) == (Outcome.AUTHENTICATION_FAILED, "unknown")
        assert len(device.credentials) == 1


async def test_a_login_that_is_cancelled_leaves_no_connection() -> None:
    async with SshDevice(fault=Fault.HANG_AT_LOGIN) as device:
        task = asyncio.create_task(refusal(to(device)))
        await device.tried.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await device.left.wait()


async def test_an_address_of_ipv6_is_spoken_to() -> None:
    async with SshDevice(address="::1") as device, logged_in(to(device)) as session:
        assert session.pin == device.pin


async def test_a_closed_port_is_refused() -> None:
    (port,) = free_ports(1)
    assert (await refusal(access("ssh", "127.0.0.1", port))).outcome is Outcome.REFUSED


async def test_a_peer_that_hangs_up_at_once_is_disconnected() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        failure = await refusal(access("ssh", "127.0.0.1", port))
    assert (failure.outcome, failure.login) == (Outcome.DISCONNECTED, "unsent")


async def test_a_peer_that_takes_no_connection_times_out() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        with socket.socket() as only:  # the queue has one place
            only.connect(full.getsockname())
            failure = await refusal(access("ssh", *full.getsockname(), timeout="300ms"))
            assert failure.outcome is Outcome.TIMED_OUT


@pytest.mark.filterwarnings("ignore:Diffie-Hellman")
@pytest.mark.parametrize(
    ("algorithms", "host_key"),
    [
        ({"kex_algs": ["diffie-hellman-group1-sha1"]}, "ssh-rsa"),
        ({"kex_algs": ["diffie-hellman-group14-sha1"]}, "ssh-dss"),
        ({"encryption_algs": ["3des-cbc"], "mac_algs": ["hmac-md5"]}, "ssh-rsa"),
        ({"encryption_algs": ["aes128-cbc"], "mac_algs": ["hmac-sha1-96"]}, "ssh-rsa"),
    ],
)
async def test_old_devices_are_spoken_to_in_their_algorithms(algorithms: dict[str, list[str]], host_key: str) -> None:
    key = asyncssh.generate_private_key(host_key)
    async with SshDevice(host_key=key, algorithms=algorithms) as device, logged_in(to(device)) as session:
        assert session.pin == device.pin


async def test_a_device_has_no_algorithm_of_ours() -> None:
    async with SshDevice(algorithms={"encryption_algs": ["arcfour"]}) as device:
        assert (await refusal(to(device))).outcome is Outcome.PROTOCOL_ERROR


async def test_the_greeting_is_the_version_line_and_the_banner() -> None:
    async with SshDevice(IOS) as device, logged_in(to(device)) as session:
        assert session.greeting == "SSH-2.0-Cisco-1.25\nAuthorized access only.\r\n"

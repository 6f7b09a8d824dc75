"""Identification by SSH of a real sshd."""

import asyncio
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import asyncssh
import pytest

from tests.systems.discovery.ssh_access import VENDORS, access
from trimtab.lab.network import Bed, Space, available
from trimtab.lab.sshd import Sshd
from trimtab.systems.discovery.findings import Access, Identified, NotIdentified, Outcome
from trimtab.systems.discovery.identify.ssh import SshIdentifier
from trimtab.systems.discovery.identify.ssh_session import logged_in
from trimtab.systems.discovery.identify.ssh_terminal import Terminal, Way
from trimtab.testing.ports import free_ports

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("sshd", path="/usr/sbin:/usr/bin") is None, reason="needs root and openssh-server"
)
KEY = asyncssh.generate_private_key("ssh-ed25519")


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    keys = [asyncssh.generate_private_key(algorithm) for algorithm in ("ssh-ed25519", "ecdsa-sha2-nistp256")]
    (port,) = free_ports(1)
    directory = tmp_path_factory.mktemp("sshd")
    with Sshd(directory, port, authorized_key=KEY, host_keys=keys, banner="Authorized use only\n") as server:
        yield server


def to(sshd: Sshd, **values: str) -> Access:
    values = values or {"username": "lab", "password": "lab"}
    return access("ssh", sshd.address, sshd.port, timeout="10s", **values)


async def test_a_linux_machine_is_identified_by_what_its_commands_print(sshd: Sshd) -> None:
    found = await SshIdentifier(VENDORS).identify(to(sshd))
    kernel = os.uname()
    assert (found.info.provider, found.info.hostname) == ("linux", kernel.nodename)
    assert (found.info.version, found.info.platform) == (kernel.release, kernel.machine)
    assert found.evidence.ssh_host_key == sshd.pin


async def test_a_key_logs_in(sshd: Sshd) -> None:
    pem = KEY.export_private_key().decode()
    async with logged_in(to(sshd, username="lab", ssh_privatekey=pem)) as session:
        assert session.greeting.endswith("\nAuthorized use only\n")


async def test_a_wrong_password_is_sent_once(sshd: Sshd) -> None:
    before = sshd.log.count("Failed password")
    with pytest.raises(NotIdentified) as caught:
        await SshIdentifier(VENDORS).identify(to(sshd, username="lab", password="wrong"))
    assert caught.value.outcome is Outcome.AUTHENTICATION_FAILED
    assert sshd.log.count("Failed password") == before + 1


async def test_commands_are_typed_into_a_real_shell(sshd: Sshd) -> None:
    async with Terminal(to(sshd), Way.SHELL) as terminal:
        assert await terminal.run("echo one; echo two") == "one\ntwo"
        assert await terminal.run("true") == ""
        assert len((await terminal.run("seq 1 5000")).split()) == 5000


async def test_many_are_identified_at_once(sshd: Sshd) -> None:
    identifier = SshIdentifier(VENDORS)
    found = await asyncio.gather(*(identifier.identify(to(sshd)) for _ in range(20)))
    assert {each.pin for each in found} == {sshd.pin}


@pytest.mark.skipif(bool(available()), reason="needs network namespaces")
def test_devices_behind_a_network_are_identified(tmp_path: Path) -> None:
    async def identify_some() -> list[Identified]:
        identifier = SshIdentifier(VENDORS)
        asked = [
            access("ssh", address, 22, timeout="10s", username="lab", password="lab")
            for address in ("10.77.0.1", "10.77.3.200", "10.77.15.254", "fd77::5")
        ]
        return await asyncio.gather(*(identifier.identify(each) for each in asked))

    def from_the_other_side(space: Space) -> list[Identified]:
        space.enter()
        return asyncio.run(identify_some())

    with Bed() as bed, ThreadPoolExecutor(1) as thread:
        both = ["ListenAddress 0.0.0.0:22"]
        with Sshd(tmp_path, 22, address="::", settings=both, prefix=bed.b.command([])) as server:
            found = thread.submit(from_the_other_side, bed.a).result()
            assert [each.pin for each in found] == [server.pin] * 4

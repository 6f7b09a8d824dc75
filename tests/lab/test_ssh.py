"""The played SSH device behaves as one: it locks accounts, shows keys, and runs from the command line."""

import sys
from pathlib import Path

import asyncssh
import pytest

from trimtab.lab.ssh import SshDevice
from trimtab.lab.ssh_personalities import EOS, IOS, LINUX, PERSONALITIES
from trimtab.testing.processes import Process


def connection(device: SshDevice, password: str = "admin") -> "asyncssh.misc._ACMWrapper[asyncssh.SSHClientConnection]":
    return asyncssh.connect(
        device.address,
        device.port,
        username="admin",
        password=password,
        known_hosts=None,
        client_keys=None,
        config=None,
    )


async def test_an_account_is_locked_after_some_failures_even_for_the_right_password() -> None:
    async with SshDevice(LINUX, lock_after=2) as device:
        for _ in range(2):
            with pytest.raises(asyncssh.PermissionDenied):
                await connection(device, "wrong")
        assert device.locked
        with pytest.raises(asyncssh.PermissionDenied):
            await connection(device)


async def test_it_shows_its_host_key() -> None:
    async with SshDevice(LINUX) as device, connection(device) as client:
        key = client.get_server_host_key()
        assert key is not None
        assert key.get_fingerprint() == device.pin


async def test_it_runs_commands() -> None:
    async with SshDevice(LINUX) as device, connection(device) as client:
        assert (await client.run("hostname")).stdout == "web01\n"


async def test_a_device_without_exec_refuses_it() -> None:
    async with SshDevice(IOS) as device, connection(device) as client:
        with pytest.raises(asyncssh.ChannelOpenError):
            await client.run("show version")


async def test_its_shell_pages_and_goes_on_at_a_key() -> None:
    async with SshDevice(IOS) as device, connection(device) as client:
        process = await client.create_process(term_type="dumb")
        process.stdin.write("show version\n")
        seen = await process.stdout.readuntil("--More-- ")
        assert "System serial number" not in seen
        process.stdin.write("   ")
        assert "System serial number" in await process.stdout.readuntil("access-sw7#")


async def test_a_device_with_netconf_greets() -> None:
    async with SshDevice(EOS) as device, connection(device) as client:
        _, stdout, _ = await client.open_session(subsystem="netconf")
        assert "arista.com" in await stdout.readuntil("]]>]]>")


@pytest.mark.parametrize("personality", sorted(PERSONALITIES))
def test_it_runs_from_the_command_line(personality: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "trimtab.lab.ssh", "--personality", personality]
    with Process(command, log=tmp_path / "log") as process:
        process.wait_until(lambda: "host key SHA256:" in process.log.read_text(), within=30)

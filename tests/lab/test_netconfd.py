"""A real netconfd behind a real sshd."""

from pathlib import Path

import asyncssh
import pytest

from tests.needs import needs
from trimtab.lab.netconfd import Netconfd
from trimtab.testing.ports import free_ports


@pytest.fixture(autouse=True)
def peer() -> None:
    needs("netconfd", "sshd", root=True, hint="apt-get install netconfd openssh-server")


async def test_two_run_side_by_side_and_greet_with_both_versions(tmp_path: Path) -> None:
    ports = free_ports(2)
    with Netconfd(tmp_path / "a", ports[0]), Netconfd(tmp_path / "b", ports[1]):
        for port in ports:
            client = await asyncssh.connect(
                "127.0.0.1", port, username="lab", password="lab", known_hosts=None, config=None
            )
            async with client:
                _, stdout, _ = await client.open_session(subsystem="netconf")
                greeting = await stdout.readuntil("]]>]]>")
                assert "urn:ietf:params:netconf:base:1.0" in greeting
                assert "urn:ietf:params:netconf:base:1.1" in greeting

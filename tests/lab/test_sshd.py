"""A real sshd with an account of its own, which the machine does not have."""

import pwd
from pathlib import Path

import asyncssh
import pytest

from tests.needs import needs
from trimtab.lab.sshd import SHARED, Sshd
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import PeerFailed


@pytest.fixture(autouse=True)
def peer() -> None:
    needs("sshd", root=True, hint="apt-get install openssh-server")


async def test_its_account_logs_in_and_is_unknown_to_the_machine(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with Sshd(tmp_path, port, address="127.4.5.6", username="trimtab-lab", password="pass word") as server:
        client = await asyncssh.connect(
            "127.4.5.6", port, username="trimtab-lab", password="pass word", known_hosts=None, config=None
        )
        async with client:
            assert (await client.run("id -un")).stdout == "trimtab-lab\n"
            key = client.get_server_host_key()
            assert key is not None
            assert key.get_fingerprint() == server.pin
        with pytest.raises(KeyError):
            pwd.getpwnam("trimtab-lab")


async def test_folders_are_shared_with_its_account(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    folder = tmp_path / "of ours"
    folder.mkdir()
    (folder / "note").write_text("hello")
    with Sshd(tmp_path / "sshd", port, shared={"notes": folder}):
        client = await asyncssh.connect(
            "127.0.0.1", port, username="lab", password="lab", known_hosts=None, config=None
        )
        async with client:
            assert (await client.run(f"cat {SHARED}/notes/note")).stdout == "hello"


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(PeerFailed, match="Bad configuration option"):
        Sshd(tmp_path, 1, settings=["NoSuchSetting yes"])

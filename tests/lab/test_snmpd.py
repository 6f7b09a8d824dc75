"""Debian's snmpd as a device of the lab."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from trimtab.lab.snmpd import Snmpd, SnmpUser
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import PeerFailed


def test_it_answers_with_the_name_and_the_users_that_it_was_given(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    user = SnmpUser(name="ops", auth_password="authpass1", priv_password="privpass1")
    with Snmpd(tmp_path, port, address="127.45.1.1", name="spine7", users=[user]):
        command = [
            "snmpget", "-v3", "-lauthPriv", "-uops", "-aSHA", "-Aauthpass1", "-xAES", "-Xprivpass1", "-Oqv", "-m", "",
            f"127.45.1.1:{port}", "1.3.6.1.2.1.1.5.0",
        ]  # fmt: skip
        assert subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip() == '"spine7"'


def test_it_says_why_it_does_not_start(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with (
        Snmpd(tmp_path / "a", port, address="127.45.1.2"),
        pytest.raises(PeerFailed, match="opening specified endpoint"),
    ):
        Snmpd(tmp_path / "b", port, address="127.45.1.2")

"""Where the provider listens."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from trimtab.terraform.plugin.address import listen


def test_a_unix_socket_lies_in_a_folder_that_its_owner_alone_can_enter(tmp_path: Path) -> None:
    address = listen({"TMPDIR": str(tmp_path), "PLUGIN_MIN_PORT": "10000", "PLUGIN_MAX_PORT": "25000"})
    try:
        assert address.network == "unix"
        assert Path(address.folder).parent == tmp_path
        assert os.stat(address.folder).st_mode & 0o777 == 0o700
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(address.name)
    finally:
        address.listener.close()
    address.clear()
    address.clear()  # twice does no harm
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def _without_unix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")


@pytest.mark.usefixtures("_without_unix")
def test_without_unix_sockets_it_is_a_free_port_of_the_range_on_the_loopback() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        address = listen({"PLUGIN_MIN_PORT": str(port), "PLUGIN_MAX_PORT": str(port + 50)})
        host, _, chosen = address.name.partition(":")
        assert (address.network, host) == ("tcp", "127.0.0.1")
        assert port < int(chosen) <= port + 50
        address.listener.close()
        address.clear()
        with pytest.raises(OSError, match="in use"):
            listen({"PLUGIN_MIN_PORT": str(port), "PLUGIN_MAX_PORT": str(port)})


@pytest.mark.usefixtures("_without_unix")
def test_without_a_range_any_port_will_do() -> None:
    address = listen({})
    assert int(address.name.rpartition(":")[2]) > 0
    address.listener.close()


@pytest.mark.usefixtures("_without_unix")
@pytest.mark.parametrize(
    ("lowest", "highest", "complaint"),
    [("x", "1", "PLUGIN_MIN_PORT"), ("1", "70000", "PLUGIN_MAX_PORT"), ("9", "8", "no port")],
)
def test_a_range_that_is_none_is_named(lowest: str, highest: str, complaint: str) -> None:
    with pytest.raises(OSError, match=complaint):
        listen({"PLUGIN_MIN_PORT": lowest, "PLUGIN_MAX_PORT": highest})

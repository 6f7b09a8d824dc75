"""The real servers of the lab that have a REST API: one of each for a whole run, so that a test takes names of its own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.needs import needs
from trimtab.lab.alertmanager import Alertmanager
from trimtab.lab.lxd import Lxd
from trimtab.lab.podman import Podman
from trimtab.lab.powerdns import SCHEMA, PowerDns
from trimtab.testing.ports import free_ports


@pytest.fixture(scope="session")
def lxd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lxd]:
    needs("lxd", "unshare", root=True)
    with Lxd(tmp_path_factory.mktemp("lxd") / "d") as server:
        yield server


@pytest.fixture(scope="session")
def powerdns(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PowerDns]:
    needs("pdns_server", SCHEMA)
    with PowerDns(tmp_path_factory.mktemp("powerdns"), *free_ports(2)) as server:
        yield server


@pytest.fixture(scope="session")
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alertmanager]:
    needs("prometheus-alertmanager")
    with Alertmanager(tmp_path_factory.mktemp("alertmanager"), *free_ports(1)) as server:
        yield server


@pytest.fixture(scope="session")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    needs("podman", root=True)
    with Podman(tmp_path_factory.mktemp("podman")) as server:
        yield server


@pytest.fixture
def fresh() -> str:
    """A name that nobody else has taken on a server that all tests share."""
    return f"t{uuid.uuid4().hex[:10]}"

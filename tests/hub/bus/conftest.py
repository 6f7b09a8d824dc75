"""Real servers under the bus, each started once for the module that asks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.needs import lacks
from trimtab.testing.nats import NatsMissing, NatsServer
from trimtab.testing.postgres import PostgresMissing, PostgresServer


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    try:
        server = PostgresServer()
    except PostgresMissing as missing:
        lacks(str(missing))
    with server:
        yield server


@pytest.fixture(scope="module")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    try:
        server = NatsServer(tmp_path_factory.mktemp("nats"))
    except NatsMissing as missing:
        lacks(str(missing))
    with server:
        yield server

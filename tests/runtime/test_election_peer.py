"""Our candidate and one of client-go, in kube-controller-manager, share a lease: on the real server and on ours."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from trimtab.client.api import ApiClient
from trimtab.client.connect import connect
from trimtab.client.protocol import Query
from trimtab.model import kubernetes
from trimtab.model.clock import SystemClock
from trimtab.model.kubernetes import Lease, LeaseSpec, Namespace
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Scheme
from trimtab.runtime.election import Election
from trimtab.testing.cluster import binaries
from trimtab.testing.peer import ApiServer
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import Process

NAMESPACE, NAME = "shared-lease", "shared"

pytestmark = pytest.mark.cluster


@pytest.fixture(params=["real_cluster", "trimtab_server"])
def server(request: pytest.FixtureRequest) -> ApiServer:
    request.getfixturevalue("real_cluster")  # whose programs are needed in any case
    found: ApiServer = request.getfixturevalue(request.param)
    return found


@contextlib.contextmanager
def controller_manager(server: ApiServer, folder: Path) -> Iterator[Process]:
    (port,) = free_ports(1)
    flags = {
        "kubeconfig": server.kubeconfig,
        "bind-address": "127.0.0.1",
        "secure-port": port,
        "cert-dir": folder,
        "controllers": "ttl-controller",
        "leader-elect": "true",
        "leader-elect-lease-duration": "3s",
        "leader-elect-renew-deadline": "2s",
        "leader-elect-retry-period": "500ms",
        "leader-elect-resource-name": NAME,
        "leader-elect-resource-namespace": NAMESPACE,
        "authorization-always-allow-paths": "/*",
    }
    command = [str(binaries() / "kube-controller-manager"), *(f"--{name}={value}" for name, value in flags.items())]
    process = Process(command, log=folder / "controller-manager.log")
    try:
        yield process
    finally:
        process.kill()


async def lease(client: ApiClient, *, ours: bool) -> LeaseSpec:
    """Waits until the lease is ours, or that of the other."""
    listing = await client.list(Lease, Query(namespace=NAMESPACE))
    found = [item.spec for item in listing.items]
    async with asyncio.timeout(30):
        events = client.watch(Lease, Query(namespace=NAMESPACE), listing.revision)
        while not (found and (holder := (found[-1] or LeaseSpec()).holder_identity) and (holder == "ours") is ours):
            event = await anext(events)
            if event.object is not None:
                found.append(event.object.spec)
        await events.aclose()
    assert isinstance(found[-1], LeaseSpec)
    return found[-1]


async def test_the_lease_goes_to_client_go_and_back(server: ApiServer, tmp_path: Path) -> None:
    client = connect(server.kubeconfig, scheme=kubernetes.register(Scheme()))
    await client.create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
    done = asyncio.Event()
    first = election(client)
    running = asyncio.create_task(first.run(done.wait))
    await first.elected.wait()
    with controller_manager(server, tmp_path) as process:
        await other_tries(process)
        assert (await lease(client, ours=True)).lease_transitions == 0
        done.set()  # releases the lease
        await running
        theirs = await lease(client, ours=False)
        assert (theirs.lease_transitions, theirs.lease_duration_seconds) == (1, 3)
        second = election(client)
        again = asyncio.create_task(second.run(asyncio.Event().wait))
        process.kill()  # without a release
        mine = await lease(client, ours=True)
        assert mine.lease_transitions == 2
    again.cancel()
    await asyncio.gather(again, return_exceptions=True)
    await client.close()


async def other_tries(process: Process) -> None:
    """Waits until the other has asked for the lease, which it logs."""
    wanted = "attempting to acquire leader lease"
    await asyncio.to_thread(process.wait_until, lambda: wanted in process.tail(200), within=30)


def election(client: ApiClient) -> Election:
    clock = SystemClock()
    return Election(
        client, clock, name=NAME, namespace=NAMESPACE, identity="ours", duration=3, renew_deadline=2, retry=0.5
    )

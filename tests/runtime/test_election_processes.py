"""Two processes fight for a lease of `trimtab up` while the test stops and wakes them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

from trimtab.client.api import ApiClient
from trimtab.client.connect import connect
from trimtab.client.protocol import EventType, Query
from trimtab.model import kubernetes
from trimtab.model.kubernetes import ConfigMap, Namespace
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Scheme
from trimtab.testing.embedded import TrimtabServer

PROGRAM = Path(__file__).with_name("election_candidate.py")
NAMESPACE = "election-processes"


class Said(NamedTuple):
    what: str
    at: float
    term: int


class Candidate:
    """A process, and all that it has said."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.said: list[Said] = []
        self._changed = asyncio.Condition()

    async def listen(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            what, at, term = line.split()
            async with self._changed:
                self.said.append(Said(what.decode(), float(at), int(term)))
                self._changed.notify_all()

    async def says(self, what: str, *, after: int = 0) -> None:
        """Waits until it says so, in what follows the first `after` lines."""
        async with asyncio.timeout(15), self._changed:
            await self._changed.wait_for(lambda: any(said.what == what for said in self.said[after:]))

    def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        self.process.send_signal(signal.SIGCONT)


@contextlib.asynccontextmanager
async def candidate(server: TrimtabServer, identity: str) -> AsyncIterator[Candidate]:
    command = (str(PROGRAM), str(server.kubeconfig), NAMESPACE, identity)
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=asyncio.subprocess.PIPE)
    made = Candidate(process)
    listening = asyncio.create_task(made.listen())
    try:
        yield made
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await listening


async def written(client: ApiClient, since: str, into: list[tuple[int, str, int]]) -> None:
    """All that was written to the ledger, in the order of the server: count, writer, term."""
    async for event in client.watch(ConfigMap, Query(namespace=NAMESPACE), since):
        if event.type is EventType.MODIFIED and event.object is not None and event.object.name == "ledger":
            data = event.object.data or {}
            into.append((int(data["count"]), data["writer"], int(data["term"])))


async def test_a_process_that_wakes_does_not_act_on_a_lease_that_another_has(trimtab_server: TrimtabServer) -> None:
    client = connect(trimtab_server.kubeconfig, scheme=kubernetes.register(Scheme()))
    await client.create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
    ledger = await client.create(ConfigMap(metadata=ObjectMeta(name="ledger", namespace=NAMESPACE)))
    history: list[tuple[int, str, int]] = []
    watching = asyncio.create_task(written(client, str(ledger.metadata.resource_version), history))
    async with candidate(trimtab_server, "a") as a, candidate(trimtab_server, "b") as b:
        await a.says("ready")
        await b.says("ready")
        leader, other = await first_to_write(a, b)
        for _ in range(2):
            leader.stop()
            known = len(other.said)
            await other.says("wrote", after=known)
            known = len(leader.said)
            leader.wake()
            await leader.says("lost", after=known)
            leader, other = other, leader
        leader.process.terminate()  # a graceful end hands over without waiting for the lease to lapse
        known = len(other.said)
        await leader.says("released")
        await other.says("wrote", after=known)
    final = await client.get(ConfigMap, "ledger", NAMESPACE)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    await client.close()

    assert int((final.data or {})["count"]) >= len(history) > 0
    terms = [term for _, _, term in history]
    assert terms == sorted(terms), "an old leader wrote after a new one"
    assert len(set(terms)) >= 4
    assert len({(writer, term) for _, writer, term in history}) == len(set(terms)), "two wrote in one term"
    acts = sorted((said.at, said.term) for said in a.said + b.said if said.what == "wrote")
    assert all(before[1] <= after[1] for before, after in itertools.pairwise(acts)), "two acted at the same time"


async def first_to_write(a: Candidate, b: Candidate) -> tuple[Candidate, Candidate]:
    waiting = {asyncio.create_task(each.says("wrote")): each for each in (a, b)}
    done, pending = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    leader = waiting[done.pop()]
    return leader, b if leader is a else a

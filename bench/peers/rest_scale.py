"""Many scale sets, kept by `trimtab up` as people run it, against the ARM emulator in a process of its own.

Flow: the kinds and the parents are made; the objects are written while no controller runs; the controllers start, and
create all at the service. Then the kind gets a refresh interval, and nothing happens for some of them; then some specs
change; then the controllers are killed and start anew. All requests are counted at the emulator.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from rest_arm import BODY, DOCUMENT, SETS, SUBSCRIPTION, Arm, ceiling, group_id

from trimtab.client.api import ApiClient
from trimtab.client.connect import connect
from trimtab.client.protocol import Named, Query
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped
from trimtab.systems.rest.compiling.proposing import propose
from trimtab.systems.rest.object_controller import SPREAD, ObjectController
from trimtab.systems.rest.openapi import from_path
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.usage import cpu_seconds, family, resident_bytes

Document = dict[str, Any]

GROUP = "rest.trimtab.dev/v1alpha1"
SERVICE = "cloud"
NAMESPACE = "default"
KIND = Named(f"{SERVICE}.rest.trimtab.dev/v1", "VirtualMachineScaleSet")
PARENT = Named(f"{SERVICE}.rest.trimtab.dev/v1", "ResourceGroup")
DEFINITION = Named(GROUP, "RestDefinition")
CONCURRENT = ObjectController.concurrency
WRITERS = 32
WINDOW, QUIET = 0.5, 0.015  # at rest is who used at most so many seconds of a processor within the window
PATIENCE = 1800.0


class Scale(NamedTuple):
    """How much of everything."""

    objects: int
    parents: int
    changes: int
    interval: int
    """Seconds between two looks."""
    intervals: int
    """How many of them nothing happens for."""

    @property
    def spread(self) -> float:
        """Seconds that a look may come late."""
        return min(SPREAD, self.interval / 10) + 0.2


class Figures(NamedTuple):
    """What was counted. CPU is in seconds, memory in bytes, and both are of the controllers where nothing else is said."""

    ceiling: float
    created: float
    creating: dict[str, int]
    creating_cpu: float
    creating_server: float
    creating_arm: float
    defined: dict[str, int]
    """Requests after the definition changed."""
    lists: int
    """The most that one parent had while nothing happened."""
    pages: int
    idle: dict[str, int]
    idle_cpu: float
    idle_seconds: float
    memory: int
    changed: dict[str, int]
    changed_rate: float
    restarted: dict[str, int]
    """Requests other than the lists that are due."""
    restarted_lists: int
    restart_seconds: float
    restart_cpu: float
    restart_memory: int


def measure(scale: Scale, say: Callable[[str], None]) -> Figures:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        say(f"the emulator's ceiling, {scale.objects:,} scale sets")
        most = ceiling(folder, scale.objects, scale.parents, CONCURRENT)
        with Arm(folder) as arm:
            say(f"{scale.objects:,} objects are written")
            _prepare(folder, arm, scale)
            with _serving(folder, "rest") as home:
                return Figures(most, *_phases(home, arm, scale, say))


def _phases(home: Home, arm: Arm, scale: Scale, say: Callable[[str], None]) -> Iterator[Any]:
    """The figures, in their order."""
    say("they are created at the service")
    yield from _creating(home, arm, scale)
    say(f"the definition changes: looks every {scale.interval} s")
    _defined(home, arm, scale)
    yield arm.counts()["verbs"]
    say(f"nothing happens for {scale.intervals} intervals")
    yield from _idle(home, arm, scale)
    say(f"{scale.changes:,} specs change")
    yield from _changing(home, arm, scale)
    say("the controllers start anew")
    yield from _restarting(home, arm, scale)


class Home:
    """`trimtab up`: the server, and the controllers in its second process."""

    def __init__(self, server: TrimtabServer) -> None:
        self.server = server

    def run(self, work: Callable[[ApiClient], Awaitable[Any]]) -> Any:
        async def run() -> Any:
            client = connect(self.server.kubeconfig)
            try:
                return await work(client)
            finally:
                await client.close()

        return asyncio.run(run())

    @property
    def server_pid(self) -> int:
        return self.server.pids["server"]

    def controllers(self) -> int:
        """The process, 0 while there is none."""
        for pid in family(self.server_pid)[1:]:
            with contextlib.suppress(OSError):
                if b"controllers" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                    return pid
        return 0

    def until(self, met: Callable[[], bool]) -> None:
        """Asked seldom: whoever is asked has work to do."""
        give_up = time.monotonic() + PATIENCE
        while not met():
            if not self.server.pids or time.monotonic() > give_up:
                raise RuntimeError(f"what was waited for did not come\n{self.server.logs()}")
            time.sleep(0.1)

    def rest(self) -> None:
        """Until the controllers are quiet."""
        while True:
            before = cpu_seconds((self.controllers(),))
            time.sleep(WINDOW)
            if cpu_seconds((self.controllers(),)) - before <= QUIET:
                return

    def settled(self, scale: Scale) -> None:
        """Until every object says that it is ready as its spec has it now."""

        async def all_ready(client: ApiClient) -> None:
            while (
                count := sum(map(_is_ready, (await client.list(KIND, Query(namespace=NAMESPACE))).items))
            ) < scale.objects:
                if not self.controllers():
                    raise RuntimeError(f"{count} objects are ready, and the controllers ended\n{self.server.logs()}")
                await asyncio.sleep(0.2)

        self.run(all_ready)


@contextlib.contextmanager
def _serving(folder: Path, systems: str) -> Iterator[Home]:
    with TrimtabServer(folder, flags=("--systems", systems)) as server:
        yield Home(server)


# --- the phases ------------------------------------------------------------------------------------------------------


def _prepare(folder: Path, arm: Arm, scale: Scale) -> None:
    with _serving(folder, "rest") as home:
        home.run(lambda client: _define(client, arm.url))
        home.run(lambda client: _make_parents(client, scale.parents))
    with _serving(folder, "none") as home:
        home.run(lambda client: _make_objects(client, scale))
    arm.clear()


def _creating(home: Home, arm: Arm, scale: Scale) -> Iterator[Any]:
    home.until(lambda: arm.asked() > 0)
    pids = (home.controllers(),), (home.server_pid,)
    before = [*map(cpu_seconds, pids), arm.cpu()]
    home.until(lambda: arm.asked("create") >= scale.objects)
    home.rest()
    after = [*map(cpu_seconds, pids), arm.cpu()]
    home.settled(scale)
    times = [datetime.fromisoformat(asked["at"]) for asked in arm.requests()]
    yield scale.objects / (max(times) - min(times)).total_seconds()
    yield arm.counts()["verbs"]
    yield from (now - then for now, then in zip(after, before, strict=True))


def _defined(home: Home, arm: Arm, scale: Scale) -> None:
    """A kind that changes is looked at anew, each object by itself, and nothing is written for it."""
    arm.clear()
    home.run(lambda client: _refresh(client, f"{scale.interval}s"))
    home.until(lambda: arm.asked("read") >= scale.objects)
    home.settled(scale)
    home.rest()


def _idle(home: Home, arm: Arm, scale: Scale) -> Iterator[Any]:
    arm.clear()
    pids = (home.controllers(),)
    began, before = time.monotonic(), cpu_seconds(pids)
    # a list may come so much after its interval begins: one that came late must not count as one too many
    time.sleep(scale.interval * scale.intervals - scale.spread)
    seconds, used = time.monotonic() - began, cpu_seconds(pids) - before
    asked = arm.requests()
    pages = [each for each in asked if each["verb"] == "list"]
    firsts = Counter(each["path"].lower() for each in pages if "token" not in each["query"].lower())
    yield max(firsts.values(), default=0)
    yield len(pages)
    yield arm.counts()["verbs"]
    yield used
    yield seconds
    yield resident_bytes(pids)


def _changing(home: Home, arm: Arm, scale: Scale) -> Iterator[Any]:
    arm.clear()
    began = time.monotonic()
    home.run(lambda client: _change(client, scale.changes))
    home.until(lambda: arm.counts()["writes"] >= scale.changes)
    home.settled(scale)
    seconds = time.monotonic() - began
    time.sleep(scale.interval + scale.spread)  # whatever is sent too much comes with the next look at the latest
    for number in (0, scale.changes - 1):
        found = arm.body(f"{group_id(number % scale.parents)}/{SETS}/set{number}")["sku"]["capacity"]
        if found != 4:
            raise RuntimeError(f"the capacity of set{number} is {found} at the service, and 4 in its spec")
    yield _by_method(arm)
    yield scale.changes / seconds


def _restarting(home: Home, arm: Arm, scale: Scale) -> Iterator[Any]:
    arm.clear()
    old = home.controllers()
    os.kill(old, signal.SIGKILL)
    home.until(lambda: home.controllers() not in (0, old))
    began = time.monotonic()
    home.rest()
    seconds, used = time.monotonic() - began, cpu_seconds((home.controllers(),))
    time.sleep(scale.interval + scale.spread)  # the first look after a start
    counts = arm.counts()["verbs"]
    yield {verb: count for verb, count in counts.items() if verb != "list"}
    yield counts.get("list", 0)
    yield seconds
    yield used
    yield resident_bytes((home.controllers(),))


def _by_method(arm: Arm) -> dict[str, int]:
    """Writes by their method."""
    found: Counter[str] = Counter()
    for name, count in arm.counts()["types"].items():
        method = name.partition(" ")[0]
        if method != "GET":
            found[method] += count
    return dict(found)


# --- what people do --------------------------------------------------------------------------------------------------


async def _define(client: ApiClient, url: str) -> None:
    service = {
        "endpoint": url,
        "document": {"inline": DOCUMENT.read_text()},
        "parameters": {"subscriptionId": SUBSCRIPTION},
        "limits": {"readsPerSecond": 10000, "writesPerSecond": 10000},
    }
    await _known(client, Named(GROUP, "RestService"))
    metadata = {"name": SERVICE}
    await client.create(Untyped({"apiVersion": GROUP, "kind": "RestService", "metadata": metadata, "spec": service}))
    wanted = (KIND.kind, PARENT.kind)
    for proposed in propose(from_path(DOCUMENT), SERVICE):
        definition = msgspec.to_builtins(client.scheme.document(proposed))
        if definition["spec"]["names"]["kind"] in wanted:
            definition["spec"]["refresh"] = {"interval": "never"}
            await client.create(Untyped(definition))
    await _until(client, DEFINITION, "", len(wanted))


async def _make_parents(client: ApiClient, count: int) -> None:
    for number in range(count):
        await client.create(_object(PARENT, f"group{number}", {"location": "westus"}))
    await _until(client, PARENT, NAMESPACE, count)


async def _make_objects(client: ApiClient, scale: Scale) -> None:
    async def make(number: int) -> None:
        spec = {"parent": {"name": f"group{number % scale.parents}"}, **BODY}
        await client.create(_object(KIND, f"set{number}", spec))

    await _many(range(scale.objects), make)


async def _refresh(client: ApiClient, interval: str) -> None:
    for found in (await client.list(DEFINITION)).items:
        document = msgspec.to_builtins(client.scheme.document(found))
        if document["spec"]["names"]["kind"] == KIND.kind:
            document["spec"]["refresh"] = {"interval": interval}
            await client.patch(found, Untyped(document))


async def _change(client: ApiClient, count: int) -> None:
    async def change(number: int) -> None:
        while True:
            found = await client.get(KIND, f"set{number}", NAMESPACE)
            document = msgspec.json.decode(msgspec.json.encode(found.raw))
            document["spec"]["sku"]["capacity"] = 4
            try:
                await client.patch(found, Untyped(document))
                return
            except StatusError as error:
                if error.code != 409:
                    raise

    await _many(range(count), change)


async def _many(numbers: Iterable[int], work: Callable[[int], Awaitable[None]]) -> None:
    shared = iter(numbers)

    async def worker() -> None:
        for number in shared:
            await work(number)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(WRITERS):
            tasks.create_task(worker())


async def _known(client: ApiClient, kind: Named) -> None:
    """The controllers define the system's kinds when they start."""
    async with asyncio.timeout(60):
        while True:
            try:
                await client.list(kind)
                return
            except StatusError as error:
                if error.code != 404:
                    raise
            await asyncio.sleep(0.1)


async def _until(client: ApiClient, kind: Named, namespace: str, count: int) -> None:
    async with asyncio.timeout(60):
        while sum(map(_is_ready, (await client.list(kind, Query(namespace=namespace))).items)) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


def _object(kind: Named, name: str, spec: Document) -> Untyped:
    metadata = {"name": name, "namespace": NAMESPACE}
    return Untyped({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec})


def _is_ready(found: Untyped) -> bool:
    status = found.raw.get("status") or {}
    generation = found.raw["metadata"]["generation"]
    return any(
        (each["type"], each["status"], each.get("observedGeneration")) == ("Ready", "True", generation)
        for each in status.get("conditions") or ()
    )

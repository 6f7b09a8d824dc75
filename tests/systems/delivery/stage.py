"""Canary delivery at work for a test, on either server. The test has the other parts: `Players` are the pods and the data
plane, which a server without nodes does not have, and `Gauge` is a Prometheus with the numbers that the test wants."""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import UNSET

from tests.runtime.widgets import PATIENCE, until_found, until_gone
from tests.systems.delivery.gauge import Gauge
from tests.systems.delivery.hours import Busy, IdleClock
from trimtab.client.api import ApiClient
from trimtab.client.protocol import EventType, Query, Ref
from trimtab.model.conditions import Condition, get_condition
from trimtab.model.document import convert
from trimtab.model.errors import StatusError
from trimtab.model.istio import VirtualService
from trimtab.model.kubernetes import Deployment, Event
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Untyped
from trimtab.runtime.controller import Controller
from trimtab.runtime.manager import Manager
from trimtab.runtime.metrics import Metrics
from trimtab.runtime.objects import with_metadata
from trimtab.runtime.queue import connect as connect_queue
from trimtab.runtime.system import Context
from trimtab.runtime.workers import Workers
from trimtab.storage.folder import FolderBlobs
from trimtab.storage.scratch import Scratch
from trimtab.systems.delivery.canary_controller import CanaryController
from trimtab.systems.delivery.group_controller import GroupController
from trimtab.systems.delivery.kinds import CanaryDeployment, CanaryDeploymentSpec, CanaryDeploymentStatus, ReleaseGroup

ANALYSIS: dict[str, Any] = {
    "interval": "10s",
    "stepWeights": [10, 50],
    "scaleDownDelay": "1s",
    "settle": "1s",
    "threshold": 2,
    "metrics": [{"name": "request-success-rate", "thresholdRange": {"min": 99}}],
}


def spec(image: str = "web:1", *, replicas: int = 2, app: str = "web", **more: Any) -> dict[str, Any]:
    """Of a CanaryDeployment, as it is on the wire; `analysis` is laid over the usual one, None leaves it out."""
    analysis = more.pop("analysis", {})
    template = {
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [{"name": "web", "image": image, "ports": [{"containerPort": 8080}]}]},
    }
    made = {
        "deployment": {"replicas": replicas, "selector": {"matchLabels": {"app": app}}, "template": template},
        "service": {"ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
        **more,
    }
    if analysis is not None:
        laid = {**ANALYSIS, **analysis}
        if "iterations" in analysis or "stepWeight" in analysis:
            laid.pop("stepWeights")
        made["analysis"] = laid
    return made


class Players:
    """Pods and data plane. Deployments become ready, unless their image is in `broken`, or their name in `lost` (no pod is
    ready) or `stuck` (new pods are not), or `short` of it (so many are); routes are live at once, unless
    `deaf`. Every change of what the canary gets is in `weights`; what came of Deployments (pods that are ready, or None
    when it is gone) and of weights is in `seen`, by the server's revision."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        self._client, self._namespace = client, namespace
        self.broken: set[str] = set()
        self.lost: set[str] = set()
        self.stuck: set[str] = set()
        self.short: dict[str, int] = {}
        self.deaf = False
        self.weights: list[tuple[str, int]] = []
        self.served: dict[str, tuple[str, bool]] = {}
        self.seen: list[tuple[int, str, str, Any]] = []

    async def play(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(Deployment, self._deployed))
            group.create_task(self._follow(VirtualService, self._routed))

    async def _follow(self, kind: Any, act: Callable[[Any, bool], Any]) -> None:
        query = Query(namespace=self._namespace)
        while True:
            listing = await self._client.list(kind, query)
            for found in listing.items:
                await act(found, False)
            with contextlib.suppress(StatusError, OSError):
                async with contextlib.aclosing(self._client.watch(kind, query, listing.revision)) as events:
                    async for event in events:
                        if event.object is not None:
                            await act(event.object, event.type is EventType.DELETED)

    async def nudge(self) -> None:
        """Look at all of them again: what the test said of pods has changed."""
        for found in (await self._client.list(Deployment, Query(namespace=self._namespace))).items:
            await self._deployed(found, False)
        for found in (await self._client.list(VirtualService, Query(namespace=self._namespace))).items:
            await self._routed(found, False)

    async def _deployed(self, deployment: Deployment, gone: bool) -> None:
        image = deployment.raw["spec"]["template"]["spec"]["containers"][0]["image"]
        ready = image not in self.broken and deployment.name not in self.lost and not gone
        self.served[deployment.name] = (image, ready)
        up_now = None if gone else (deployment.raw.get("status") or {}).get("readyReplicas", 0)
        self.seen.append((int(deployment.metadata.resource_version), "ready", deployment.name, up_now))
        if gone:
            return
        wanted = deployment.raw["spec"].get("replicas", 1)
        before = deployment.raw.get("status") or {}
        if deployment.name in self.stuck and before.get("observedGeneration") != deployment.metadata.generation:
            ready = False
        elif deployment.name in self.stuck:
            return
        up = self.short.get(deployment.name, wanted) if ready else 0
        # A rolling update without unavailable pods keeps those that were ready.
        kept = before.get("readyReplicas", 0) if not ready and deployment.name not in self.lost else 0
        status: dict[str, Any] = {
            "observedGeneration": deployment.metadata.generation,
            "replicas": wanted + kept,
            "updatedReplicas": wanted,
            "readyReplicas": up + kept,
            "availableReplicas": up + kept,
        }
        await self._write(deployment, status)

    async def _routed(self, found: VirtualService, gone: bool) -> None:
        if gone:
            return
        for route in found.raw["spec"].get("http") or ():
            for destination in route["route"]:
                if destination["destination"]["host"].endswith("-canary"):
                    seen = (found.name, destination.get("weight", 100))
                    self.seen.append((int(found.metadata.resource_version), "weight", found.name, seen[1]))
                    if not self.weights or [w for w in self.weights if w[0] == found.name][-1:] != [seen]:
                        self.weights.append(seen)
        if self.deaf:
            return
        live = [{"type": "Reconciled", "status": "True", "reason": "Live", "message": ""}]
        live[0]["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        await self._write(found, {"observedGeneration": found.metadata.generation, "conditions": live})

    async def _write(self, found: Any, status: dict[str, Any]) -> None:
        if {k: (found.raw.get("status") or {}).get(k) for k in status} == status:
            return
        document = {**found.raw, "status": {**(found.raw.get("status") or {}), **status}}
        names = self._client.scheme.kind_of(type(found))
        both = [Untyped({**raw, "apiVersion": names.api_version, "kind": names.kind}) for raw in (found.raw, document)]
        with contextlib.suppress(StatusError):  # someone wrote meanwhile: the watch brings it again
            await self._client.patch(both[0], both[1], subresource="status")


class Stage:
    """One namespace. Leaving `working` and entering it again is a restart."""

    def __init__(self, client: ApiClient, namespace: str, folder: Path) -> None:
        self.client, self.namespace = client, namespace
        self.busy = Busy(client)
        client = self.client = self.busy.client
        self.clock: Any = IdleClock(self.busy)
        self.gauge = Gauge(self.clock, self.busy)
        self.players = Players(client, namespace)
        self.blobs = FolderBlobs(folder / "blobs")
        self._folder = folder
        self._playing: asyncio.Task[None] | None = None

    async def close(self) -> None:
        if self._playing is not None:
            self._playing.cancel()
            await asyncio.wait({self._playing})
        await self.gauge.close()
        with contextlib.suppress(StatusError):
            for kind in (CanaryDeployment, ReleaseGroup):
                for found in (await self.client.list(kind, Query(namespace=self.namespace))).items:
                    await self.client.patch(found, with_metadata(found, finalizers=()))

    @contextlib.asynccontextmanager
    async def working(self, *, client: ApiClient | None = None) -> AsyncIterator[None]:
        """The controllers run inside. `client` is what they reach the API by, when a test comes between."""
        client = client or self.client
        if self._playing is None:
            self._playing = asyncio.create_task(self.players.play())
        await self.gauge.start()
        manager = Manager(client, name="delivery", clock=self.clock, metrics=Metrics())
        workers, queue = Workers(1), connect_queue(None, clock=self.clock)
        context = Context(
            client=client,
            clock=self.clock,
            blobs=self.blobs,
            scratch=Scratch(self._folder / "scratch", 1 << 20),
            queue=queue,
            workers=workers,
            metrics=manager.metrics,
            manager=manager,
            prometheus=self.gauge.url,
        )
        for controller in (CanaryController(context), GroupController()):
            manager.add(_within(controller, self.namespace))
        stop = asyncio.Event()
        running = asyncio.create_task(manager.run(stop))
        try:
            yield
        finally:
            stop.set()
            await running
            await workers.close()
            await queue.close()

    # --- what users do -----------------------------------------------------------------------------------------------

    async def create(self, name: str = "web", /, **given: Any) -> CanaryDeployment:
        made = convert(spec(app=name, **given), CanaryDeploymentSpec)
        return await self.client.create(
            CanaryDeployment(metadata=ObjectMeta(name=name, namespace=self.namespace), spec=made)
        )

    async def stable(self, name: str = "web", /, **given: Any) -> CanaryDeployment:
        """One that serves."""
        await self.create(name, **given)
        return await self.phase("Stable", name)

    async def change(self, mutate: Callable[[dict[str, Any]], Any], name: str = "web") -> CanaryDeployment:
        """`mutate` changes the spec, as it is on the wire, in place."""

        def edited(held: CanaryDeployment) -> CanaryDeployment:
            document = copy.deepcopy(dict(held.raw or {}))
            mutate(document["spec"])
            return held.replace(spec=convert(document["spec"], CanaryDeploymentSpec))

        return await self.edit(edited, name)

    async def image(self, image: str, name: str = "web") -> CanaryDeployment:
        """A new revision."""
        return await self.change(
            lambda spec: spec["deployment"]["template"]["spec"]["containers"][0].update(image=image), name
        )

    async def annotate(self, name: str = "web", **annotations: str | None) -> CanaryDeployment:
        """Set annotations of delivery, or remove them; dashes are underscores."""
        changed = {f"delivery.trimtab.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}

        def edited(held: CanaryDeployment) -> CanaryDeployment:
            both = {**(held.metadata.annotations or {}), **changed}
            return with_metadata(held, annotations={key: value for key, value in both.items() if value is not None})

        return await self.edit(edited, name)

    async def edit(self, edited: Callable[[CanaryDeployment], CanaryDeployment], name: str = "web") -> CanaryDeployment:
        while True:
            held = await self.get(name)
            try:
                return await self.client.patch(held, edited(held))
            except StatusError as error:
                if error.code != 409:
                    raise

    async def delete(self, name: str = "web") -> None:
        await self.client.delete(Ref(CanaryDeployment, name, self.namespace))

    # --- what tests see ----------------------------------------------------------------------------------------------

    async def get(self, name: str = "web") -> CanaryDeployment:
        return await self.client.get(CanaryDeployment, name, self.namespace)

    async def until(self, holds: Callable[[CanaryDeploymentStatus], Any], name: str = "web") -> CanaryDeployment:
        """The object, as soon as this is true of its status. Time passes meanwhile, as fast as it can."""
        found: CanaryDeployment = await self.until_object(
            CanaryDeployment, name, lambda found: found.status and holds(found.status)
        )
        return found

    async def until_object(self, kind: Any, name: str, holds: Callable[[Any], Any]) -> Any:
        """The same of any object."""
        return await self.clock.passing(until_found(self.client, kind, name, self.namespace, holds))

    async def quiet(self) -> None:
        """Everything that is to happen now has happened. No time passes."""
        await self.busy.over()

    async def phase(self, phase: str, name: str = "web") -> CanaryDeployment:
        return await self.until(lambda status: status.phase == phase, name)

    async def ended(self, outcome: str, name: str = "web", runs: int = 1) -> CanaryDeployment:
        """When so many runs have ended, the last one so."""
        found = await self.until(
            lambda s: s.phase == "Stable" and sum(r.outcome != "Running" for r in s.history or ()) >= runs, name
        )
        assert found.status.history[0].outcome == outcome, found.status.history[0]
        return found

    async def until_gone(self, kind: Any, name: str = "web") -> None:
        await self.clock.passing(until_gone(self.client, kind, name, self.namespace))

    async def document(self, kind: Any, name: str = "web") -> Mapping[str, Any]:
        return (await self.client.get(kind, name, self.namespace)).raw

    def order_is_right(self, name: str = "web") -> None:
        """Weight was given only to pods that were ready, and pods went only when they had none."""
        ready, weight = 0, 0
        for _, what, whose, value in sorted(self.players.seen, key=lambda each: each[0]):
            if what == "weight" and whose == name:
                assert value <= weight or ready, f"{value} % to a canary without ready pods"
                weight = value
            elif what == "ready" and whose == f"{name}-canary":
                assert value is not None or not weight, f"the canary was deleted at {weight} %"
                ready = value or 0

    async def weight(self, name: str = "web") -> int:
        """What the canary gets, as the VirtualService has it."""
        document = await self.document(VirtualService, name)
        route = document["spec"]["http"][-1]["route"]
        return next(d["weight"] for d in route if d["destination"]["host"].endswith("-canary"))

    async def events(self) -> list[str]:
        found = (await self.client.list(Event, Query(namespace=self.namespace))).items
        return [event.reason for event in found]

    async def later(self, seconds: float) -> None:
        """Let so much time pass, and what is due then happen."""
        await self.quiet()
        self.clock.leap(seconds)
        await self.quiet()

    async def told(self, reason: str) -> list[str]:
        """What events with this reason say."""
        found = (await self.client.list(Event, Query(namespace=self.namespace))).items
        return [str(event.raw.get("note") or event.raw.get("message")) for event in found if event.reason == reason]


def condition(canary: CanaryDeployment, kind: str) -> Condition | None:
    return get_condition(canary.status.conditions, kind) if canary.status else None


def _within(controller: Controller[Any], namespace: str) -> Controller[Any]:
    """A controller that sees only one namespace: others are those of tests before."""
    import msgspec

    query = Query(namespace=namespace)
    controller.query = query
    controller.watches = tuple(  # type: ignore[misc]
        msgspec.structs.replace(watch, query=msgspec.structs.replace(watch.query, namespace=namespace))
        for watch in controller.watches
    )
    return controller


__all__ = ["ANALYSIS", "PATIENCE", "UNSET", "Players", "Stage", "condition", "spec"]

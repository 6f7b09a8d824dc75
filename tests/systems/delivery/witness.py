"""What the API was told during a test, in the order of its revisions, and laws that hold of any of it.

The laws are those of a release, whoever crashed meanwhile: see `Laws`. They look only at what was written.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from trimtab.client.api import ApiClient
from trimtab.client.protocol import EventType, Query
from trimtab.model.clock import parse_time
from trimtab.model.istio import VirtualService
from trimtab.model.kubernetes import Deployment
from trimtab.systems.delivery.kinds import CanaryDeployment, ReleaseGroup

KINDS = (CanaryDeployment, ReleaseGroup, Deployment, VirtualService)
REVISION = "delivery.trimtab.dev/revision"
Document = Mapping[str, Any]


class Told(NamedTuple):
    revision: int
    kind: str
    name: str
    gone: bool
    raw: Document


class Witness:
    """`told` is everything, in order; `now` is how the objects are."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        self._client, self._namespace = client, namespace
        self._told: list[Told] = []
        self._since: dict[Any, str] = {}
        self._news = asyncio.Event()
        self.now: dict[tuple[str, str], Document] = {}

    @contextlib.asynccontextmanager
    async def watching(self, client: ApiClient | None = None) -> AsyncIterator[Witness]:
        """Again after a while, perhaps by another client, it goes on where it was: nothing is missed."""
        self._client = client or self._client
        for kind in KINDS:
            if kind not in self._since:
                listing = await self._client.list(kind, Query(namespace=self._namespace))
                self._since[kind] = listing.revision
                for found in listing.items:
                    self._hear(kind.__name__, found, gone=False)
        tasks = [asyncio.create_task(self._follow(kind)) for kind in KINDS]
        try:
            yield self
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _follow(self, kind: Any) -> None:
        with contextlib.suppress(OSError):  # the server was killed
            events = self._client.watch(kind, Query(namespace=self._namespace), self._since[kind])
            async with contextlib.aclosing(events) as stream:
                async for event in stream:
                    if event.object is not None and event.type is not EventType.BOOKMARK:
                        self._since[kind] = str(event.object.metadata.resource_version)
                        self._hear(kind.__name__, event.object, gone=event.type is EventType.DELETED)

    def _hear(self, kind: str, found: Any, *, gone: bool) -> None:
        name, raw = found.name, found.raw
        self._told.append(Told(int(raw["metadata"]["resourceVersion"]), kind, name, gone, raw))
        if gone:
            self.now.pop((kind, name), None)
        else:
            self.now[kind, name] = raw
        self._news.set()

    def status(self, name: str, kind: str = "CanaryDeployment") -> Document:
        return self.now.get((kind, name), {}).get("status") or {}

    def told(self) -> list[Told]:
        return sorted(self._told, key=lambda each: each.revision)

    async def until(self, holds: Callable[[], bool], seconds: float) -> None:
        """Raises TimeoutError after so many seconds of real time."""
        async with asyncio.timeout(seconds):
            while not holds():
                self._news.clear()
                await self._news.wait()


class Laws:
    """Of one CanaryDeployment with these weights as its steps, and checks this far apart.

    1. The canary is given more only while its Deployment is ready; never more than the next step.
    2. Its Deployment goes only when the routes give it nothing, and the data plane has said so.
    3. Stable runs only what was proven, or was sent straight out, or was there before.
    4. Checks of a run are at least an interval apart, and the next one is never put earlier.
    5. A run is begun once, and ends once.
    """

    def __init__(self, name: str, steps: Sequence[int], interval: float, retry: float = 0.0) -> None:
        self.name, self.steps, self.interval, self.retry = name, tuple(steps), interval, retry
        self.broken: list[str] = []
        self._weight = 0
        self._routes: Document = {}
        self._canary: Document | None = None
        self._stable = ""
        self._status: Document = {}
        self._going = False

    def judge(self, told: Iterable[Told]) -> list[str]:
        for each in told:
            if each.kind == "CanaryDeployment" and each.name == self.name:
                self._told(each)
            elif each.kind == "VirtualService" and each.name == self.name:
                self._routed(each)
            elif each.kind == "Deployment" and each.name == f"{self.name}-canary":
                self._pods(each)
            elif each.kind == "Deployment" and each.name == self.name and not each.gone:
                self._served(each)
        return self.broken

    def _break(self, what: str, each: Told) -> None:
        self.broken.append(f"{self.name} at revision {each.revision}: {what}")

    def _routed(self, each: Told) -> None:
        self._routes = {} if each.gone else each.raw
        if each.gone:
            if not self._going:
                self._break("its routes are gone", each)
            return
        weight = canary_weight(each.raw)
        if weight == self._weight:
            return
        before, self._weight = self._weight, weight
        if weight > before:
            if self._canary is None or not is_ready(self._canary):
                self._break(f"{weight} % to a canary that is not ready", each)
            allowed = self.steps[: self.steps.index(before) + 2 if before in self.steps else 1]
            again = (self._status.get("run") or {}).get("recreated") and weight in self.steps
            if weight not in allowed and not again:
                self._break(f"from {before} % to {weight} %", each)
        elif weight and (self._status.get("phase") != "Returning"):
            self._break(f"from {before} % down to {weight} %", each)

    def _pods(self, each: Told) -> None:
        if not each.gone:
            self._canary = each.raw
            return
        self._canary = None
        if self._going and not self._routes:
            return
        if self._weight or not is_live(self._routes):
            self._break(f"the canary's Deployment is gone at {self._weight} %, live: {is_live(self._routes)}", each)

    def _served(self, each: Told) -> None:
        revision = each.raw["spec"]["template"]["metadata"]["labels"].get(REVISION, "")
        if revision == self._stable:
            return
        self._stable = revision
        run = self._status.get("run") or {}
        if self._status.get("phase") == "Promoting" and short(run["revision"]) == revision:
            proven = (
                run.get("step", 0) + 1 == len(self.steps) and (run.get("checks") or [{}])[0].get("verdict") == "Pass"
            )
            if not proven and "promotion" not in run:
                self._break(f"stable got {revision}, which is not proven", each)
        elif short(self._status.get("stableRevision") or "") != revision:
            self._break(f"stable got {revision} in phase {self._status.get('phase')}", each)

    def _told(self, each: Told) -> None:
        before, self._status = self._status, each.raw.get("status") or {}
        self._going = each.gone or bool(each.raw["metadata"].get("deletionTimestamp"))
        if each.gone and (self._weight or not is_live(self._routes)):
            self._break(f"it went while the canary had {self._weight} %, live: {is_live(self._routes)}", each)
        ids = [run["id"] for run in self._status.get("history") or ()]
        if len(ids) != len(set(ids)):
            self._break(f"runs {ids}", each)
        old, new = before.get("run") or {}, self._status.get("run") or {}
        if not old or old.get("id") != new.get("id"):
            return
        self._timed(each, old, new)

    def _timed(self, each: Told, old: Document, new: Document) -> None:
        earlier, later = old.get("nextCheckTime"), new.get("nextCheckTime")
        if earlier and later and parse_time(later) < parse_time(earlier):
            self._break(f"the next check moved from {earlier} to {later}", each)
        checks, known = new.get("checks") or [], old.get("checks") or []
        if not checks or checks[:1] == known[:1]:
            return
        if checks[1:2] != known[:1]:
            self._break("two checks at once", each)
        if earlier and moment(checks[0]) < parse_time(earlier):
            self._break(f"a check at {checks[0]['time']}, which was due at {earlier}", each)
        after_error = bool(known) and known[0]["verdict"] == "Error"
        if known:
            apart = (moment(checks[0]) - moment(known[0])).total_seconds()
            if apart < (self.retry if after_error else self.interval):
                self._break(f"two checks {apart} s apart", each)
        length = (moment(checks[0]) - parse_time(checks[0]["windowStart"])).total_seconds()
        if length < (self.retry if after_error else self.interval):
            self._break(f"a window of {length} s", each)


def moment(check: Document) -> datetime:
    return parse_time(check["time"])


def short(revision: str) -> str:
    return revision.rpartition(":")[2][:12]


def canary_weight(raw: Document) -> int:
    for destination in raw["spec"]["http"][-1]["route"]:
        if destination["destination"]["host"].endswith("-canary"):
            return int(destination.get("weight", 100))
    return 0


def is_ready(raw: Document) -> bool:
    status, wanted = raw.get("status") or {}, raw["spec"].get("replicas", 1)
    current = status.get("observedGeneration") == raw["metadata"]["generation"]
    return current and status.get("readyReplicas", 0) >= wanted and status.get("updatedReplicas", 0) >= wanted


def is_live(raw: Document) -> bool:
    status = raw.get("status") or {}
    current = status.get("observedGeneration") == raw["metadata"]["generation"] if raw else False
    return current and any(each["type"] == "Reconciled" and each["status"] == "True" for each in status["conditions"])

"""Runs the Pods that carry our finalizer, and writes what becomes of them into their status.

A pod's address is in its status before its first process starts; its finalizer stays until its last one has ended. What
happens in between is told by the pod's run (`run`), which asks for a reconcile whenever something changed.

When this controller stops, the processes go on, unless the whole home ends: then they are ended too.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from trimtab.client.protocol import Query
from trimtab.model.clock import format_time
from trimtab.model.kubernetes import Pod, Service
from trimtab.runtime.changes import Change, Request
from trimtab.runtime.controller import Controller, Result
from trimtab.runtime.finalizers import finalizer
from trimtab.runtime.objects import is_deleting, uid_of
from trimtab.runtime.predicates import Predicate
from trimtab.runtime.status import write_status
from trimtab.runtime.system import Context
from trimtab.runtime.tasks import ended
from trimtab.systems.local.gateway.addresses import ENDPOINTS
from trimtab.systems.local.pods.addresses import Addresses
from trimtab.systems.local.pods.leftovers import end_all, end_strays
from trimtab.systems.local.pods.logs import rotate_all
from trimtab.systems.local.pods.names import FINALIZER, RUNTIME
from trimtab.systems.local.pods.podman import Runtimes
from trimtab.systems.local.pods.records import Folder
from trimtab.systems.local.pods.run import PodRun, Stage
from trimtab.systems.local.pods.setting import Setting
from trimtab.systems.local.pods.status import pod_status, scheduled
from trimtab.systems.local.pods.truth import Truth
from trimtab.systems.local.pods.volumes import variable

FAREWELL = 15.0  # seconds that processes get when the home ends; a controller's stop may take 30
ROTATED = 1.0  # seconds between looks at the logs


@Predicate
def ours(change: Change) -> bool:
    """Only what we run. A pod that comes or goes is told anyway."""
    return any(head is not None and FINALIZER in (head.finalizers or ()) for head in change.heads)


class PodController(Controller[Pod]):
    name = "local-pods"
    when = ours
    echo = False

    def __init__(self, context: Context, truth: Truth | None = None) -> None:
        self._context = context
        self._runs: dict[Request, PodRun] = {}
        self._taken: dict[str, str] = {}  # addresses that are given, by uid: the cache may be behind
        self._giving = asyncio.Lock()
        self._root = root_of(context)
        self._truth = truth or truth_of(context)
        self._addresses = Addresses(str(self._root))
        self._runtimes = Runtimes(context.clock)
        self._rotating: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        await self._truth.told(self.client)
        known = {uid_of(pod) for pod in (await self.client.live.list(Pod, Query())).items}
        await end_strays(self._root, known, self._runtimes)
        self._rotating = asyncio.create_task(self._rotate(), name="rotation of logs")

    async def pause(self) -> None:
        runs, self._runs = list(self._runs.values()), {}
        await asyncio.gather(*(run.release() for run in runs))

    async def stop(self) -> None:
        if self._rotating is not None:
            await ended(self._rotating)
        stopping = self._context.stopping
        if stopping is None or stopping.is_set():
            await end_all(self._root, self._runtimes, FAREWELL)

    async def reconcile(self, request: Request) -> Result | None:
        pod = await self.client.find(Pod, request.name, request.namespace)
        run = self._runs.get(request)
        if run is not None and (pod is None or uid_of(pod) != run.setting.folder.uid):
            return await self._abandon(request, run)
        if pod is None or FINALIZER not in (pod.metadata.finalizers or ()):
            return None
        if run is None:
            pod, run = await self._begin(request, pod)
        if is_deleting(pod):
            run.finish()
        if run.broken is not None:
            del self._runs[request]
            await run.release()
            raise RuntimeError("the run of a pod broke off") from run.broken
        pod = await write_status(self.client, pod, self._status(pod, run))
        if run.stage is Stage.ENDED:
            await finalizer(self.client, pod, FINALIZER, apply=_nothing, cleanup=_nothing)
            self._forget(request, run)
        return None

    async def _begin(self, request: Request, pod: Pod) -> tuple[Pod, PodRun]:
        uid = uid_of(pod)
        status: dict[str, Any] = pod.status or {}
        if not status.get("podIP"):
            async with self._giving:
                pods = (await self.client.list(Pod, Query())).items
                taken = {(each.status or {}).get("podIP", "") for each in pods} | set(self._taken.values())
                self._taken[uid] = self._addresses.take(taken)
            now = format_time(self.clock.now())
            pod = await write_status(self.client, pod, scheduled(status, self._taken[uid], now))
        address = (pod.status or {})["podIP"]
        folder = Folder(self._root, uid)
        spec = pod.spec or {}
        grace = spec.get("terminationGracePeriodSeconds")
        run = PodRun(
            Setting(
                pod=pod.raw or {},
                address=address,
                folder=folder,
                client=self.client,
                clock=self.clock,
                launcher=self._runtimes,
                changed=lambda: self.wake(request),
                tell=lambda reason, note: self.events.warning(pod, reason, note),
                served=lambda: self._served(request.namespace, f"{address}:"),
                grace=30.0 if grace is None else float(grace),
            )
        )
        self._runs[request] = run
        if not is_deleting(pod):
            self._introduce(pod, run)
            run.begin()
        return pod, run

    async def _served(self, namespace: str, endpoint: str) -> bool:
        """The gateway says at each Service whom it sends requests to, once that is so."""
        services = (await self.client.list(Service, Query(namespace=namespace))).items
        return any(endpoint in (each.metadata.annotations or {}).get(ENDPOINTS, "") for each in services)

    def _introduce(self, pod: Pod, run: PodRun) -> None:
        """What a user has to know about a pod that is processes."""
        where = f"it has address {run.setting.address}, and its containers print to {run.setting.folder.path}/*.log"
        self.events.normal(pod, "Scheduled", where)
        mounts = [mount for each in (pod.spec or {})["containers"] for mount in each.get("volumeMounts") or ()]
        if mounts and (pod.metadata.annotations or {}).get(RUNTIME) != "podman":
            names = ", ".join(f"{mount['mountPath']} is at ${variable(mount['name'])}" for mount in mounts[:8])
            self.events.warning(pod, "MountPathNotUsed", f"a process has no file system of its own: {names}")

    def _status(self, pod: Pod, run: PodRun) -> dict[str, Any]:
        status = pod_status(
            pod.status or {},
            address=run.setting.address,
            init=[container.status() for container in run.init],
            containers=[container.status() for container in run.containers],
            initialized=run.stage not in (Stage.NEW, Stage.INITIALIZING),
            deleting=is_deleting(pod),
            now=format_time(self.clock.now()),
        )
        ready = next(each for each in status["conditions"] if each["type"] == "Ready")
        run.was_ready = run.was_ready or ready["status"] == "True"
        return status

    async def _abandon(self, request: Request, run: PodRun) -> Result | None:
        """The pod was removed by force: nobody waits for its end, and it comes all the same."""
        run.finish()
        if run.stage is not Stage.ENDED:
            return None
        self._forget(request, run)
        return Result(requeue_after=0.01)  # another may have its name by now

    def _forget(self, request: Request, run: PodRun) -> None:
        self._runs.pop(request, None)
        self._taken.pop(run.setting.folder.uid, None)

    async def _rotate(self) -> None:
        while True:
            await self.clock.sleep(ROTATED)
            await asyncio.to_thread(rotate_all, self._root)


def root_of(context: Context) -> Path:
    """Where the files of pods are. They are no scratch: a record that goes while its process runs is a stray."""
    if context.data_dir is None:
        raise ValueError("pods are run only beside the embedded server: there is no data directory")
    return context.data_dir / "local" / "pods"


def truth_of(context: Context) -> Truth:
    """To be shared by the controllers of one home."""
    return Truth(root_of(context), context.clock)


async def _nothing(_: Pod) -> None:
    """Its processes have ended already."""

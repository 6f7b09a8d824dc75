"""Before anybody goes by what the API says of pods: those whose processes ended while nobody looked are not ready.

The API keeps what was written last. After a clean stop, or when the machine went down, that is of processes which are no
more; whoever routed by it would send requests to nobody. So each controller of this system asks for the truth first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trimtab.client.protocol import Query
from trimtab.model.clock import Clock, format_time
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import Pod
from trimtab.model.logs import log
from trimtab.runtime.cached import CachedClient
from trimtab.runtime.objects import is_deleting, uid_of
from trimtab.runtime.status import write_status
from trimtab.systems.local.pods.names import FINALIZER
from trimtab.systems.local.pods.records import Folder, living
from trimtab.systems.local.pods.status import is_ready, pod_status

Document = Mapping[str, Any]


class Truth:
    """Told once, whoever asks first; the others wait until it is."""

    def __init__(self, root: Path, clock: Clock) -> None:
        self._root, self._clock = root, clock
        self._telling = asyncio.Lock()
        self._told = False

    async def told(self, client: CachedClient) -> None:
        """When this returns, no pod of ours that has no process is ready, for whoever reads by this client."""
        async with self._telling:
            if self._told:
                return
            for pod in (await client.list(Pod, Query())).items:
                if FINALIZER in (pod.metadata.finalizers or ()) and is_ready({"status": pod.status or {}}):
                    await self._tell(client, pod)
            self._told = True

    async def _tell(self, client: CachedClient, pod: Pod) -> None:
        before: dict[str, Any] = pod.status or {}
        folder = Folder(self._root, uid_of(pod))
        containers = [_now(folder, each) for each in before.get("containerStatuses") or ()]
        if containers == list(before.get("containerStatuses") or ()):
            return
        status = pod_status(
            before,
            address=before.get("podIP", ""),
            init=before.get("initContainerStatuses") or (),
            containers=containers,
            initialized=True,
            deleting=is_deleting(pod),
            now=format_time(self._clock.now()),
        )
        try:
            await write_status(client, pod, status)
        except StatusError as error:
            if error.code not in (404, 409):  # gone, or written since: by the one who runs it
                raise
        log.info("a pod lost its processes while nobody looked", pod=pod.name, namespace=pod.namespace)


def _now(folder: Folder, status: Document) -> Document:
    record = folder.read(status["name"])
    runs = record is not None and living(record) != 0
    return status if runs or not status.get("ready") else {**status, "ready": False, "started": False}

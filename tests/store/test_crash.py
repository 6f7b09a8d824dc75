"""The store on a disk that loses power, fails, or fills up, and in a process that is killed.

`Disk` is a SQLite VFS that writes through to real files and keeps a trace. From the trace, `Wreck` computes what a disk
may hold if the power had gone at any point: what was synced, and of the rest nothing, all, or any part by sectors.
"""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from trimtab.store.contract import Entry, Key, Op, Query, Unwritable, Write
from trimtab.store.sqlite import SqliteStore

SECTOR = 512
RESOURCES = ("configmaps", "secrets")

Step = tuple[str, str, int, bytes]
"""("write", file, offset, data), ("truncate", file, size, b""), ("sync" | "create" | "delete", file, 0, b""), or
("delete-sync", …) when the folder was synced too; ("done", "", number, b"") when a batch was acknowledged."""


class Disk(apsw.VFS):
    """A disk that keeps a trace, and that fails when `fault` says so."""

    def __init__(self, name: str) -> None:
        self.trace: list[Step] = []
        self.fault: Callable[[str, str], apsw.Error | None] = lambda operation, file: None
        super().__init__(name, base="")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> DiskFile:
        return DiskFile(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        super().xDelete(filename, syncdir)
        self.trace.append(("delete-sync" if syncdir else "delete", Path(filename).name, 0, b""))


class DiskFile(apsw.VFSFile):
    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        self.disk, self.file = disk, Path(path).name
        if not Path(path).exists():
            disk.trace.append(("create", self.file, 0, b""))
        super().__init__("", name, flags)

    def _meet(self, operation: str) -> None:
        error = self.disk.fault(operation, self.file)
        if error is not None:
            raise error

    def xWrite(self, data: bytes, offset: int) -> None:
        self._meet("write")
        super().xWrite(data, offset)
        self.disk.trace.append(("write", self.file, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:
        super().xTruncate(newsize)
        self.disk.trace.append(("truncate", self.file, newsize, b""))

    def xSync(self, flags: int) -> None:
        self._meet("sync")
        super().xSync(flags)
        self.disk.trace.append(("sync", self.file, 0, b""))


class Blocks:
    """One file: what is durable, and what was asked of it since."""

    def __init__(self) -> None:
        self.durable = bytearray()
        self.pending: list[Step] = []
        self.synced = False

    def sync(self) -> None:
        for step in self.pending:
            _change(self.durable, step)
        self.pending, self.synced = [], True

    def survivor(self, dice: random.Random, luck: str) -> bytearray:
        content = bytearray(self.durable)
        for step in self.pending:
            if luck == "all" or (luck == "some" and dice.random() < 0.5):
                _change(content, step)
            elif luck == "torn":
                for sector in _sectors(step):
                    if dice.random() < 0.7:
                        _change(content, sector)
        return content


class Wreck:
    """Follows a trace; at any point, says what the disk may hold after the power goes."""

    def __init__(self, main: str) -> None:
        self.main = main
        self.files: dict[str, Blocks] = {main: Blocks()}  # as the running program sees them
        self.folder: dict[str, Blocks] = dict(self.files)  # as the folder is on the disk
        self.renames: list[tuple[str, Blocks | None]] = []  # what was created and deleted since the folder was synced

    def follow(self, step: Step) -> None:
        operation, file, _, _ = step
        if operation == "create" and file != self.main:
            self.files[file] = Blocks()
            self.renames.append((file, self.files[file]))
        elif operation in ("delete", "delete-sync"):
            self.files.pop(file, None)
            self.renames.append((file, None))
            if operation == "delete-sync":
                self._sync_folder()
        elif operation == "sync":
            if not self.files[file].synced:  # SQLite syncs the folder with the first sync of a new file
                self._sync_folder()
            self.files[file].sync()
        elif operation in ("write", "truncate"):
            self.files[file].pending.append(step)

    def _sync_folder(self) -> None:
        for file, blocks in self.renames:
            self._rename(self.folder, file, blocks)
        self.renames = []

    @staticmethod
    def _rename(folder: dict[str, Blocks], file: str, blocks: Blocks | None) -> None:
        if blocks is None:
            folder.pop(file, None)
        else:
            folder[file] = blocks

    def survivors(self, dice: random.Random, luck: str) -> dict[str, bytearray]:
        folder = dict(self.folder)
        lasting = {"none": 0, "all": len(self.renames)}.get(luck, dice.randint(0, len(self.renames)))
        for file, blocks in self.renames[:lasting]:
            self._rename(folder, file, blocks)
        return {file: blocks.survivor(dice, luck) for file, blocks in folder.items()}


def _change(content: bytearray, step: Step) -> None:
    operation, _, offset, data = step
    if operation == "truncate":
        del content[offset:]
        return
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


def _sectors(step: Step) -> Iterator[Step]:
    operation, file, offset, data = step
    if operation == "truncate":
        yield step
    start = 0
    while start < len(data):
        end = min(len(data), start + SECTOR - (offset + start) % SECTOR)
        yield (operation, file, offset + start, data[start:end])
        start = end


State = dict[Key, tuple[int, bytes]]


async def state(store: SqliteStore, revision: int | None = None) -> State:
    pages = [await store.list(Query(resource=resource, revision=revision)) for resource in RESOURCES]
    return {entry.key: (entry.revision, entry.value) for page in pages for entry in page.entries}


def random_writes(dice: random.Random, present: State) -> list[Write]:
    """Some writes that go into one transaction: new, changed and deleted keys, small and large values."""
    keys = [Key(resource, "default", name) for resource in RESOURCES for name in "abcdef"]
    chosen = dice.sample(keys, dice.randint(1, 4))
    writes = []
    for key in chosen:
        if key in present and dice.random() < 0.4:
            writes.append(Write(key=key, head=b"-", tail=b"", op=Op.DELETE))
        else:
            text = bytes([dice.randrange(256)]) * dice.choice((10, 1000, 9000))
            expires = dice.choice((None, 1.0))
            writes.append(Write(key=key, head=text, tail=b"", labels={"n": key.name}, expires=expires))
    return writes


@pytest.fixture
def small_checkpoints() -> Iterator[None]:
    """Checkpoints come every few pages, so that a short run has many."""

    def hook(connection: apsw.Connection) -> None:
        connection.wal_autocheckpoint(12)

    apsw.connection_hooks.append(hook)
    yield
    apsw.connection_hooks.remove(hook)


@pytest.mark.usefixtures("small_checkpoints")
@pytest.mark.parametrize("seed", range(3))
async def test_no_power_cut_loses_or_halves_an_acknowledged_write(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    disk = Disk(f"disk-{seed}")
    (tmp_path / "whole").mkdir()
    store = await SqliteStore.open(tmp_path / "whole" / "store.db", vfs=f"disk-{seed}")
    states: list[State] = [{}]  # after each batch
    for number in range(1, 30):
        if number % 7 == 0:
            await store.compact(store.revision - dice.randint(0, 5))
        else:
            await asyncio.gather(*(store.commit(write) for write in random_writes(dice, states[-1])))
        states.append(await state(store))
        disk.trace.append(("done", "", number, b""))
    await store.close()

    wreck = Wreck("store.db")
    done = checked = 0
    for step in disk.trace:
        wreck.follow(step)
        if step[0] == "done":
            done = step[2]
        # After a sync, a power cut leaves nothing open but the folder; before one, everything.
        for luck in ("none", "all") if step[0] == "sync" else (dice.choice(("none", "all", "some", "torn")),):
            folder = tmp_path / f"crash-{checked}"
            folder.mkdir()
            for file, content in wreck.survivors(dice, luck).items():
                (folder / file).write_bytes(content)
            await check_survivor(folder / "store.db", states[done : done + 2], f"{seed=} {checked=} {luck=} {step[:3]}")
            checked += 1
    assert checked > 200


async def check_survivor(path: Path, allowed: list[State], where: str) -> None:
    """The state is that of the last acknowledged batch, or of the one that was under way; and it is sound."""
    check_sound(path, where)
    store = await SqliteStore.open(path)
    try:
        found = await state(store)
        assert found in allowed, where
        acknowledged = max((revision for revision, _ in allowed[0].values()), default=0)
        assert store.revision >= acknowledged, where
        entry = await store.commit(Write(key=Key("configmaps", "", "new"), head=b"", tail=b""))
        assert entry.revision == store.revision > max((revision for revision, _ in found.values()), default=0), where
    finally:
        await store.close()


def check_sound(path: Path, where: str) -> None:
    connection = apsw.Connection(str(path))
    try:
        assert connection.pragma("integrity_check") == "ok", where
        if connection.pragma("user_version") == 0:  # the power went before the file was made
            return
        dangling = """SELECT * FROM latest LEFT JOIN log USING (revision) WHERE log.deleted IS NOT 0
            OR (log.resource, log.namespace, log.name) IS NOT (latest.resource, latest.namespace, latest.name)"""
        assert connection.execute(dangling).fetchall() == [], where
        forgotten = """SELECT revision FROM log AS old WHERE revision NOT IN (SELECT revision FROM latest)
            AND NOT (deleted AND revision > (SELECT compacted FROM horizon))
            AND NOT EXISTS (SELECT 1 FROM log WHERE previous = old.revision
                AND revision > (SELECT compacted FROM horizon))"""
        assert connection.execute(forgotten).fetchall() == [], where
        missing = """SELECT revision FROM log WHERE previous > 0 AND revision > (SELECT compacted FROM horizon)
            AND previous NOT IN (SELECT revision FROM log)"""
        assert connection.execute(missing).fetchall() == [], where
    finally:
        connection.close()


FAULTS = {
    "a full disk": ("write", apsw.FullError("no space")),
    "a write error": ("write", apsw.IOError("bad sector")),
    "a sync error": ("sync", apsw.IOError("bad sector")),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_a_failed_transaction_fails_its_writes_and_the_store_goes_on(name: str, tmp_path: Path) -> None:
    operation, error = FAULTS[name]
    disk = Disk(name)
    store = await SqliteStore.open(tmp_path / "store.db", vfs=name)
    writes = [Write(key=Key("configmaps", "", f"{n}"), head=b"", tail=b"") for n in range(5)]
    await store.commit(writes[0])

    disk.fault = lambda asked, file: error if (asked, file) == (operation, "store.db-wal") else None
    results = await asyncio.gather(*(store.commit(write) for write in writes), return_exceptions=True)
    assert [type(result) for result in results] == [Unwritable] * 5
    with pytest.raises(Unwritable):
        await store.compact(1)
    assert await state(store) == {writes[0].key: (1, b"1")}

    disk.fault = lambda asked, file: None
    results = await asyncio.gather(*(store.commit(write) for write in writes))
    assert [entry.revision for entry in results] == [2, 3, 4, 5, 6]
    await store.close()
    check_sound(tmp_path / "store.db", name)


WRITER = """
import asyncio, itertools, sys
from pathlib import Path
from trimtab.store.contract import Key, Write
from trimtab.store.retention import Retention
from trimtab.store.sqlite import SqliteStore

async def main():
    store = await SqliteStore.open(Path(sys.argv[1]), retention=Retention(seconds=0, revisions=100))
    async def write(n):
        for turn in itertools.count():
            key = Key("configmaps", "default", str(n + 8 * (turn % 5)))
            entry = await store.commit(Write(key=key, head=b"x" * 3000, tail=b""))
            print(key.name, entry.revision, flush=True)
    await asyncio.gather(*(write(n) for n in range(8)))

asyncio.run(main())
"""


async def test_a_killed_process_loses_no_acknowledged_write(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    acknowledged: dict[str, int] = {}
    newest = 0
    for lines in (40, 150, 400, 90):
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", WRITER, str(path), stdout=asyncio.subprocess.PIPE
        )
        assert child.stdout is not None
        for _ in range(lines):
            name, revision = (await child.stdout.readline()).split()
            acknowledged[name.decode()] = int(revision)
        child.send_signal(signal.SIGKILL)
        for line in (await child.stdout.read()).splitlines(keepends=True):
            if line.endswith(b"\n"):
                name, revision = line.split()
                acknowledged[name.decode()] = int(revision)
        await child.wait()
        check_sound(path, f"after {lines}")
        store = await SqliteStore.open(path)
        found = {entry.key.name: entry for entry in (await store.list(Query(resource="configmaps"))).entries}
        assert all(found[name].revision >= revision for name, revision in acknowledged.items())
        assert all(intact(entry) for entry in found.values())
        assert store.revision >= max(acknowledged.values()) > newest
        newest = store.revision
        await store.close()


def intact(entry: Entry) -> bool:
    return entry.value == b"x" * 3000 + str(entry.revision).encode()

"""Processes are found again by their records, and only they; what nobody owns is ended; logs are bounded."""

from __future__ import annotations

import uuid
from pathlib import Path

import msgspec
import pytest

from tests.systems.local.pods_kit import alive, python
from trimtab.systems.local.pods.launch import AsProcess
from trimtab.systems.local.pods.leftovers import end_all, end_strays
from trimtab.systems.local.pods.logs import rotate
from trimtab.systems.local.pods.names import MARK
from trimtab.systems.local.pods.process import Process, spawn
from trimtab.systems.local.pods.records import Folder, Record, boot_id, folders, living, started_at


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path, str(uuid.uuid4()))
    made.make()
    return made


def sleeping(folder: Folder, mark: str = "") -> int:
    return spawn(
        ["/bin/sleep", "60"], environment={MARK: mark} if mark else {}, folder=folder.work, log=folder.log("app")
    )


def record_of(pid: int) -> Record:
    return Record(container="app", mark="m", pid=pid, start=started_at(pid), boot=boot_id())


async def test_a_process_is_known_by_its_start_and_not_by_its_number_alone(folder: Folder) -> None:
    process = Process(sleeping(folder))
    record = record_of(process.pid)
    assert living(record) == process.pid
    assert living(msgspec.structs.replace(record, start=record.start - 1)) == 0
    assert living(msgspec.structs.replace(record, boot="another")) == 0
    assert await process.end(5) == 128 + 15
    assert living(record) == 0


async def test_a_process_that_had_ended_before_it_was_recorded_is_nobody(folder: Folder) -> None:
    process = Process(spawn(["/bin/true"], environment={}, folder=folder.work, log=folder.log("app")))
    await process.ended
    record = record_of(process.pid)
    assert record.start == 0
    assert living(record) == 0


async def test_a_process_whose_record_was_not_finished_is_found_by_its_mark(folder: Folder) -> None:
    mark = f"{folder.uid}/app/0"
    process = Process(sleeping(folder, mark))
    while not (Path("/proc") / str(process.pid) / "environ").read_bytes():
        pass  # for a moment after its start the kernel does not show it
    assert living(Record(container="app", mark=mark)) == process.pid
    assert living(Record(container="app", mark=f"{mark}1")) == 0
    await process.end(5)
    assert living(Record(container="app", mark=mark)) == 0


async def test_what_belongs_to_no_pod_is_ended(tmp_path: Path, folder: Folder) -> None:
    kept = Folder(tmp_path, str(uuid.uuid4()))
    kept.make()
    pids = []
    for each in (folder, kept):
        pids.append(sleeping(each))
        each.write(record_of(pids[-1]))
    assert await end_strays(tmp_path, {kept.uid}, AsProcess()) == 1
    assert [alive(pid) for pid in pids] == [False, True]
    assert [each.uid for each in folders(tmp_path)] == [kept.uid]
    await end_all(tmp_path, AsProcess(), 5)
    assert not alive(pids[1])


async def test_a_record_that_is_broken_or_of_another_is_passed_over(folder: Folder) -> None:
    (folder.path / "app.json").write_text('{"container": "app"')
    assert folder.records() == []
    assert folder.read("app") is None
    with pytest.raises(ValueError, match="uid"):
        Folder(folder.path, "../elsewhere")


async def test_an_end_is_told_for_a_process_that_is_not_our_child(folder: Folder) -> None:
    forks = "import os, sys, time\nr, w = os.pipe()\nif os.fork(): os.read(r, 1); sys.exit()\nos.setsid()\n"
    script = f"{forks}open('pid', 'w').write(str(os.getpid()))\nos.write(w, b'x')\ntime.sleep(60)"
    starter = Process(spawn(python(script), environment={}, folder=folder.work, log=folder.log("app")))
    await starter.ended  # the other has left its group by then
    process = Process(int((folder.work / "pid").read_text()))
    assert await process.end(5) == 255


def test_a_long_log_becomes_the_old_part_and_begins_anew(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    with log.open("ab") as output:  # as a process holds it
        output.write(b"x" * 100)
        output.flush()
        assert not rotate(log, 101)
        assert rotate(log, 100)
        output.write(b"new")
        output.flush()
    assert log.read_bytes() == b"new"
    assert (tmp_path / "app.log.1").read_bytes() == b"x" * 100
    assert not rotate(tmp_path / "none.log")


async def test_what_only_the_owner_is_to_read_is_for_nobody_else(folder: Folder) -> None:
    process = Process(sleeping(folder))
    await process.end(5)
    assert folder.log("app").stat().st_mode & 0o077 == 0
    assert folder.path.stat().st_mode & 0o077 == 0


def test_of_a_log_that_grew_too_fast_the_end_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    log.write_bytes(b"x" * 1000 + b"end")
    assert rotate(log, 10)
    assert (tmp_path / "app.log.1").read_bytes() == b"x" * 7 + b"end"
    assert log.read_bytes() == b""


def test_a_log_is_cut_also_when_there_is_no_room_for_its_old_part(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    log.write_bytes(b"x" * 100)
    (tmp_path / "app.log.1").mkdir()  # it cannot be written
    assert rotate(log, 100)
    assert log.read_bytes() == b""

"""The file of the audit log: private, rotated, and no reason to stop."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

from trimtab.server.audit.log import MAX_WAITING, MEGABYTE, AuditLog

_moments = count()


def now() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=next(_moments))


class Told:
    """Takes the place of the program's own log."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def warning(self, event: str, **_: object) -> None:
        self.events.append(event)


@pytest.fixture(autouse=True)
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    told = Told()
    monkeypatch.setattr("trimtab.server.audit.log.log", told)
    return told.events


def test_lines_are_written_in_order_to_a_file_of_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_text("before\n")
    path.chmod(0o644)
    log = AuditLog(str(path), now=now)
    for number in range(100):
        log.append(b"%d\n" % number)
    log.close()
    assert path.read_text() == "before\n" + "".join(f"{n}\n" for n in range(100))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (log.written, log.lost) == (100, 0)


def test_a_file_that_is_full_is_put_aside_and_so_many_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    other = tmp_path / "audit-of-mine.log"
    other.touch()
    log = AuditLog(str(path), max_size=1, max_backups=2, now=now)
    line = b"x" * (MEGABYTE * 6 // 10 - 1) + b"\n"
    for _ in range(5):
        log.append(line)
    log.close()
    kept = sorted(p for p in tmp_path.iterdir() if p not in (path, other))
    assert len(kept) == 2
    assert other.exists()
    for file in (path, *kept):
        assert file.read_bytes() == line
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        AuditLog(str(tmp_path / "link"), now=now)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_loses_events_counts_them_and_warns_once(warnings: list[str]) -> None:
    log = AuditLog("/dev/full", now=now)
    for _ in range(3):
        log.append(b"x\n")
        while log._waiting or log.lost == 0:
            os.sched_yield()
    log.close()
    assert (log.written, log.lost) == (0, 3)
    assert warnings == ["the audit log cannot be written: events are lost"]


def test_after_a_full_disk_lines_are_whole_and_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "audit.log"
    log = AuditLog(str(path), now=now)
    write, fail = os.write, [True]

    def half(file: int, data: memoryview) -> int:
        if file != log._file:
            return write(file, data)
        if fail and len(data) > 10:
            return write(file, data[:10])
        if fail:
            fail.clear()
            raise OSError(28, "No space left on device")
        return write(file, data)

    monkeypatch.setattr("trimtab.server.audit.log.os.write", half)
    log.append(b"lost lost lost\n")
    while not log.lost:
        os.sched_yield()
    log.append(b"kept\n")
    log.close()
    assert path.read_text() == "kept\n"
    assert (log.written, log.lost) == (1, 1)


def test_a_disk_that_does_not_answer_costs_no_more_than_so_much_memory(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    log = AuditLog(str(fifo), now=now)
    line = b"x" * (8 * MEGABYTE)
    for _ in range(20):
        log.append(line)
    assert log.lost >= 20 - 1 - MAX_WAITING // len(line)
    os.close(reader)
    log.close()

"""What is special to blobs in a folder: crashes, modes, links."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trimtab.storage.blobs import CHUNK, BlobMissing, BlobsUnavailable, Collected, digest_of, read
from trimtab.storage.folder import FolderBlobs
from trimtab.testing.clock import FakeClock

CONTENT = bytes(2 * CHUNK) + b"the end"
DIGEST = digest_of(CONTENT)


@pytest.fixture
def blobs(tmp_path: Path) -> FolderBlobs:
    return FolderBlobs(tmp_path / "blobs", clock=FakeClock())


def files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


def fails_at(monkeypatch: pytest.MonkeyPatch, name: str, call: int) -> None:
    """Lets the given call of a function of `os` fail, as a full disk does."""
    real: Callable[..., Any] = getattr(os, name)
    calls = iter(range(1, 1000))

    def failing(*args: Any, **kwargs: Any) -> Any:
        if next(calls) == call:
            raise OSError(28, "No space left on device")
        return real(*args, **kwargs)

    monkeypatch.setattr(os, name, failing)


@pytest.mark.parametrize(("name", "call"), [("fsync", n) for n in range(1, 9)] + [("rename", 1), ("utime", 1)])
async def test_a_put_that_fails_at_any_step_leaves_the_whole_blob_or_nothing(
    blobs: FolderBlobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, call: int
) -> None:
    with monkeypatch.context() as patched:
        fails_at(patched, name, call)
        try:
            await blobs.put(CONTENT)
        except BlobsUnavailable:
            pass
        else:
            assert call > 1, "nothing failed"
    try:
        assert await read(blobs, DIGEST, max_bytes=len(CONTENT)) == CONTENT
    except BlobMissing:
        assert files(tmp_path) == []
    assert await blobs.put(CONTENT) == DIGEST


async def test_a_disk_that_is_full_is_said_and_nothing_is_left(blobs: FolderBlobs, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (CHUNK // 2, hard))
    try:
        with pytest.raises(BlobsUnavailable, match="cannot be kept on this machine"):
            await blobs.put(CONTENT)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert files(tmp_path) == []


@pytest.mark.parametrize("call", range(1, 8))
async def test_a_pin_that_fails_at_any_step_can_be_made_and_undone(
    blobs: FolderBlobs, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    digest = await blobs.put(b"x")
    with monkeypatch.context() as patched:
        fails_at(patched, "fsync", call)
        with contextlib.suppress(BlobsUnavailable):
            await blobs.pin(digest, "owner")
    await blobs.pin(digest, "owner")
    assert (await blobs.collect(grace=0)).count == 0
    await blobs.unpin("owner")
    assert (await blobs.collect(grace=0)).count == 1


WRITER = """
import asyncio, os, sys
from pathlib import Path
from trimtab.storage import folder

async def main():
    blobs = folder.FolderBlobs(Path(sys.argv[1]))
    content = bytes(2 << 20) + b"the end"
    name, call = sys.argv[2], int(sys.argv[3])
    if name == "source":
        async def pieces():
            yield content[: 1 << 20]
            yield content[1 << 20 :]
            kill()
        await blobs.put(pieces())
    calls = 0
    real = getattr(os, name)
    def stopped(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == call:
            kill()
        return real(*args, **kwargs)
    setattr(os, name, stopped)
    await blobs.put(content, media_type="text/plain")

def kill():
    print("now", flush=True)
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("name", "call"), [("source", 1), *(("fsync", call) for call in (3, 5, 6, 7, 8)), ("rename", 1), ("rename", 2)]
)
async def test_a_writer_that_is_killed_leaves_the_whole_blob_or_what_a_collection_removes(
    blobs: FolderBlobs, tmp_path: Path, name: str, call: int
) -> None:
    root = tmp_path / "blobs"
    command = [sys.executable, "-c", WRITER, str(root), name, str(call)]
    killed = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert (killed.returncode, killed.stdout) == (-signal.SIGKILL, "now\n"), killed.stderr
    assert await blobs.collect(grace=3600) == Collected(0, 0)
    try:
        assert await read(blobs, DIGEST, max_bytes=len(CONTENT)) == CONTENT
        assert len(files(root)) == 2, "the bytes and their type"
    except BlobMissing:
        assert files(root) == []
    await blobs.put(CONTENT)
    assert await read(blobs, DIGEST, max_bytes=len(CONTENT)) == CONTENT


async def test_a_collection_leaves_a_living_writer_alone(blobs: FolderBlobs) -> None:
    async def pieces() -> Any:
        yield b"first"
        await blobs.collect(grace=0)
        yield b"second"

    digest = await blobs.put(pieces())
    assert await read(blobs, digest, max_bytes=100) == b"firstsecond"


async def test_only_the_owner_of_the_files_can_read_them(blobs: FolderBlobs, tmp_path: Path) -> None:
    await blobs.pin(await blobs.put(b"secret", media_type="text/plain"), "owner")
    for path in (tmp_path / "blobs", *(tmp_path / "blobs").rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


async def test_a_symbolic_link_in_place_of_a_blob_is_not_followed(blobs: FolderBlobs, tmp_path: Path) -> None:
    digest = await blobs.put(b"mine")
    (tmp_path / "elsewhere").write_bytes(b"mine")
    path = tmp_path / "blobs" / "sha256" / digest[7:9] / digest[7:]
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BlobsUnavailable, match="symbolic link"):
        await read(blobs, digest, max_bytes=10)


async def test_a_symbolic_link_in_place_of_a_shard_is_not_followed(blobs: FolderBlobs, tmp_path: Path) -> None:
    await blobs.ready()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "blobs" / "sha256" / digest_of(b"mine")[7:9]).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BlobsUnavailable, match="no folder"):
        await blobs.put(b"mine")
    assert files(tmp_path / "elsewhere") == []


async def test_nothing_is_left_of_an_owner_that_let_go(blobs: FolderBlobs, tmp_path: Path) -> None:
    await blobs.pin(await blobs.put(b"x", media_type="text/plain"), "owner")
    await blobs.unpin("owner")
    await blobs.collect(grace=0)
    assert files(tmp_path) == []
    assert list((tmp_path / "blobs" / "owners").iterdir()) == []


async def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BlobsUnavailable, match="cannot be used"):
        await FolderBlobs(tmp_path / "file" / "blobs").ready()


WORKER = """
import asyncio, random, sys
from pathlib import Path
from trimtab.storage.blobs import BlobMissing, digest_of, read
from trimtab.storage.folder import FolderBlobs

async def main():
    root, name = Path(sys.argv[1]), sys.argv[2]
    blobs, chance = FolderBlobs(root), random.Random(name)
    for turn in range(60):
        content = b"content %d" % chance.randrange(6)
        owner = f"{name}/{chance.randrange(3)}"
        await blobs.put(content, media_type="text/plain")
        await blobs.pin(digest_of(content), owner)
        await blobs.collect(grace=30 if turn % 2 else 3600)
        assert await read(blobs, digest_of(content), max_bytes=100) == content
        await blobs.unpin(owner)
        try:
            await blobs.pin(digest_of(b"content %d" % chance.randrange(6)), owner)
        except BlobMissing:
            pass

asyncio.run(main())
"""


async def test_several_processes_put_pin_and_collect_in_one_folder(tmp_path: Path) -> None:
    root = tmp_path / "blobs"
    command = [sys.executable, "-c", WORKER, str(root)]
    workers = [await asyncio.create_subprocess_exec(*command, name, stderr=subprocess.PIPE) for name in "abc"]
    for worker in workers:
        _, errors = await worker.communicate()
        assert worker.returncode == 0, errors.decode()
    blobs = FolderBlobs(root)
    for name in "abc":
        for number in range(3):
            await blobs.unpin(f"{name}/{number}")
    await blobs.collect(grace=-1)
    assert files(root) == []

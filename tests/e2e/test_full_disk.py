"""A server on a real disk that is full, and then has room again; and one that cannot write at all."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.raw import Raw
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.processes import PeerFailed

pytestmark = pytest.mark.slow

MAPS = "/api/v1/namespaces/default/configmaps"
MEBIBYTE = 1024 * 1024
ALONE = ("--systems", "none")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 12 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("only root may mount a small disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(admin: Raw, acknowledged: set[str]) -> dict[str, str]:
    """Write until not even little is taken; returns the refusal."""
    size = 200_000
    for number in range(400):
        answer = admin("POST", MAPS, {"metadata": {"name": f"m-{number}"}, "data": {"text": "x" * size}})
        if answer.code == 201:
            acknowledged.add(f"m-{number}")
        elif size == 0:
            refusal: dict[str, str] = answer.json()
            return refusal
        else:
            size = 20_000 if size == 200_000 else 0
    raise AssertionError("the disk never became full")


def names(admin: Raw) -> set[str]:
    return {item["metadata"]["name"] for item in admin("GET", MAPS).json()["items"]} - {"kube-root-ca.crt"}


def within(seconds: float, ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline, "it did not come back by itself"
        time.sleep(0.05)


def test_a_full_disk_is_said_and_reads_go_on_and_room_is_enough_to_recover(small_disk: Path) -> None:
    acknowledged: set[str] = set()
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(4 * MEBIBYTE))
    with TrimtabServer(small_disk, flags=ALONE) as server:
        admin = Raw(server, admin=True)
        refusal = fill(admin, acknowledged)
        assert (refusal["code"], refusal["reason"]) == (507, "InsufficientStorage")
        assert "disk of the server is full" in refusal["message"]
        ready = admin("GET", "/readyz")
        assert ready.code == 500
        assert b"[-]store failed: the disk does not take writes: database or disk is full" in ready.body
        assert admin("GET", "/livez").code == 200
        assert names(admin) == acknowledged

        ballast.unlink()
        within(20, lambda: admin("GET", "/readyz").code == 200)
        assert admin("POST", MAPS, {"metadata": {"name": "after"}}).code == 201
        assert names(admin) == {*acknowledged, "after"}
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    with TrimtabServer(small_disk, flags=ALONE) as server:
        assert names(Raw(server, admin=True)) == {*acknowledged, "after"}


def test_a_server_that_was_killed_on_a_full_disk_loses_nothing(small_disk: Path) -> None:
    acknowledged: set[str] = set()
    server = TrimtabServer(small_disk, flags=ALONE)
    fill(Raw(server, admin=True), acknowledged)
    server.kill()
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    with TrimtabServer(small_disk, flags=ALONE) as server:
        assert names(Raw(server, admin=True)) == acknowledged


def test_files_that_may_not_grow_are_an_error_that_ends_when_they_may(tmp_path: Path) -> None:
    """As a quota does it; nobody needs to be root for this."""
    acknowledged: set[str] = set()
    with TrimtabServer(tmp_path, flags=ALONE) as server:
        admin, pid = Raw(server, admin=True), server.pids["server"]
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (6 * MEBIBYTE, hard))
        refusal = fill(admin, acknowledged)
        assert refusal["code"] in (500, 507)
        assert "disk of the server" in refusal["message"]
        assert admin("GET", "/readyz").code == 500
        assert names(admin) == acknowledged
        assert admin("GET", "/livez").code == 200
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
        within(20, lambda: admin("GET", "/readyz").code == 200)
        assert admin("POST", MAPS, {"metadata": {"name": "after"}}).code == 201
        assert names(admin) == {*acknowledged, "after"}


def test_a_read_only_disk_is_said_at_the_start(small_disk: Path, tmp_path: Path) -> None:
    with TrimtabServer(small_disk, flags=ALONE):
        pass
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    (tmp_path / "logs").mkdir()
    os.symlink(small_disk / "data", tmp_path / "logs" / "data")
    with pytest.raises(PeerFailed, match="Read-only file system"):
        TrimtabServer(tmp_path / "logs", flags=ALONE)

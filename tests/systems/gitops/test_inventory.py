"""What was synced is kept in shards, of which a change rewrites one."""

from __future__ import annotations

import gc
import time
import zlib
from pathlib import Path

import pytest

from trimtab.model.hub import HubMeta
from trimtab.storage.folder import FolderBlobs
from trimtab.systems.gitops import keeping
from trimtab.systems.gitops.inventory import SHARDS, Entry, Inventory, InventoryError, shard_of
from trimtab.systems.gitops.keeping import Kept
from trimtab.systems.gitops.kinds import GitSync, GitSyncSpec, GitSyncStatus, InventorySummary
from trimtab.systems.gitops.merging import Base
from trimtab.systems.gitops.parsing import Identity


def entry(number: int, replicas: int = 1) -> Entry:
    identity = Identity("apps", "Deployment", "shop", f"web-{number}")
    git = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": identity.name, "namespace": "shop", "labels": {"app": "web"}},
        "spec": {"replicas": replicas, "containers": [{"name": "web", "image": "nginx", "ports": [80, 443]}]},
    }
    live = {**git, "spec": {**git["spec"], "strategy": "RollingUpdate", "paused": False}}  # type: ignore[dict-item]
    return Entry(identity, "apps/v1", f"uid-{number}", f"shop/{number}.yaml", 0, "ab" * 32, Base(git, live))


def packed(inventory: Inventory) -> dict[int, bytes]:
    return {number: data for number in range(SHARDS) if (data := inventory.pack(number))}


def test_what_is_kept_comes_back() -> None:
    inventory = Inventory(entry(n) for n in range(200))
    loaded = Inventory.load(packed(inventory))
    assert len(loaded) == 200
    assert sorted(loaded.mapping()) == sorted(inventory.mapping())
    assert loaded.mapping() == inventory.mapping()
    assert loaded.changed_shards == ()


def test_one_change_is_one_shard() -> None:
    inventory = Inventory.load(packed(Inventory(entry(n) for n in range(200))))
    before = packed(inventory)
    inventory.put(entry(7))
    assert inventory.changed_shards == ()  # it says what it said
    inventory.put(entry(7, replicas=2))
    assert inventory.changed_shards == (shard_of(entry(7).identity),)
    after = packed(inventory)
    assert [n for n in range(SHARDS) if before.get(n) != after.get(n)] == list(inventory.changed_shards)
    inventory.saved()
    inventory.remove(entry(7).identity)
    inventory.remove(entry(7).identity)
    assert inventory.changed_shards == (shard_of(entry(7).identity),)
    assert entry(7).identity not in inventory
    assert entry(8).identity in inventory


def test_the_same_entries_are_the_same_bytes() -> None:
    one = Inventory(entry(n) for n in range(50))
    other = Inventory(entry(n) for n in reversed(range(50)))
    assert packed(one) == packed(other)


def test_an_empty_shard_is_nothing() -> None:
    assert Inventory().pack(0) == b""
    assert list(Inventory.load({0: b""})) == []


@pytest.mark.parametrize("data", [b"x", zlib.compress(b"x"), zlib.compress(b"\x93")[:-1], zlib.compress(b"\xc0")])
def test_a_shard_that_cannot_be_read_is_told(data: bytes) -> None:
    inventory = Inventory.load({0: data})
    for _ in range(2):  # it is not empty the second time, either
        with pytest.raises(InventoryError, match="shard"):
            list(inventory)


def test_five_thousand_entries_are_loaded_and_one_is_changed_quickly() -> None:
    shards = packed(Inventory(entry(n) for n in range(5000)))
    gc.collect()
    begun = time.process_time()
    inventory = Inventory.load(shards)
    inventory.put(entry(7, replicas=2))
    for number in inventory.changed_shards:
        inventory.pack(number)
    one = time.process_time() - begun
    begun = time.process_time()
    assert len(Inventory.load(shards).mapping()) == 5000
    whole = time.process_time() - begun
    print(f"one of 5,000 entries changed in {one * 1000:.1f} ms; all read in {whole * 1000:.0f} ms")
    assert one < 0.05
    assert whole < 1.0


async def test_what_was_exported_is_kept_apart_and_for_one_destination(tmp_path: Path) -> None:
    blobs = FolderBlobs(tmp_path)
    await blobs.ready()
    sync = GitSync(metadata=HubMeta(name="fleet", namespace="shop", uid="1"), spec=GitSyncSpec(repository="team"))
    kept = await Kept.load(blobs, sync)
    kept.export_to("mirror main ")
    kept.inventory.put(entry(1))
    for number in range(2, 40):
        kept.exports.put(entry(number))
    summary = await kept.save("")
    assert summary.count == 1
    loaded = await Kept.load(blobs, sync.replace(status=GitSyncStatus(inventory=summary)))
    loaded.export_to("mirror main ")
    assert [found.identity.name for found in loaded.inventory] == ["web-1"]
    assert loaded.exports.mapping() == kept.exports.mapping()
    loaded.export_to("mirror drift ")
    summary = await loaded.intend([])  # and then it is cut off
    again = await Kept.load(blobs, sync.replace(status=GitSyncStatus(inventory=summary)))
    assert (again.destination, len(again.inventory), len(again.exports)) == ("mirror drift ", 1, 0)


async def test_shards_that_are_too_much_for_one_blob_have_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "MAX_SHARD", 4096)
    blobs = FolderBlobs(tmp_path)
    await blobs.ready()
    sync = GitSync(metadata=HubMeta(name="fleet", namespace="shop", uid="1"), spec=GitSyncSpec(repository="team"))
    kept = await Kept.load(blobs, sync)
    for number in range(200):
        kept.inventory.put(entry(number))
    summary = await kept.save("commit")
    loaded = await Kept.load(blobs, sync.replace(status=GitSyncStatus(inventory=summary)))
    assert len(loaded.inventory) == 200


async def test_what_was_pushed_or_meant_before_is_known_after_the_next_intent(tmp_path: Path) -> None:
    blobs = FolderBlobs(tmp_path)
    await blobs.ready()
    sync = GitSync(metadata=HubMeta(name="fleet", namespace="shop", uid="1"), spec=GitSyncSpec(repository="team"))

    async def cut_off(summary: InventorySummary) -> Kept:
        return await Kept.load(blobs, sync.replace(status=GitSyncStatus(inventory=summary)))

    kept = await Kept.load(blobs, sync)
    kept.inventory.put(entry(1))
    kept = await cut_off(await kept.save("commit"))
    after = kept.inventory.copy()
    after.put(entry(1, replicas=2))
    kept = await cut_off(await kept.expect("ours", after))
    await kept.arrived()
    kept = await cut_off(await kept.intend([entry(2)]))
    kept = await cut_off(await kept.intend([entry(3)]))
    assert kept.inventory.get(entry(1).identity) == entry(1, replicas=2)
    assert sorted(found.identity.name for found in kept.inventory) == ["web-1", "web-2", "web-3"]
    after = kept.inventory.copy()
    after.put(entry(1, replicas=3))
    await kept.expect("ours", after)
    kept.pushed(after)
    kept = await cut_off(await kept.intend([entry(4)]))
    assert kept.inventory.get(entry(1).identity) == entry(1, replicas=3)

"""Whose an object is, whether it keeps a lineage or not: of the sync that has it in its inventory, or is about to.

Runs of several syncs go on at once in one process, so a run claims what it may make while it asks whose that is: nothing is
awaited between the two. An inventory that no run of this process has read (its sync is suspended, or its turn has not come)
is read from where it is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from trimtab.client.protocol import Client, Query
from trimtab.model.errors import StatusError
from trimtab.storage.blobs import BlobDamaged, BlobMissing, Blobs
from trimtab.systems.gitops.acting import account_of
from trimtab.systems.gitops.inventory import Inventory, InventoryError
from trimtab.systems.gitops.keeping import Kept
from trimtab.systems.gitops.kinds import GitSync
from trimtab.systems.gitops.parsing import Identity


class Claims:
    """Of one process. `at_work` is the inventory that runs of a GitSync work with; None when none has read it."""

    def __init__(self, client: Client, blobs: Blobs, at_work: Callable[[GitSync], Kept | None]) -> None:
        self._client, self._blobs, self._at_work = client, blobs, at_work
        self._read: dict[str, tuple[str, Inventory]] = {}  # uid → digest, and what it named
        self._claimed: dict[Identity, tuple[str, str]] = {}  # uid and name of the sync whose run may make it

    async def owners(
        self, sync: GitSync, wanted: Collection[Identity], held: Collection[Identity] = ()
    ) -> dict[Identity, str]:
        """Which other syncs (`namespace/name`) have these objects. What is `wanted` and nobody's is claimed, until `release`;
        what is `held` is only asked about. BlobsUnavailable."""
        if not wanted and not held:
            return {}
        others = await self._others(sync)
        uid, found = str(sync.metadata.uid), {}
        for identity in (*wanted, *held):
            claimed = self._claimed.get(identity)
            if claimed is not None and claimed[0] != uid:
                found[identity] = claimed[1]
                continue
            owner = next((name for name, inventory in others if identity in inventory), "")
            if owner:
                found[identity] = owner
        name = f"{sync.namespace}/{sync.name}"
        self._claimed.update((identity, (uid, name)) for identity in wanted if identity not in found)
        return found

    def release(self, sync: GitSync) -> None:
        """The run has ended: its inventory tells what it has."""
        uid = str(sync.metadata.uid)
        self._claimed = {identity: claim for identity, claim in self._claimed.items() if claim[0] != uid}

    async def _others(self, sync: GitSync) -> list[tuple[str, Inventory]]:
        """The inventories of all other syncs that may have the same objects: of this namespace, or with an account."""
        found = []
        for other in await self._syncs(sync):
            apart = other.namespace != sync.namespace and not (account_of(other) or account_of(sync))
            if apart or other.metadata.uid == sync.metadata.uid:
                continue
            inventory = await self._inventory(other)
            if inventory is not None:
                found.append((f"{other.namespace}/{other.name}", inventory))
        return found

    async def _syncs(self, sync: GitSync) -> list[GitSync]:
        try:
            listing = await self._client.list(GitSync, Query())
        except StatusError as error:
            if error.code != 403:
                raise
            listing = await self._client.list(GitSync, Query(namespace=sync.namespace))  # all that we may see
        return list(listing.items)

    async def _inventory(self, sync: GitSync) -> Inventory | None:
        """None when it has none, or what it had is lost: its own condition says so."""
        kept = self._at_work(sync)
        if kept is not None:
            return kept.inventory
        uid, summary = str(sync.metadata.uid), sync.status.inventory if sync.status else None
        if not summary:
            self._read.pop(uid, None)
            return None
        known = self._read.get(uid)
        if known is None or known[0] != summary.digest:
            try:
                inventory = (await Kept.read(self._blobs, sync)).inventory
                inventory.mapping()  # all of it can be read
            except (BlobMissing, BlobDamaged, InventoryError):
                return None
            known = self._read[uid] = summary.digest, inventory
        return known[1]

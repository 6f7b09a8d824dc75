"""What is kept of runs, and for how long: history, records, snapshots and copies of configs."""

from __future__ import annotations

import pytest

from tests.systems.delivery.stage import Stage
from tests.systems.delivery.test_triggers import _deployment_reading, at_ten, condition_reason, config, reads
from trimtab.client.protocol import Query, Ref
from trimtab.model.kubernetes import ConfigMap, ControllerRevision
from trimtab.storage.blobs import BlobError, Digest
from trimtab.systems.delivery.revisions.snapshots import name_of


async def test_the_history_and_what_belongs_to_it_are_bounded(here: Stage) -> None:
    async with here.working():
        await here.stable(revisionHistoryLimit=3, analysis={"stepWeights": [50]})
        records = []
        for number in range(2, 14):
            changed = await here.image(f"web:{number}")
            canary = await here.until(
                lambda s, seen=changed.metadata.generation: (
                    s.phase == "Stable" and s.observed_generation == seen and s.stable_revision == s.target_revision
                )
            )
            records.append(canary.status.history[0].details)
        await here.quiet()
    assert len(canary.status.history) == 10
    assert len(canary.status.earlier_revisions) == 10
    await here.blobs.collect(grace=0.0)
    kept = {Digest(run.details) for run in canary.status.history}
    for digest in kept:
        await here.blobs.stat(digest)
    gone = [each for each in map(Digest, records) if each not in kept]
    assert len(gone) == 2
    for digest in gone:
        with pytest.raises(BlobError):
            await here.blobs.stat(digest)
    revisions = (await here.client.list(ControllerRevision, Query(namespace=here.namespace))).items
    known = {canary.status.stable_revision, *canary.status.earlier_revisions}
    assert {each.data["revision"] for each in revisions} == known


async def test_a_snapshot_of_stable_that_is_deleted_is_made_again(here: Stage) -> None:
    async with here.working():
        canary = await here.stable()
        name = name_of("web", canary.status.stable_revision)
        before = await here.client.get(ControllerRevision, name, here.namespace)
        await here.client.delete(Ref(ControllerRevision, name, here.namespace))
        await here.until_object(ControllerRevision, name, lambda r: r.metadata.uid != before.metadata.uid)


async def test_a_run_whose_stable_snapshot_is_deleted_says_so_and_goes_on_when_the_spec_goes_back(here: Stage) -> None:
    async with here.working():
        canary = await here.stable()
        await here.image("web:2")
        await here.until(at_ten)
        await here.client.delete(Ref(ControllerRevision, name_of("web", canary.status.stable_revision), here.namespace))
        await here.until(lambda s: condition_reason(s, "Ready") == "SnapshotMissing")
        assert await here.weight() == 10
        await here.image("web:1")
        await here.ended("Cancelled")
        await here.until(lambda s: condition_reason(s, "Ready") == "Stable")


async def test_a_copy_of_a_config_that_is_deleted_is_made_again(here: Stage) -> None:
    await config(here, "red")
    async with here.working():
        await here.stable(deployment=_deployment_reading("ConfigMap"))
        name = await reads(here, "web")
        before = await here.client.get(ConfigMap, name, here.namespace)
        await here.client.delete(Ref(ConfigMap, name, here.namespace))
        after = await here.until_object(ConfigMap, name, lambda c: c.metadata.uid != before.metadata.uid)
    assert (after.data, after.immutable) == ({"color": "red"}, True)

"""What is kept as long as it may be needed, and no longer: snapshots of revisions, and records of runs."""

from __future__ import annotations

from tests.systems.delivery.stage import Stage
from tests.systems.delivery.test_triggers import at_ten
from trimtab.client.protocol import Query
from trimtab.model.kubernetes import ControllerRevision
from trimtab.runtime.runs import Run
from trimtab.runtime.status import write_status
from trimtab.storage.blobs import BlobMissing, Digest
from trimtab.systems.delivery.checking import pin_of
from trimtab.systems.delivery.kinds import CanaryDeployment


async def kept(stage: Stage, digest: str) -> bool:
    await stage.blobs.collect(grace=-60)
    try:
        await stage.blobs.stat(Digest(digest))
    except BlobMissing:
        return False
    return True


async def test_what_was_stable_before_is_kept_however_short_the_history_is(here: Stage) -> None:
    async with here.working():
        await here.stable(analysis=None, revisionHistoryLimit=1, rollbackWindow=2)
        for runs, image in enumerate(("web:2", "web:3"), 1):
            await here.image(image)
            canary = await here.ended("Succeeded", runs=runs)
        await here.quiet()
        found = (await here.client.list(ControllerRevision, Query(namespace=here.namespace))).items
    status = canary.status
    assert len(status.earlier_revisions) == 2
    assert {each.data["revision"] for each in found} == {status.stable_revision, *status.earlier_revisions}


async def test_the_record_of_a_run_is_let_go_with_its_place_in_the_history(here: Stage) -> None:
    async with here.working():
        canary = await here.stable()
    records = []
    for number in range(10):
        records.append(await here.blobs.put(b"record %d" % number))
        await here.blobs.pin(records[-1], pin_of(canary, f"old-{number}"))
    old = tuple(
        Run(id=f"old-{number}", trigger="Revision", started="2026-01-01T00:00:00Z", outcome="Succeeded")
        for number in range(10)
    )
    canary = await here.get()
    await write_status(here.client, canary, canary.status.replace(history=old))
    async with here.working():
        await here.image("web:2")
        canary = await here.until(lambda status: status.run and status.run.checks)
        first = canary.status.run.record
        canary = await here.ended("Succeeded")
        last = canary.status.history[0].details
        assert [await kept(here, each) for each in records] == [True] * 9 + [False]
        assert first != last
        assert [await kept(here, first), await kept(here, last)] == [False, True]
        await here.delete()
        await here.until_gone(CanaryDeployment)
        assert not any([await kept(here, each) for each in (*records, last)])


async def test_the_record_of_a_run_that_goes_on_is_let_go_with_its_canary(here: Stage) -> None:
    async with here.working():
        await here.stable()
        await here.image("web:2")
        await here.until(at_ten)
        canary = await here.until(lambda status: status.run and status.run.checks)
        assert await kept(here, canary.status.run.record)
        await here.delete()
        await here.until_gone(CanaryDeployment)
        assert not await kept(here, canary.status.run.record)

"""The controller of VEX sources, on both servers."""

from __future__ import annotations

import pytest

from tests.runtime.widgets import until_gone
from tests.systems.images.scan_kit import Desk, desk, openvex
from trimtab.client.protocol import Ref
from trimtab.model.clock import format_time
from trimtab.model.conditions import get_condition
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.storage.blobs import BlobMissing
from trimtab.systems.images.kinds import ConfigMapRef, VEXSource
from trimtab.systems.images.vex_controller import LOOK_EVERY

__all__ = ["desk"]


def reason(source: VEXSource) -> str:
    found = get_condition(source.status.conditions, "Ready") if source.status else None
    return f"{found.status}/{found.reason}" if found else ""


async def test_a_source_says_what_was_read_of_it(desk: Desk) -> None:
    async with desk.working():
        await desk.vex("ours", inline=openvex())
        source = await desk.until(VEXSource, "ours", lambda source: reason(source) == "True/Read")
        assert (source.status.documents, source.status.statements) == (1, 1)
        await desk.change(VEXSource, "ours", enabled=False)
        await desk.until(VEXSource, "ours", lambda source: reason(source) == "True/Disabled")


async def test_a_source_that_cannot_be_read_says_why(desk: Desk) -> None:
    async with desk.working():
        await desk.vex("ours", inline="no document")
        source = await desk.until(VEXSource, "ours", lambda source: reason(source) == "False/Unreadable")
        assert source.status.statements == 0


async def test_statements_that_were_left_out_are_named(desk: Desk) -> None:
    async with desk.working():
        await desk.vex("ours", inline=openvex(status="perhaps"))
        source = await desk.until(VEXSource, "ours", lambda source: reason(source) == "True/PartlyRead")
        assert "perhaps" in source.status.skipped[0]


async def test_a_config_map_that_changes_is_noticed(desk: Desk) -> None:
    metadata = ObjectMeta(name="statements", namespace=desk.namespace)
    held = await desk.client.create(ConfigMap(metadata=metadata, data={"a": openvex()}))
    async with desk.working():
        await desk.vex("ours", config_map=ConfigMapRef(name="statements"))
        first = await desk.until(VEXSource, "ours", lambda source: reason(source) == "True/Read")
        await desk.client.patch(held, held.replace(data={"a": openvex("CVE-2026-2")}))
        await desk.until_waiting(LOOK_EVERY)
        await desk.clock.advance(LOOK_EVERY)
        later = await desk.until(VEXSource, "ours", lambda source: source.status.read_at != first.status.read_at)
        assert later.status.read_at == format_time(desk.clock.now())


async def test_the_blob_of_a_source_stays_until_the_source_goes(desk: Desk) -> None:
    blob = await desk.blobs.put(openvex().encode())
    async with desk.working():
        await desk.vex("ours", blob=blob)
        await desk.until(VEXSource, "ours", lambda source: reason(source) == "True/Read")
        await desk.blobs.collect(grace=0)
        assert await desk.blobs.stat(blob)
        await desk.client.delete(Ref(VEXSource, "ours", desk.namespace))
        await until_gone(desk.client, VEXSource, "ours", desk.namespace)
    await desk.blobs.collect(grace=0)
    with pytest.raises(BlobMissing):
        await desk.blobs.stat(blob)

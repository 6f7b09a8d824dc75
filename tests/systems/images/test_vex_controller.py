"""The controller of VEX sources, on both servers."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from tests.runtime.widgets import until_gone
from tests.systems.images.scan_kit import Desk, desk, openvex
from trimtab.client.protocol import Ref
from trimtab.model.clock import format_time
from trimtab.model.conditions import get_condition
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.storage.blobs import BlobMissing, Digest
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


async def test_a_source_that_names_another_blob_and_then_none_holds_only_what_it_names(desk: Desk) -> None:
    first, second = [await desk.blobs.put(openvex(name).encode()) for name in ("CVE-2026-1", "CVE-2026-2")]
    metadata = ObjectMeta(name="statements", namespace=desk.namespace)
    await desk.client.create(ConfigMap(metadata=metadata, data={"a": openvex("CVE-2026-3")}))

    async def held() -> list[bool]:
        found = await desk.client.get(VEXSource, "ours", desk.namespace)
        await desk.until(VEXSource, "ours", lambda s: observed(s) == found.metadata.generation)
        await desk.blobs.collect(grace=0)
        return [await is_there(desk, blob) for blob in (first, second)]

    async with desk.working():
        await desk.vex("ours", blob=first)
        await desk.until(VEXSource, "ours", lambda source: reason(source) == "True/Read")
        await desk.change(VEXSource, "ours", blob=second)
        assert await held() == [False, True]
        await desk.change(VEXSource, "ours", blob=UNSET, config_map=ConfigMapRef(name="statements"))
        assert await held() == [False, False]


def observed(source: VEXSource) -> int | None:
    found = get_condition(source.status.conditions, "Ready") if source.status else None
    return found.observed_generation or None if found else None


async def is_there(desk: Desk, blob: Digest) -> bool:
    try:
        await desk.blobs.stat(blob)
    except BlobMissing:
        return False
    return True


async def test_a_source_that_takes_too_much_says_so(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimtab.systems.images.vex_sources.MEMORY", 128 << 20)
    empty = ",".join(["{}"] * 2_000_000)
    many = f'{{"@context":"https://openvex.dev/ns/v0.2.0","@id":"urn:many","statements":[{empty}]}}'
    blob = await desk.blobs.put(many.encode())
    async with desk.working():
        await desk.vex("ours", blob=blob)
        source = await desk.until(VEXSource, "ours", lambda source: reason(source) == "False/Unreadable")
    ready = get_condition(source.status.conditions, "Ready")
    assert ready
    assert "memory" in ready.message

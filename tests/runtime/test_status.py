"""Status is written only when it changed, and only where it was judged."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from tests.runtime.gadgets import Gadget, GadgetSpec, GadgetStatus, define
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Named
from trimtab.model.clock import SystemClock
from trimtab.model.conditions import is_true
from trimtab.model.errors import StatusError
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Untyped
from trimtab.runtime.objects import with_metadata
from trimtab.runtime.status import condition, ready, write_status
from trimtab.testing.clock import FakeClock


@pytest.fixture
async def gadget(client: ApiClient, namespace: str) -> Gadget:
    await define(client)
    return await client.create(Gadget(metadata=ObjectMeta(name="g", namespace=namespace), spec=GadgetSpec(size=2)))


async def test_a_status_is_written_and_the_spec_left_alone(client: ApiClient, gadget: Gadget) -> None:
    written = await write_status(client, gadget, GadgetStatus(seen=2))
    assert written.status == GadgetStatus(seen=2)
    assert written.spec.size == 2
    assert written.metadata.generation == gadget.metadata.generation


async def test_the_same_status_is_not_written_again(client: ApiClient, gadget: Gadget) -> None:
    conditions = ready(UNSET, SystemClock(), gadget.metadata.generation, True, "AllGood")
    written = await write_status(client, gadget, GadgetStatus(seen=2, conditions=conditions))
    again = await write_status(client, written, GadgetStatus(seen=2, conditions=conditions))
    assert again is written
    now = await client.get(Gadget, "g", gadget.namespace)
    assert now.metadata.resource_version == written.metadata.resource_version


async def test_a_conflict_over_metadata_is_survived(client: ApiClient, gadget: Gadget) -> None:
    await client.patch(gadget, with_metadata(gadget, labels={"a": "b"}))
    written = await write_status(client, gadget, GadgetStatus(seen=2))
    assert written.status == GadgetStatus(seen=2)
    assert written.metadata.labels == {"a": "b"}


async def test_a_verdict_on_an_older_spec_is_not_written(client: ApiClient, gadget: Gadget) -> None:
    await client.patch(gadget, gadget.replace(spec=GadgetSpec(size=3)))
    with pytest.raises(StatusError) as refused:
        await write_status(client, gadget, GadgetStatus(seen=2))
    assert refused.value.code == 409
    assert (await client.get(Gadget, "g", gadget.namespace)).status is UNSET


async def test_the_status_of_another_writer_is_not_overwritten(client: ApiClient, gadget: Gadget) -> None:
    await client.patch(gadget, gadget.replace(status=GadgetStatus(seen=1)), subresource="status")
    with pytest.raises(StatusError) as refused:
        await write_status(client, gadget, GadgetStatus(seen=2))
    assert refused.value.code == 409


async def test_an_untyped_object_has_its_status_written(client: ApiClient, gadget: Gadget) -> None:
    untyped = Untyped(dict(gadget.raw or {}))
    written = await write_status(client, untyped, {"seen": 5})
    assert written.status == GadgetStatus(seen=5)
    assert Named(untyped.api_version, untyped.kind) == Named("writes.test.trimtab.dev/v1", "Gadget")


async def test_the_longest_message_and_reason_are_taken_by_the_server(client: ApiClient, gadget: Gadget) -> None:
    conditions = ready(UNSET, SystemClock(), 1, False, "A" * 1024, "ü" * 40000)
    written = await write_status(client, gadget, GadgetStatus(conditions=conditions))
    assert isinstance(written.status, GadgetStatus)
    assert written.status.conditions == conditions
    assert len(conditions[0].message) == 32768


async def test_ready_moves_its_time_only_when_the_truth_does() -> None:
    clock = FakeClock()
    first = ready(UNSET, clock, 1, False, "Waiting", "for a lease")
    await clock.advance(60)
    second = ready(first, clock, 2, False, "Waiting", "for a device")
    assert second[0].last_transition_time == first[0].last_transition_time
    assert second[0].observed_generation == 2
    third = ready(second, clock, 2, True, "Done")
    assert third[0].last_transition_time > first[0].last_transition_time
    assert is_true(third, "Ready")
    assert ready(third, clock, 2, True, "Done") is third


def test_what_nobody_knows_is_unknown() -> None:
    assert condition((), FakeClock(), 1, "Reachable", None, "NotAsked")[0].status == "Unknown"


@pytest.mark.parametrize("reason", ["", "two words", "1st", "Ends:", "A" * 1025, "Ünicode"])
def test_a_reason_that_is_no_word_is_a_mistake(reason: str) -> None:
    with pytest.raises(ValueError, match="CamelCase"):
        ready((), FakeClock(), 1, True, reason)

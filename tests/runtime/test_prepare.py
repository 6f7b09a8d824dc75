"""What a home brings for its systems: their own kinds always, kinds of others only where those others are not."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.runtime.widgets import running, until, until_gone
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Query, Ref
from trimtab.model.crd import crd
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.resource import Resource
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.changes import Request
from trimtab.runtime.controller import Controller, Watch
from trimtab.runtime.manager import Manager
from trimtab.runtime.prepare import DEFINITION, MANAGER, borrowed_definitions, definitions, documents, prepare
from trimtab.runtime.system import System
from trimtab.testing.clock import FakeClock


class Harbour(Resource, group="harbours.example.com", version="v1", plural="harbours"):
    """Of the system itself."""

    spec: dict[str, Any] = {}  # noqa: RUF012 - a struct copies it


class Tide(Resource, group="tides.example.com", version="v1", plural="tides"):
    """Of somebody else."""

    spec: dict[str, Any] = {}  # noqa: RUF012


TIDES = "tides.tides.example.com"


class Pilots(Controller[ConfigMap]):
    watches = (Watch(kind=Tide, to=lambda change: [change.request]),)

    async def reconcile(self, request: Request) -> None: ...


SYSTEM = System(name="pilots", kinds=(Harbour,), borrowed=(Tide,), reconciles=(Pilots,))


@pytest.fixture
async def sea(client: ApiClient) -> AsyncIterator[ApiClient]:
    """A server that knows neither kind, and forgets them again."""
    yield client
    for name in (TIDES, "harbours.harbours.example.com"):
        with contextlib.suppress(StatusError):  # it was never there
            await client.delete(Ref(DEFINITION, name))
        await until_gone(client, DEFINITION, name, "")


async def managers_of(client: ApiClient, name: str) -> set[str]:
    found = await client.get(DEFINITION, name)
    return {entry.manager or "" for entry in found.metadata.managed_fields or ()}


def test_manifests_have_own_kinds_and_no_borrowed_ones(scheme: Scheme) -> None:
    made = [d["metadata"]["name"] for d in documents([SYSTEM], scheme) if d["kind"] == "CustomResourceDefinition"]
    assert made == ["harbours.harbours.example.com"]
    assert [d["metadata"]["name"] for d in definitions([SYSTEM], scheme)] == made
    assert [d["metadata"]["name"] for d in borrowed_definitions([SYSTEM], scheme)] == [TIDES]


def test_what_one_borrows_and_another_has_is_not_borrowed(scheme: Scheme) -> None:
    assert borrowed_definitions([SYSTEM, System(name="moon", kinds=(Tide,))], scheme) == []


async def test_borrowed_kinds_are_defined_only_when_asked_for(sea: ApiClient) -> None:
    await prepare(sea, [SYSTEM], rights=False)
    with pytest.raises(StatusError):
        await sea.list(Tide, Query())
    await prepare(sea, [SYSTEM], rights=False, borrowed=True)
    assert not (await sea.list(Tide, Query())).items
    assert MANAGER in await managers_of(sea, TIDES)


async def test_a_definition_that_we_brought_is_kept_up_to_date(sea: ApiClient) -> None:
    await prepare(sea, [SYSTEM], rights=False, borrowed=True)
    found = await sea.get(DEFINITION, TIDES)
    found.raw["spec"]["names"]["shortNames"] = ["td"]
    older = {
        "apiVersion": found.api_version,
        "kind": found.kind,
        "metadata": {"name": TIDES},
        "spec": found.raw["spec"],
    }
    await sea.apply(Untyped(older), manager=MANAGER, force=True)
    await prepare(sea, [SYSTEM], rights=False, borrowed=True)
    assert "shortNames" not in (await sea.get(DEFINITION, TIDES)).raw["spec"]["names"]


async def test_a_definition_of_somebody_else_is_left_alone(sea: ApiClient) -> None:
    theirs = crd(Tide)
    theirs["spec"]["names"]["shortNames"] = ["theirs"]
    await sea.apply(Untyped(theirs), manager="istio", force=True)
    await prepare(sea, [SYSTEM], rights=False, borrowed=True)
    assert (await sea.get(DEFINITION, TIDES)).raw["spec"]["names"]["shortNames"] == ["theirs"]
    assert MANAGER not in await managers_of(sea, TIDES)


async def test_a_definition_of_somebody_else_in_another_version_is_not_waited_for(sea: ApiClient) -> None:
    theirs = crd(Tide)
    theirs["spec"]["versions"][0]["name"] = "v1beta1"
    await sea.apply(Untyped(theirs), manager="istio", force=True)
    await prepare(sea, [SYSTEM], rights=False, borrowed=True)
    assert (await sea.get(DEFINITION, TIDES)).raw["spec"]["versions"][0]["name"] == "v1beta1"


async def test_a_watched_kind_that_nobody_defined_is_named_until_somebody_does(sea: ApiClient, namespace: str) -> None:
    sea.scheme.register(Tide)
    clock = FakeClock()
    manager = Manager(sea, clock=clock)
    manager.add(Pilots())
    async with running(manager):
        await until(lambda: clock.pending)
        with pytest.raises(RuntimeError, match="Tide, which is not served here: define its CRD"):
            manager.check_ready()
        await prepare(sea, [SYSTEM], rights=False, borrowed=True)
        await sea.create(Tide(metadata=ObjectMeta(name="spring", namespace=namespace)))
        await clock.advance(60)
        await until(lambda: _ready(manager))


def _ready(manager: Manager) -> bool:
    try:
        manager.check_ready()
    except RuntimeError:
        return False
    return True

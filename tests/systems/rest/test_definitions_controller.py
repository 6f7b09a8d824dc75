"""From RestService and RestDefinition to a kind that is served: what may be wrong on the way, and what comes later."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml
from aiohttp import web

from tests.systems.rest.arm_kit import DOCUMENT as COMPUTE
from tests.systems.rest.arm_kit import GROUP, served
from tests.systems.rest.notes_kit import DOCUMENT, KIND, Notes, define, definition, serve
from tests.systems.rest.station import GROUP as REST
from tests.systems.rest.station import LABEL, Document, Station, condition_of
from trimtab.client.protocol import Named, Query, Ref
from trimtab.lab.arm import INSTANT, ArmEmulator
from trimtab.model.scheme import Untyped
from trimtab.systems.rest.kinds import RestDefinition, RestService

SERVICE, DEFINITION = Named(REST, "RestService"), Named(REST, "RestDefinition")
CRD = Named("apiextensions.k8s.io/v1", "CustomResourceDefinition")
LOCAL = pytest.mark.parametrize("client", ["local"], indirect=True)
"""Where the API server makes no difference."""


@pytest.fixture
async def notes() -> AsyncIterator[Notes]:
    async with Notes() as service:
        yield service


async def not_ready(station: Station, kind: Named, name: str, reason: str) -> str:
    """What it says."""
    found = await station.condition(kind, name, "Ready", "False", reason, namespace="")
    return str(condition_of(found.raw, "Ready")["message"])


async def defined(station: Station) -> Untyped:
    return await station.ready(DEFINITION, f"notes.{station.service}", "")


async def edit(station: Station, kind: Any, name: str, mutate: Any) -> None:
    """Change a spec that is not namespaced."""
    found = await station.client.get(Named(REST, kind.__name__), name)
    changed = json.loads(json.dumps(found.raw))
    mutate(changed["spec"])
    await station.client.patch(found, Untyped(changed))


# --- documents ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("openapi: 3.0.3\ninfo: [", "line"),
        ("just words", "openapi"),
        (DOCUMENT.replace("schemas/Note", "schemas/Letter", 1), "Letter"),
        (DOCUMENT.replace('"#/components/schemas/Note"', '"../../etc/passwd#/a"', 1), "etc/passwd"),
    ],
)
@LOCAL
async def test_a_document_that_is_none_is_said_of_the_service_and_of_its_kinds(
    station: Station, notes: Notes, text: str, said: str
) -> None:
    async with station.working():
        await serve(station, notes.url, {"inline": text})
        wrong = await not_ready(station, SERVICE, station.service, "DocumentUnreadable")
        also = await not_ready(station, DEFINITION, f"notes.{station.service}", "DocumentUnreadable")
    assert said in wrong
    assert said in also


async def test_a_document_that_was_mended_is_taken_at_once(station: Station, notes: Notes) -> None:
    async with station.working():
        await serve(station, notes.url, {"inline": "openapi: 3.0.3\ninfo: ["})
        await not_ready(station, DEFINITION, f"notes.{station.service}", "DocumentUnreadable")
        await edit(station, RestService, station.service, lambda spec: spec.update(document={"inline": DOCUMENT}))
        await defined(station)
        await station.make(KIND, "one", title="one")


@LOCAL
async def test_an_operation_that_the_document_does_not_have_is_named_with_the_nearest(
    station: Station, notes: Notes
) -> None:
    wrong = definition()
    wrong["spec"]["operations"]["read"]["path"] = "/note/{id}"
    async with station.working():
        await serve(station, notes.url, {"inline": DOCUMENT}, wrong)
        said = await not_ready(station, DEFINITION, f"notes.{station.service}", "Invalid")
    assert "/note/{id}" in said
    assert "/notes/{id}" in said


@LOCAL
async def test_a_definition_without_its_service_waits_for_it(station: Station, notes: Notes) -> None:
    async with station.working():
        await define(station, definition())
        said = await not_ready(station, DEFINITION, f"notes.{station.service}", "ServiceNotFound")
        assert station.service in said
        await station.create(
            {
                "apiVersion": REST,
                "kind": "RestService",
                "metadata": {"name": station.service, "labels": {LABEL: station.service}},
                "spec": {"endpoint": notes.url, "document": {"inline": DOCUMENT}},
            }
        )
        await defined(station)


@LOCAL
async def test_a_document_that_goes_away_leaves_the_kind_as_it_was(station: Station, notes: Notes) -> None:
    async def document(request: web.Request, body: Any) -> web.StreamResponse | None:
        return web.Response(text=DOCUMENT) if request.path == "/openapi.yaml" else None

    notes.instead = document
    async with station.working():
        await serve(station, notes.url, {"url": f"{notes.url}/openapi.yaml"})
        await defined(station)
        await station.make(KIND, "one", title="one")
    notes.instead = None
    async with station.working():
        found = await station.until(
            DEFINITION,
            f"notes.{station.service}",
            lambda d: "goes on as it was" in condition_of(d, "Ready").get("message", ""),
            "",
        )
        assert condition_of(found.raw, "Ready")["status"] == "True"
        await station.change(KIND, "one", lambda spec: spec.update(text="two"))
        await station.ready(KIND, "one")
    assert notes.titled("one")[0]["text"] == "two"


async def test_a_new_document_changes_what_objects_may_say(station: Station, notes: Notes) -> None:
    async with station.working():
        await serve(station, notes.url, {"inline": DOCUMENT})
        before = (await defined(station)).raw["status"]["modelDigest"]
        await station.make(KIND, "one", title="one")
        document = yaml.safe_load(DOCUMENT)
        document["components"]["schemas"]["Note"]["properties"]["colour"] = {"type": "string"}
        text = json.dumps(document)
        await edit(station, RestService, station.service, lambda spec: spec.update(document={"inline": text}))
        await station.until(
            DEFINITION, f"notes.{station.service}", lambda d: d["status"].get("modelDigest") != before, ""
        )
        await station.change(KIND, "one", lambda spec: spec.update(colour="red"))
        await station.ready(KIND, "one")
    assert notes.titled("one")[0]["colour"] == "red"


@LOCAL
async def test_a_changed_overlay_changes_the_behaviour_of_objects_that_are_there(
    station: Station, notes: Notes
) -> None:
    async with station.working():
        await serve(station, notes.url, {"inline": DOCUMENT})
        await defined(station)
        await station.make(KIND, "one", title="one", text="ours")
        overlay = {"fields": {"text": {"class": "initial"}}}
        await edit(station, RestDefinition, f"notes.{station.service}", lambda spec: spec.update(overlay=overlay))
        await defined(station)
        notes.titled("one")[0]["text"] = "theirs"
        await station.leap(700)
        found = await station.until(KIND, "one", lambda d: d["status"]["observed"].get("text") == "theirs")
    assert condition_of(found.raw, "Drifted")["status"] == "False"
    assert notes.writes() == ["POST"]


# --- who has which name ------------------------------------------------------------------------------------------------------


@LOCAL
async def test_of_two_definitions_of_one_path_the_first_has_it(station: Station, notes: Notes) -> None:
    second = definition(names={"kind": "Memo", "plural": "memos"})
    async with station.working():
        await serve(station, notes.url, {"inline": DOCUMENT})
        await defined(station)
        await define(station, second, "memos")
        said = await not_ready(station, DEFINITION, f"memos.{station.service}", "Duplicate")
        assert f"notes.{station.service}" in said
        await station.client.delete(Ref(DEFINITION, f"notes.{station.service}"))
        await gone(station, DEFINITION, f"notes.{station.service}")
        await station.leap(60)
        await station.ready(DEFINITION, f"memos.{station.service}", "")


async def test_a_kind_that_someone_else_defined_is_used_and_not_changed(station: Station, notes: Notes) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    theirs = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"notes.{station.group}", "labels": {"made-by": "them"}},
        "spec": {
            "group": station.group,
            "names": {"kind": KIND, "plural": "notes", "singular": "note"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }
    await station.create(theirs)
    async with station.working():
        await serve(station, notes.url, {"inline": DOCUMENT})
        await defined(station)
        await station.make(KIND, "one", title="one")
    found = await station.client.get(CRD, f"notes.{station.group}")
    assert found.metadata.labels == {"made-by": "them"}
    assert "spec" not in found.raw["spec"]["versions"][0]["schema"]["openAPIV3Schema"].get("properties", {})
    await station.client.delete(Ref(CRD, f"notes.{station.group}"))


async def test_who_may_not_define_kinds_says_what_to_apply(station: Station, notes: Notes) -> None:
    async with station.working(manage=False):
        await serve(station, notes.url, {"inline": DOCUMENT})
        said = await not_ready(station, DEFINITION, f"notes.{station.service}", "NotDefined")
    assert "trimtab rest generate" in said
    crds = (await station.client.list(CRD, Query())).items
    assert not [each for each in crds if each.name == f"notes.{station.group}"]


# --- the end of definitions and services ----------------------------------------------------------------------------------------


async def test_a_definition_stays_while_objects_of_its_kind_are_left(station: Station, notes: Notes) -> None:
    async with station.working():
        await serve(station, notes.url, {"inline": DOCUMENT})
        await defined(station)
        await station.make(KIND, "one", title="one")
        await station.client.delete(Ref(DEFINITION, f"notes.{station.service}"))
        assert "1 object" in await not_ready(station, DEFINITION, f"notes.{station.service}", "InUse")
        await station.delete(KIND, "one")
        await station.gone(KIND, "one")
        await station.leap(60)
        await gone(station, DEFINITION, f"notes.{station.service}")
        await gone(station, CRD, f"notes.{station.group}")
    assert notes.notes == {}


@LOCAL
async def test_a_service_stays_while_definitions_need_it(station: Station, notes: Notes) -> None:
    async with station.working():
        await serve(station, notes.url, {"inline": DOCUMENT})
        await defined(station)
        await station.client.delete(Ref(SERVICE, station.service))
        said = await not_ready(station, SERVICE, station.service, "InUse")
        assert f"notes.{station.service}" in said
        await station.make(KIND, "one", title="one")
        await station.delete(KIND, "one")
        await station.gone(KIND, "one")
        await station.client.delete(Ref(DEFINITION, f"notes.{station.service}"))
        await gone(station, DEFINITION, f"notes.{station.service}")
        await gone(station, SERVICE, station.service)


async def gone(station: Station, kind: Named, name: str) -> None:
    from tests.runtime.widgets import until_gone

    await until_gone(station.client, kind, name, "")


# --- learning -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("long", [False, True], ids=["quick", "long"])
@pytest.mark.parametrize("ways", [{"put": "merge"}, {"put": "merge", "null_keeps": True}], ids=["merge", "null keeps"])
@LOCAL
async def test_a_removal_that_took_another_way_is_learned_and_used_for_the_next(
    station: Station, long: bool, ways: Document
) -> None:
    network = f"{GROUP}/providers/Microsoft.Network/virtualNetworks"
    servers = {"dhcpOptions": {"dnsServers": ["10.0.0.4"]}, "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}
    async with ArmEmulator([COMPUTE], behaviour=INSTANT) as arm, station.working():
        arm.behave("Microsoft.Network/virtualNetworks", **ways)
        await served(station, arm)
        for name in ("one", "two"):
            await station.make(
                "VirtualNetwork", name, parent={"name": "web"}, location="westus", properties=dict(servers)
            )
        if long:
            arm.behave("Microsoft.Network/virtualNetworks", **ways, asynchronous=True, polls=0, retry_after=0)
        await station.change("VirtualNetwork", "one", lambda spec: spec["properties"].pop("dhcpOptions"))
        await station.ready("VirtualNetwork", "one")
        found = await station.until(
            DEFINITION, f"virtualnetworks.{station.service}", lambda d: d["status"].get("quirks"), ""
        )
        (quirk,) = found.raw["status"]["quirks"]
        assert quirk["path"].startswith("properties.dhcpOptions")
        assert "still there" in quirk["evidence"]
        assert quirk["object"].endswith("/one")
        arm.log.clear()
        await station.change("VirtualNetwork", "two", lambda spec: spec["properties"].pop("dhcpOptions"))
        await station.ready("VirtualNetwork", "two")
    assert arm.log.count("PUT", "/two") == 1
    for name in ("one", "two"):
        assert not arm.resources[f"{network}/{name}"]["properties"].get("dhcpOptions", {}).get("dnsServers")

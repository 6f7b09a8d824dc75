"""Hooks: code of users' own, found by entry points, at each of its points in turn."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from aiohttp import web

from tests.systems.rest.notes_kit import DOCUMENT, KIND, Notes, definition, serve
from tests.systems.rest.station import GROUP, Station, condition_of
from trimtab.client.protocol import Named
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.scheme import Untyped
from trimtab.systems.rest import models
from trimtab.systems.rest.calling.service import Service
from trimtab.systems.rest.hooks import installed
from trimtab.systems.rest.importing.importer import Importer, Kind
from trimtab.systems.rest.validating.judging import judged

Install = Callable[[str], str]
pytestmark = pytest.mark.parametrize("client", ["local"], indirect=True)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """A distribution with one hook, whose code is given; returns the hook's name."""

    def made(code: str) -> str:
        name = f"hook{uuid.uuid4().hex[:8]}"
        folder = tmp_path / name
        facts = folder / f"{name}-1.0.dist-info"
        facts.mkdir(parents=True)
        (folder / f"{name}.py").write_text(HEAD + dedent(code))
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (facts / "entry_points.txt").write_text(f"[trimtab.rest.hooks]\n{name} = {name}\n")
        monkeypatch.syspath_prepend(str(folder))
        return name

    return made


HEAD = """\
import msgspec

from trimtab.model.errors import FieldError, FieldProblem
from trimtab.systems.rest.calling import operations
from trimtab.systems.rest.calling.contract import ErrorClass, Request
from trimtab.systems.rest.hooks import Verdict

"""


@pytest.fixture
async def notes() -> AsyncIterator[Notes]:
    async with Notes() as service:
        yield service


async def served(station: Station, notes: Notes, *hooks: str, overlay: Any = None, **changes: Any) -> None:
    given = definition(overlay={**(overlay or {}), "hooks": list(hooks)}, **changes)
    await station.serve(notes.url, DOCUMENT, definitions=[given])


async def test_a_request_can_be_changed_before_it_is_sent(station: Station, notes: Notes, install: Install) -> None:
    hook = install(
        """
        async def modify_request(ctx, request, following):
            request = await following(request)
            return msgspec.structs.replace(request, headers={**request.headers, "X-Team": "blue"})
        """
    )
    async with station.working():
        await served(station, notes, hook)
        await station.make(KIND, "one", title="one")
    assert {asked.headers.get("X-Team") for asked in notes.asked} == {"blue"}


async def test_an_error_can_be_given_another_meaning(station: Station, notes: Notes, install: Install) -> None:
    hook = install(
        """
        async def classify_error(ctx, error, following):
            return ErrorClass.DEPENDENCY if "wait" in str(error) else await following(error)
        """
    )

    async def refuse(request: web.Request, body: Any) -> web.StreamResponse | None:
        return web.json_response({"message": "please wait"}, status=400) if request.method == "POST" else None

    notes.instead = refuse
    async with station.working():
        await served(station, notes, hook)
        await station.create(station.document(KIND, "one", {"title": "one"}))
        await station.condition(KIND, "one", "Ready", "False", "DependencyNotReady")


async def test_what_is_read_can_be_put_right(station: Station, notes: Notes, install: Install) -> None:
    hook = install(
        """
        async def normalize_live(ctx, live, following):
            live = await following(live)
            return {**live, "text": live.get("text", "").strip()}
        """
    )
    async with station.working():
        await served(station, notes, hook)
        await station.make(KIND, "one", title="one", text="ours")
        notes.titled("one")[0]["text"] = "  ours  "
        await station.change(KIND, "one", lambda spec: spec.update(labels={"a": "b"}))
        found = await station.ready(KIND, "one")
    assert found.raw["status"]["observed"]["text"] == "ours"
    assert condition_of(found.raw, "Drifted")["status"] == "False"


async def test_values_can_count_as_the_same(station: Station, notes: Notes, install: Install) -> None:
    hook = install(
        """
        def compare(ctx, path, wanted, live, following):
            return following(path, wanted, live) or (path == "text" and str(wanted)[::-1] == live)
        """
    )
    async with station.working():
        await served(station, notes, hook)
        await station.make(KIND, "one", title="one", text="abc")
        notes.titled("one")[0]["text"] = "cba"
        await station.leap(700)
        found = await station.until(KIND, "one", lambda d: d["status"]["observed"]["text"] == "cba")
    assert condition_of(found.raw, "Drifted")["status"] == "False"
    assert notes.writes() == ["POST"]


@pytest.mark.parametrize(
    ("point", "writes"), [("pre_check(ctx, following)", []), ("post_check(ctx, live, following)", ["POST"])]
)
async def test_a_check_says_what_it_waits_for(
    station: Station, notes: Notes, install: Install, point: str, writes: list[str]
) -> None:
    hook = install(
        f"""
        async def {point}:
            return Verdict(proceed=False, reason="NoQuota", message="ask for more", retry_after=5.0)
        """
    )
    async with station.working():
        await served(station, notes, hook)
        await station.create(station.document(KIND, "one", {"title": "one"}))
        found = await station.condition(KIND, "one", "Ready", "False", "NoQuota")
    assert condition_of(found.raw, "Ready")["message"] == "ask for more"
    assert notes.writes() == writes


async def test_what_exists_can_be_found_in_another_way(station: Station, notes: Notes, install: Install) -> None:
    hook = install(
        """
        async def find_existing(ctx, following):
            answer = await ctx.caller.call(Request(verb="list", method="GET", url="/notes"))
            found = [note["id"] for note in answer.body if note["title"] == ctx.object.name.upper()]
            return f"/notes/{found[0]}" if found else await following()
        """
    )
    notes.answered("POST", "/notes", {"title": "ONE", "text": "theirs"})
    async with station.working():
        await served(station, notes, hook)
        found = await station.make(KIND, "one", title="ONE", policy={"adopt": "adopt"})
    assert found.raw["status"]["resourceID"] == "/notes/n1"
    assert notes.writes() == []


async def test_the_id_can_be_read_from_anywhere(station: Station, notes: Notes, install: Install) -> None:
    hook = install(
        """
        async def extract_id(ctx, answer, following):
            return "/notes/" + answer.headers["x-made"].removeprefix("note ")
        """
    )

    async def elsewhere(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.method != "POST":
            return None
        made = json.loads(notes.answered("POST", "/notes", body).body)  # type: ignore[arg-type]
        return web.json_response({}, status=201, headers={"X-Made": f"note {made['id']}"})

    notes.instead = elsewhere
    async with station.working():
        await served(station, notes, hook)
        found = await station.make(KIND, "one", title="one")
    assert found.raw["status"]["resourceID"] == "/notes/n1"


async def test_what_cannot_be_deleted_can_be_ended_otherwise(station: Station, notes: Notes, install: Install) -> None:
    hook = install(
        """
        async def delete(ctx, following):
            body = {"title": "-", "labels": {"state": "archived"}}
            await ctx.caller.call(Request(verb="update", method="PUT", url=ctx.resource_id, body=body))
        """
    )
    operations = definition()["spec"]["operations"]
    del operations["delete"]
    async with station.working():
        await served(station, notes, hook, overlay={"gone": {"labels.state": "archived"}}, operations=operations)
        await station.make(KIND, "one", title="one")
        await station.delete(KIND, "one")
        await station.gone(KIND, "one")
    assert notes.notes["n1"]["labels"] == {"state": "archived"}


async def test_an_operation_can_be_followed_in_another_way(station: Station, notes: Notes, install: Install) -> None:
    hook = install(
        """
        async def poll(ctx, operation, following):
            answer = await ctx.caller.call(Request(verb="poll", method="GET", url="/notes"))
            return operations.Done(answer) if answer.body else await following(operation)
        """
    )

    async def slow(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.path == "/jobs/1":
            raise web.HTTPInternalServerError
        if request.method != "POST":
            return None
        made = json.loads(notes.answered("POST", "/notes", body).body)  # type: ignore[arg-type]
        headers = {"Location": "/jobs/1", "Retry-After": "1"}
        return web.json_response({"id": made["id"]}, status=202, headers=headers)

    notes.instead = slow
    async with station.working():
        await served(station, notes, hook)
        await station.create(station.document(KIND, "one", {"title": "one"}))
        await station.until(KIND, "one", lambda d: d.get("status", {}).get("sync", {}).get("operation"))
        await station.leap(60)
        await station.ready(KIND, "one")
    assert "/jobs/1" not in [asked.path for asked in notes.asked]


async def test_a_status_can_have_more_than_the_service_says(station: Station, notes: Notes, install: Install) -> None:
    hook = install(
        """
        async def joins(ctx, live, following):
            return {**await following(live), "length": len(live["title"])}
        """
    )
    async with station.working():
        await served(station, notes, hook)
        found = await station.make(KIND, "one", title="one")
    assert found.raw["status"]["joined"]["length"]["value"] == 3


async def test_what_is_exported_can_be_made_up(station: Station, notes: Notes, install: Install) -> None:
    hook = install(
        """
        async def export(ctx, live, following):
            return {**await following(live), "url": f"http://notes/{live['id']}"}
        """
    )
    exports = [{"to": "ConfigMap", "name": "{name}-link", "data": {"url": "url", "title": "title"}}]
    async with station.working():
        await served(station, notes, hook, exports=exports)
        await station.make(KIND, "one", title="one")
        made = await station.client.get(ConfigMap, "one-link", station.namespace)
    assert made.data == {"url": "http://notes/n1", "title": "one"}


RULES = """
async def default(ctx, spec, following):
    return await following({"text": f"about {spec['title']}", **spec})

async def validate(ctx, old, new, following):
    found = await following(old, new)
    if new.get("title") == "bad":
        found = [*found, FieldError("spec.title", FieldProblem.INVALID, "bad", "must be good")]
    return found
"""


async def test_a_spec_can_be_filled(station: Station, notes: Notes, install: Install) -> None:
    hook = install(RULES)
    async with station.working():
        await served(station, notes, hook)
        await station.make(KIND, "one", title="one")
    assert notes.titled("one")[0]["text"] == "about one"


async def test_a_spec_can_be_refused_by_rules_of_ones_own(station: Station, notes: Notes, install: Install) -> None:
    hook = install(RULES)
    async with station.working():
        await served(station, notes, hook)
        stored = await station.client.get(ConfigMap, models.name_of("notes", station.group), "trimtab-system")
        model = models.kept(stored)
        assert model is not None
        found = await judged(model, installed([hook]), Untyped(station.document(KIND, "one", {"title": "bad"})))
    assert [(error.path, error.detail) for error in found.errors] == [("spec.title", "must be good")]


async def test_what_is_imported_can_be_chosen_and_changed(station: Station, notes: Notes, install: Install) -> None:
    hook = install(
        """
        async def import_filter(ctx, document, following):
            document = await following(document)
            if document["spec"]["title"].startswith("~"):
                return None
            document["metadata"]["labels"] = {"imported": "yes"}
            return document
        """
    )
    for title in ("kept", "~draft"):
        notes.answered("POST", "/notes", {"title": title})
    async with station.working():
        await served(station, notes, hook)
        stored = await station.client.get(ConfigMap, models.name_of("notes", station.group), "trimtab-system")
        model = models.kept(stored)
    assert model is not None
    async with Service(notes.url) as caller:
        kind = Kind(model=model, hooks=installed([hook]))
        importer = Importer(caller, [kind], values={}, namespace=station.namespace)
        found = [each.document async for each in importer.all()]
    assert [(each["spec"]["title"], each["metadata"]["labels"]) for each in found] == [("kept", {"imported": "yes"})]


# --- hooks that fail -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "point",
    [
        "async def modify_request(ctx, request, following)",
        "async def normalize_live(ctx, live, following)",
        "async def pre_check(ctx, following)",
        "async def default(ctx, spec, following)",
        "async def extract_id(ctx, answer, following)",
        "async def joins(ctx, live, following)",
    ],
)
async def test_a_hook_that_raises_shows_in_the_conditions(
    station: Station, notes: Notes, install: Install, point: str
) -> None:
    hook = install(f"{point}:\n    raise ValueError('out of luck')\n")
    async with station.working():
        await served(station, notes, hook)
        await station.create(station.document(KIND, "one", {"title": "one"}))
        found = await station.condition(KIND, "one", "Stalled", "True", "HookFailed")
    said = condition_of(found.raw, "Ready")["message"]
    assert "out of luck" in said
    assert point.split()[2].partition("(")[0] in said


async def test_a_hook_that_raises_at_a_comparison_shows_too(station: Station, notes: Notes, install: Install) -> None:
    hook = install("def compare(ctx, path, wanted, live, following):\n    raise KeyError(path)\n")
    async with station.working():
        await served(station, notes, hook)
        await station.create(station.document(KIND, "one", {"title": "one"}))
        await station.ready(KIND, "one")
        await station.change(KIND, "one", lambda spec: spec.update(text="new"))
        await station.condition(KIND, "one", "Stalled", "True", "HookFailed")


async def test_a_hook_that_is_not_installed_is_named_with_those_that_are(
    station: Station, notes: Notes, install: Install
) -> None:
    there = install("")
    given = definition(overlay={"hooks": ["absent"]})
    async with station.working():
        await serve(station, notes.url, {"inline": DOCUMENT}, given)
        name = f"notes.{station.service}"
        found = await station.condition(Named(GROUP, "RestDefinition"), name, "Ready", "False", "HookNotInstalled", "")
    said = condition_of(found.raw, "Ready")["message"]
    assert "absent" in said
    assert there in said

"""A crash between any two steps, and a lost answer to any of them: never a second creation, never a lost field, never a
blind PUT.

Each test plays a scenario once without a fault to count its steps, and then once for each step and each kind of fault,
with as many objects side by side; then everything starts anew, and all of them come to rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.systems.rest.arm_kit import DOCUMENT, GROUP, KIND, SPEC, served
from tests.systems.rest.cuts import Cuts, names_of
from tests.systems.rest.notes_kit import DOCUMENT as NOTES
from tests.systems.rest.notes_kit import KIND as NOTE
from tests.systems.rest.notes_kit import Notes
from tests.systems.rest.notes_kit import definition as note_definition
from tests.systems.rest.station import Document, Station, SwiftClock, condition_of
from trimtab.lab.arm import INSTANT, ArmEmulator, Asked, Dropped, Lro, shape
from trimtab.model.scheme import Untyped
from trimtab.systems.rest.object_controller import ObjectController

pytestmark = pytest.mark.slow

SETS = "Microsoft.Compute/virtualMachineScaleSets"
LIMITS = {"readsPerSecond": 10000, "writesPerSecond": 10000, "concurrent": 64}
QUICK: dict[str, Lro] = {}
LONG = {
    "create": shape("201+AAO nonterminal", polls=0, lasting=0.1, retry_after=1),
    "update": shape("200+AAO nonterminal", polls=0, lasting=0.1, retry_after=1),
    "patch": shape("202+LOC empty", polls=0, lasting=0.1, retry_after=1),
    "delete": shape("202+LOC empty", polls=0, lasting=0.1, retry_after=1),
}
LOCAL = pytest.mark.parametrize("client", ["local"], indirect=True)
"""Where the API server makes no difference."""
Act = Callable[[str], Awaitable[Any]]


@pytest.fixture(autouse=True)
def side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many at once as there are steps to cut: one that is cut off keeps its place."""
    monkeypatch.setattr(ObjectController, "concurrency", 100)


@pytest.fixture
async def arm() -> AsyncIterator[ArmEmulator]:
    async with ArmEmulator([DOCUMENT], behaviour=INSTANT) as emulator:
        yield emulator


@pytest.fixture(params=[QUICK, LONG], ids=["quick", "long"])
def pace(request: pytest.FixtureRequest, arm: ArmEmulator) -> Callable[[], None]:
    """Makes the emulator take its time from then on, or not."""
    if request.param:
        return lambda: arm.behave(SETS, asynchronous=True, operations=request.param) and None
    return lambda: None


class Play:
    """One scenario: `prepare` makes what is there before, `act` is what is cut, `rest` what it comes to;
    `between` comes after the crash, and another `rest` then."""

    def __init__(self, station: Station, serve: Act, *, prepare: Act, act: Act, rest: Act) -> None:
        self.station, self.cuts = station, Cuts()
        self._serve, self._prepare, self._act, self._rest = serve, prepare, act, rest
        self.names: list[str] = []

    async def run(
        self, pace: Callable[[], None] = lambda: None, between: Act | None = None, rest: Act | None = None
    ) -> None:
        self.station.clock = SwiftClock(60)
        async with self.station.working(client=self.cuts.client(self.station.client), callers=self.cuts.callers):
            try:
                await self._serve("")
                await self._cut(pace)
            finally:
                self.cuts.end()
        if between is not None:
            await asyncio.gather(*(between(name) for name in self.names))
        async with self.station.working():
            await asyncio.gather(*((rest or self._rest)(name) for name in self.names))

    async def _cut(self, pace: Callable[[], None]) -> None:
        await self._prepare("uncut")
        self.cuts.plan("uncut", "never", 0)
        pace()
        await self._act("uncut")
        await self._rest("uncut")
        planned = names_of(len(self.cuts.steps["uncut"]))
        self.names = ["uncut", *planned]
        await asyncio.gather(*(self._prepare(name) for name in planned))
        for name, cut in planned.items():
            self.cuts.plan(name, cut.mode, cut.at)
        await asyncio.gather(*(self._act(name) for name in planned))
        await asyncio.gather(*(self.cuts.ended(name, self._rest(name)) for name in planned))

    def why(self, name: str) -> str:
        """For a failure: the steps."""
        return f"{name}: {', '.join(self.cuts.steps[name])}"


class Sets:
    """Scale sets, by name."""

    def __init__(self, station: Station, arm: ArmEmulator) -> None:
        self.station, self.arm = station, arm

    async def serve(self, _: str) -> None:
        await served(self.station, self.arm, limits=LIMITS)

    async def nothing(self, name: str) -> None:
        """There is nothing before."""

    async def create(self, name: str, **spec: Any) -> None:
        await self.station.create(self.station.document(KIND, name, {**SPEC, **spec}))

    async def make(self, name: str, **spec: Any) -> None:
        """It is there, and someone else has put a tag on it."""
        await self.station.make(KIND, name, **{**SPEC, **spec})
        self.arm.change(path(name), lambda body: body.setdefault("tags", {}).update(theirs="kept"))

    def changing(self, mutate: Callable[[Document], Any]) -> Act:
        async def change(name: str) -> None:
            await self.station.change(KIND, name, mutate)

        return change

    async def ready(self, name: str) -> Untyped:
        found = await self.station.ready(KIND, name)
        state = found.raw["status"]["observed"].get("properties", {}).get("provisioningState", "Succeeded")
        assert state == "Succeeded", f"{name} is called ready while it is {state}"
        return found

    async def delete(self, name: str) -> None:
        await self.station.delete(KIND, name)

    async def gone(self, name: str) -> None:
        await self.station.gone(KIND, name)

    def writes(self, name: str) -> list[str]:
        return [asked.verb for asked in self._asked(name) if asked.method != "GET" and asked.status < 400]

    def body(self, name: str) -> Any:
        return self.arm.resources[path(name)]

    def _asked(self, name: str) -> list[Asked]:
        return [asked for asked in self.arm.requests if asked.path.lower() == path(name).lower()]

    def refuse_blind(self, name: str) -> None:
        """Each write was made by someone who had looked, and to what it saw."""
        looked = False
        for asked in self._asked(name):
            if asked.method == "GET":
                looked = True
            elif asked.status < 400:
                assert looked, f"{asked.method} of {name} by someone who had not looked"
                looked = asked.verb == "delete"
            if asked.verb in ("update", "patch") and asked.status < 400:
                assert asked.headers.get("if-match"), f"{asked.method} of {name} without the ETag that was read"

    async def at_rest(self, name: str) -> None:
        sync = (await self.ready(name)).raw["status"]["sync"]
        left = {"pending", "applying", "operation", "recreating", "removals"} & set(sync)
        assert not left, f"{name} still remembers {left}"


def path(name: str) -> str:
    return f"{GROUP}/providers/{SETS}/{name}"


@pytest.fixture
def sets(station: Station, arm: ArmEmulator) -> Sets:
    return Sets(station, arm)


async def test_a_creation_by_put_happens_once(station: Station, sets: Sets, pace: Callable[[], None]) -> None:
    play = Play(station, sets.serve, prepare=sets.nothing, act=sets.create, rest=sets.ready)
    await play.run(pace)
    for name in play.names:
        assert sets.writes(name) == ["create"], play.why(name)
        assert sets.body(name)["tags"] == {"tag1": "value"}
        sets.refuse_blind(name)


async def test_an_update_by_patch_happens_once_and_takes_nothing_along(
    station: Station, sets: Sets, pace: Callable[[], None]
) -> None:
    def changed(spec: Document) -> None:
        spec["sku"]["capacity"] = 5
        spec["tags"]["tag2"] = "more"

    play = Play(station, sets.serve, prepare=sets.make, act=sets.changing(changed), rest=sets.ready)
    await play.run(pace)
    for name in play.names:
        assert sets.writes(name) == ["create", "patch"], play.why(name)
        assert sets.body(name)["sku"]["capacity"] == 5
        assert sets.body(name)["tags"] == {"tag1": "value", "tag2": "more", "theirs": "kept"}
        sets.refuse_blind(name)


@LOCAL
async def test_a_field_that_left_the_spec_is_removed_and_no_other(
    station: Station, sets: Sets, pace: Callable[[], None]
) -> None:
    async def two(name: str) -> None:
        await sets.make(name, tags={"tag1": "value", "tag2": "more"})

    change = sets.changing(lambda spec: spec["tags"].pop("tag2"))
    play = Play(station, sets.serve, prepare=two, act=change, rest=sets.ready)
    await play.run(pace)
    for name in play.names:
        assert sets.writes(name) == ["create", "patch"], play.why(name)
        assert sets.body(name)["tags"] == {"tag1": "value", "theirs": "kept"}, play.why(name)
        sets.refuse_blind(name)


@LOCAL
async def test_a_put_of_what_was_read_loses_nothing(station: Station, sets: Sets, pace: Callable[[], None]) -> None:
    """What a PATCH does not take: data disks."""

    def changed(spec: Document) -> None:
        spec["properties"]["virtualMachineProfile"]["dataDisks"] = [{"lun": 1, "diskSizeGB": 8}]

    async def made(name: str) -> None:
        await sets.make(name, properties={"virtualMachineProfile": {"imageReference": {"offer": "ours"}}})
        sets.arm.change(path(name), lambda body: body["properties"].update(singlePlacementGroup=True))

    play = Play(station, sets.serve, prepare=made, act=sets.changing(changed), rest=sets.ready)
    await play.run(pace)
    for name in play.names:
        assert sets.writes(name) == ["create", "update"], play.why(name)
        body = sets.body(name)
        assert body["tags"] == {"tag1": "value", "theirs": "kept"}
        assert body["properties"]["singlePlacementGroup"] is True
        assert [disk["lun"] for disk in body["properties"]["virtualMachineProfile"]["dataDisks"]] == [1]
        sets.refuse_blind(name)


@LOCAL
async def test_a_resource_is_made_anew_once(station: Station, sets: Sets, pace: Callable[[], None]) -> None:
    async def made(name: str) -> None:
        await sets.make(name, policy={"createOnly": "recreate"})

    change = sets.changing(lambda spec: spec.update(location="eastus"))
    play = Play(station, sets.serve, prepare=made, act=change, rest=sets.ready)
    await play.run(pace)
    for name in play.names:
        assert sets.writes(name) == ["create", "delete", "create"], play.why(name)
        assert sets.body(name)["location"] == "eastus"
        sets.refuse_blind(name)


@LOCAL
async def test_a_deletion_takes_the_resource_along_and_lets_the_object_go(
    station: Station, sets: Sets, pace: Callable[[], None]
) -> None:
    play = Play(station, sets.serve, prepare=sets.make, act=sets.delete, rest=sets.gone)
    await play.run(pace)
    for name in play.names:
        assert path(name) not in sets.arm.resources, play.why(name)
        assert sets.writes(name) == ["create", "delete"], play.why(name)


@LOCAL
async def test_an_adoption_writes_nothing(station: Station, sets: Sets) -> None:
    async def there(name: str) -> None:
        body = {"location": "westus", "sku": {"name": "Standard_D2_v3", "capacity": 8}, "tags": {"theirs": "kept"}}
        sets.arm.put(path(name), body)

    async def adopt(name: str) -> None:
        spec = {key: value for key, value in SPEC.items() if key != "parent"}
        await station.create(station.document(KIND, name, {**spec, "resourceID": path(name)}))

    play = Play(station, sets.serve, prepare=there, act=adopt, rest=sets.ready)
    await play.run()
    for name in play.names:
        assert sets.writes(name) == [], play.why(name)
        assert sets.body(name)["tags"] == {"theirs": "kept"}
        assert (await sets.ready(name)).raw["status"]["sync"]["knownDifferences"]["sku.capacity"] == "8"


@LOCAL
async def test_what_a_crashed_write_set_and_nobody_wants_any_more_is_removed(
    station: Station, sets: Sets, pace: Callable[[], None]
) -> None:
    def otherwise(spec: Document) -> None:
        del spec["tags"]["abandoned"]
        spec["sku"]["capacity"] = 7

    change = sets.changing(lambda spec: spec["tags"].update(abandoned="yes"))
    play = Play(station, sets.serve, prepare=sets.make, act=change, rest=sets.ready)
    await play.run(pace, between=sets.changing(otherwise))
    for name in play.names:
        assert sets.body(name)["tags"] == {"tag1": "value", "theirs": "kept"}, play.why(name)
        assert sets.body(name)["sku"]["capacity"] == 7, play.why(name)
        sets.refuse_blind(name)


async def test_what_a_crashed_creation_set_and_nobody_wants_any_more_is_removed(
    station: Station, sets: Sets, pace: Callable[[], None]
) -> None:
    async def create(name: str) -> None:
        await sets.create(name, tags={"abandoned": "yes", "tag1": "value"})

    def otherwise(spec: Document) -> None:
        spec["tags"] = {"tag1": "value", "tag2": "more"}
        spec["sku"]["capacity"] = 7

    play = Play(station, sets.serve, prepare=sets.nothing, act=create, rest=sets.ready)
    await play.run(pace, between=sets.changing(otherwise))
    for name in play.names:
        assert sets.writes(name).count("create") == 1, play.why(name)
        assert sets.body(name)["tags"] == {"tag1": "value", "tag2": "more"}, play.why(name)
        assert sets.body(name)["sku"]["capacity"] == 7, play.why(name)
        sets.refuse_blind(name)


# --- where the service chooses the ID ----------------------------------------------------------------------------------------


@pytest.fixture
async def notes() -> AsyncIterator[Notes]:
    async with Notes() as service:
        yield service


class Desk:
    """Notes, by title."""

    def __init__(self, station: Station, notes: Notes, **definition: Any) -> None:
        self.station, self.notes, self._definition = station, notes, definition

    async def serve(self, _: str) -> None:
        given = [note_definition(**self._definition)]
        await self.station.serve(self.notes.url, NOTES, definitions=given, limits=LIMITS)

    async def nothing(self, name: str) -> None:
        """There is nothing before."""

    async def create(self, name: str) -> None:
        await self.station.create(self.station.document(NOTE, name, {"title": name, "text": "one"}))

    async def make(self, name: str) -> None:
        await self.create(name)
        await self.ready(name)
        self.notes.titled(name)[0]["labels"] = {"theirs": "kept"}

    async def ready(self, name: str) -> Untyped:
        return await self.station.ready(NOTE, name)

    async def decided(self, name: str) -> Untyped:
        """Ready, or it says that nobody can tell."""

        def met(document: Document) -> bool:
            said = condition_of(document, "Ready")
            return said.get("status") == "True" or said.get("reason") == "CreationUncertain"

        return await self.station.until(NOTE, name, met)

    async def delete(self, name: str) -> None:
        await self.station.delete(NOTE, name)

    async def gone(self, name: str) -> None:
        await self.station.gone(NOTE, name)


async def test_a_creation_by_post_happens_once(station: Station, notes: Notes) -> None:
    desk = Desk(station, notes)
    play = Play(station, desk.serve, prepare=desk.nothing, act=desk.create, rest=desk.ready)
    await play.run()
    for name in play.names:
        assert notes.posts(name) == len(notes.titled(name)) == 1, play.why(name)
        found = await desk.ready(name)
        assert found.raw["status"]["resourceID"] == f"/notes/{notes.titled(name)[0]['id']}"


@LOCAL
async def test_a_creation_that_nobody_can_find_again_is_never_repeated(station: Station, notes: Notes) -> None:
    desk = Desk(station, notes, identity={"parameter": "id", "assigned": "server", "answer": "id"})
    play = Play(station, desk.serve, prepare=desk.nothing, act=desk.create, rest=desk.decided)
    await play.run()
    unsure = []
    for name in play.names:
        found = await desk.decided(name)
        assert notes.posts(name) <= 1, play.why(name)
        if condition_of(found.raw, "Ready")["status"] == "True":
            assert len(notes.titled(name)) == 1
        else:
            unsure.append(name)
    assert unsure, "no cut hit the creation"


@LOCAL
async def test_what_someone_deleted_is_posted_once_more_and_no_oftener(station: Station, notes: Notes) -> None:
    async def lost(name: str) -> None:
        await desk.make(name)
        notes.answered("DELETE", f"/notes/{notes.titled(name)[0]['id']}", None)

    async def tell(name: str) -> None:
        await station.change(NOTE, name, lambda spec: spec.update(text="two"))

    desk = Desk(station, notes, identity={"parameter": "id", "assigned": "server", "answer": "id"})
    play = Play(station, desk.serve, prepare=lost, act=tell, rest=desk.decided)
    await play.run()
    for name in play.names:
        assert notes.posts(name) <= 2, play.why(name)


@LOCAL
async def test_a_put_of_a_whole_note_keeps_what_others_wrote(station: Station, notes: Notes) -> None:
    async def change(name: str) -> None:
        await station.change(NOTE, name, lambda spec: spec.update(text="two"))

    desk = Desk(station, notes)
    play = Play(station, desk.serve, prepare=desk.make, act=change, rest=desk.ready)
    await play.run()
    for name in play.names:
        (note,) = notes.titled(name)
        assert (note["text"], note["labels"]) == ("two", {"theirs": "kept"}), play.why(name)
        sent = [asked for asked in notes.asked if asked.path == f"/notes/{note['id']}" and asked.method == "PUT"]
        assert len(sent) == 1, play.why(name)


@LOCAL
async def test_a_note_goes_with_its_object_even_when_its_id_was_lost(station: Station, notes: Notes) -> None:
    desk = Desk(station, notes)
    play = Play(station, desk.serve, prepare=desk.nothing, act=desk.create, rest=desk.ready)
    await play.run(between=desk.delete, rest=desk.gone)
    assert notes.notes == {}


# --- connections that break ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@LOCAL
async def test_connections_that_break_at_every_write_change_nothing_about_the_end(
    station: Station, sets: Sets, after: bool
) -> None:
    station.clock = SwiftClock(60)
    async with station.working():
        await sets.serve("")
        sets.arm.fault(Dropped(after_effect=after), "PUT", "virtualMachineScaleSets/front$")
        await sets.make("front")
        sets.arm.fault(Dropped(after_effect=after), "PATCH", "virtualMachineScaleSets/front$")
        await station.change(KIND, "front", lambda spec: spec["sku"].update(capacity=5))
        await sets.ready("front")
        body = dict(sets.body("front"))
        sets.arm.fault(Dropped(after_effect=after), "DELETE", "virtualMachineScaleSets/front$")
        await sets.delete("front")
        await sets.gone("front")
    assert body["sku"]["capacity"] == 5
    assert body["tags"] == {"tag1": "value", "theirs": "kept"}
    asked = [each for each in sets.arm.requests if each.path == path("front") and each.method != "GET"]
    assert len([each for each in asked if after or each.status]) == 3
    assert path("front") not in sets.arm.resources

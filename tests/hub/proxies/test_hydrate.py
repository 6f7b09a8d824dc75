"""Names above, IDs below, at the same place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hub.kit import TYPES, Plan, Register, Service, plan
from trimtab.hub.contract import (
    ApplyOptions,
    DeleteOptions,
    GetOptions,
    ListOptions,
    Missing,
    Refused,
    Republished,
    Stale,
    StatusOptions,
    WatchOptions,
)
from trimtab.hub.proxies.hydrate import Hydrate
from trimtab.hub.proxies.hydrating import Hydration, ids_in
from trimtab.hub.proxies.names import Names
from trimtab.hub.references import EACH, Reference, references_of
from trimtab.hub.storage.contract import PROJECTS, Snapshot

RED = {"project": "red"}


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def register() -> Register:
    made = Register()
    for name in ("red", "blue", "green"):
        made.add("Project", name)
    return made


@pytest.fixture
def hydrate(service: Service, register: Register) -> Hydrate:
    return Hydrate(service, references_of(Plan, TYPES), Names(register), kind="Plan")


def of(register: Register, kind: str, name: str, project: str | None = None) -> str:
    return register.known[TYPES[kind], project, name]


@pytest.mark.row(22)
@pytest.mark.row(23)
def test_references_come_from_the_markers_of_a_class() -> None:
    assert set(references_of(Plan, TYPES)) == {
        Reference(("spec", "parts", EACH, "name"), "addons.infra"),
        Reference(("spec", "byZone", EACH), "clusters.infra"),
        Reference(("spec", "places", EACH), "clusters.infra"),
        Reference(("spec", "sharing", "projects", EACH, "name"), PROJECTS),
    }


@pytest.mark.row(22)
@pytest.mark.row(23)
async def test_a_resource_has_ids_below_and_names_above(hydrate: Hydrate, service: Service, register: Register) -> None:
    red = of(register, "Project", "red")
    addon = register.add("Addon", "ingress", red)
    zone = register.add("Cluster", "west", red)
    spec = {
        "parts": [{"name": "ingress"}],
        "byZone": {"w": "west"},
        "places": ["west"],
        "secret": "s",
        "sharing": {"enabled": True, "projects": [{"name": "blue"}, {"name": "green"}]},
    }
    answer = await hydrate.apply(plan(spec=spec), ApplyOptions(**RED))
    below = service.rows[red, "a"]
    assert below["metadata"]["project"] == red
    assert "namespace" not in below["metadata"]
    assert below["spec"]["parts"] == [{"name": addon}]
    assert below["spec"]["byZone"] == {"w": zone}
    assert below["spec"]["places"] == [zone]
    assert below["spec"]["secret"] == "s"
    assert [each["name"] for each in below["spec"]["sharing"]["projects"]] == [
        of(register, "Project", "blue"),
        of(register, "Project", "green"),
    ]
    assert answer["spec"] == spec
    assert answer["metadata"]["namespace"] == answer["metadata"]["project"] == "red"
    found = await hydrate.get("a", GetOptions(**RED))
    assert found == answer


@pytest.mark.row(4)
async def test_no_id_leaves_by_any_call(hydrate: Hydrate, register: Register) -> None:
    red = of(register, "Project", "red")
    register.add("Addon", "ingress", red)
    document = plan(spec={"parts": [{"name": "ingress"}], "sharing": {"enabled": True, "projects": [{"name": "blue"}]}})
    document["status"] = {"phase": "Ready"}
    said: list[Any] = [await hydrate.apply(document, ApplyOptions(**RED))]
    said.append(await hydrate.get("a", GetOptions(**RED)))
    said += (await hydrate.list(ListOptions(**RED))).items
    said.append(await hydrate.status("a", StatusOptions(**RED)))
    await hydrate.apply(document, ApplyOptions(**RED))
    watch = hydrate.watch(WatchOptions(), 0)
    for change in (await anext(watch)).changes:
        said += [change.hub, change.before]
    with pytest.raises(Stale) as stale:
        await hydrate.apply(document, ApplyOptions(**RED, expect=1))
    said += [stale.value.current, str(stale.value)]
    with pytest.raises(Missing) as missing:
        await hydrate.get("nothing", GetOptions(**RED))
    said.append(str(missing.value))
    await watch.aclose()
    assert list(ids_in(said)) == []


@pytest.mark.row(22)
async def test_an_unknown_project_is_refused_by_field(hydrate: Hydrate) -> None:
    shared = {"sharing": {"enabled": True, "projects": [{"name": "blue"}, {"name": "pink"}]}}
    with pytest.raises(Refused) as refused:
        await hydrate.apply(plan("a", "grey", spec=shared), ApplyOptions())
    assert refused.value.problems == (
        ("metadata.project", 'there is no project "grey"'),
        ("spec.sharing.projects[1].name", 'there is no project "pink"'),
    )
    with pytest.raises(Missing, match="grey"):
        await hydrate.get("a", GetOptions(project="grey"))
    with pytest.raises(Missing):
        await hydrate.delete("a", DeleteOptions(project="grey"))
    assert (await hydrate.list(ListOptions(project="grey"))).items == []


@pytest.mark.row(22)
async def test_all_projects_have_no_id(hydrate: Hydrate, service: Service, register: Register) -> None:
    everyone = {"enabled": True, "projects": [{"name": "*"}]}
    await hydrate.apply(plan(spec={"sharing": everyone}), ApplyOptions(**RED))
    assert service.rows[of(register, "Project", "red"), "a"]["spec"]["sharing"] == everyone
    assert all("*" not in asked[2] for what, asked in register.questions if what == "ids")


@pytest.mark.row(23)
async def test_a_reference_to_what_is_not_there_stays_a_name(
    hydrate: Hydrate, service: Service, register: Register
) -> None:
    red = of(register, "Project", "red")
    spec = {"parts": [{"name": "later"}, {"name": "name:odd"}, {"name": "f" * 32}]}
    answer = await hydrate.apply(plan(spec=spec), ApplyOptions(**RED))
    below = [part["name"] for part in service.rows[red, "a"]["spec"]["parts"]]
    assert below == ["name:later", "name:name:odd", "name:" + "f" * 32]
    assert answer["spec"] == spec
    made = register.add("Addon", "later", red)
    await hydrate.apply(plan(spec=spec), ApplyOptions(**RED))
    assert service.rows[red, "a"]["spec"]["parts"][0]["name"] == made
    register.drop("Addon", "later", red)
    assert (await hydrate.get("a", GetOptions(**RED)))["spec"] == spec, "what was deleted still has its name"


@pytest.mark.row(22)
async def test_a_list_of_a_thousand_asks_once_and_then_never_again(
    hydrate: Hydrate, service: Service, register: Register
) -> None:
    red, blue = of(register, "Project", "red"), of(register, "Project", "blue")
    for number in range(1000):
        document = plan(f"p{number:04}", red, spec={"sharing": {"enabled": True, "projects": [{"name": blue}]}})
        service.rows[red, document["metadata"]["name"]] = document
    page = await hydrate.list(ListOptions(all_projects=True))
    assert {hub["metadata"]["project"] for hub in page.items} == {"red"}
    assert [what for what, _ in register.questions] == ["names"]
    await hydrate.list(ListOptions(all_projects=True))
    assert len(register.questions) == 1


@pytest.mark.row(22)
async def test_a_watch_batch_is_one_question(hydrate: Hydrate, register: Register) -> None:
    for name in ("a", "b", "c"):
        await hydrate.apply(plan(name), ApplyOptions(**RED))
        await hydrate.apply(plan(name), ApplyOptions(**RED))
    fresh = Hydrate(hydrate.inner, references_of(Plan, TYPES), Names(register))
    register.questions.clear()
    watch = fresh.watch(WatchOptions(), 0)
    batch = await anext(watch)
    assert {change.hub["metadata"]["namespace"] for change in batch.changes} == {"red"}
    assert [change.before is not None for change in batch.changes] == [False, True] * 3
    assert len(register.questions) == 1
    await watch.aclose()


async def test_a_watch_of_a_project_goes_on_when_the_project_is_made_anew(hydrate: Hydrate, register: Register) -> None:
    watch = hydrate.watch(WatchOptions(project="red", all_projects=False), 0)
    assert (await anext(watch)).changes == ()
    await hydrate.apply(plan("a"), ApplyOptions(**RED))
    await hydrate.apply(plan("b", "blue"), ApplyOptions(project="blue"))
    names = [change.hub["metadata"]["name"] for change in (await anext(watch)).changes]
    await hydrate.delete("a", DeleteOptions(**RED))
    register.drop("Project", "red")
    register.add("Project", "red")
    await hydrate.apply(plan("c"), ApplyOptions(**RED))
    names += [change.hub["metadata"]["name"] for change in (await anext(watch)).changes]
    assert names == ["a", "a", "c"]
    await watch.aclose()


@pytest.mark.row(22)
async def test_a_remembered_id_of_a_project_made_anew_misleads_nobody(hydrate: Hydrate, register: Register) -> None:
    await hydrate.apply(plan("a"), ApplyOptions(**RED))
    await hydrate.delete("a", DeleteOptions(**RED))
    register.drop("Project", "red")
    new = register.add("Project", "red")  # by another replica: nobody told us yet
    hydrate.inner.rows[new, "b"] = plan("b", new)
    assert (await hydrate.get("b", GetOptions(**RED)))["metadata"]["name"] == "b"
    hydrate._names._projects["default", "red"] = "0" * 32
    assert [hub["metadata"]["name"] for hub in (await hydrate.list(ListOptions(**RED))).items] == ["b"]
    await hydrate.apply(plan("c"), ApplyOptions(**RED))
    assert (new, "c") in hydrate.inner.rows


async def test_what_is_asked_while_projects_change_is_not_remembered(register: Register) -> None:
    names = Names(register)

    class Slow(Register):
        async def ids(self, *asked: Any) -> Any:
            found = await register.ids(*asked)
            names.forget()
            return found

    names._resolver = Slow()
    assert await names.project("default", "red") is not None
    assert names.remembered("default", "red") is None


async def test_contradicting_projects_are_refused(hydrate: Hydrate) -> None:
    with pytest.raises(Refused, match=r"metadata\.project"):
        await hydrate.apply(plan("a", "blue"), ApplyOptions(**RED))


@pytest.mark.row(28)
async def test_a_version_is_applied_again_though_what_it_names_has_another_id_by_now(
    hydrate: Hydrate, service: Service, register: Register
) -> None:
    red = of(register, "Project", "red")
    spec = {"version": "v1", "parts": [{"name": "later"}]}
    await hydrate.apply(plan(spec=spec), ApplyOptions(**RED))
    service.snapshots[red, "a"] = [Snapshot(version="v1", body=service.rows[red, "a"]["spec"])]
    register.add("Addon", "later", red)
    plain = service.apply

    async def strict(hub: Any, options: ApplyOptions) -> Any:
        if hub["spec"] != service.snapshots[red, "a"][0].body:
            raise Republished("v1", "is published and cannot change")
        return await plain(hub, options)

    service.apply = strict  # type: ignore[method-assign]
    again = await hydrate.apply(plan(spec=spec), ApplyOptions(**RED))
    assert again["spec"] == spec
    with pytest.raises(Refused, match="cannot change"):
        await hydrate.apply(plan(spec={"version": "v1", "parts": [{"name": "other"}]}), ApplyOptions(**RED))
    [shown] = await hydrate.published("a", GetOptions(**RED))
    assert shown.body == spec


names = st.text("abcdef0123456789:*", min_size=1, max_size=40)


@given(parts=st.lists(names, max_size=4), places=st.lists(names, max_size=4), known=st.sets(names))
async def test_down_and_up_again_is_the_same(parts: list[str], places: list[str], known: set[str]) -> None:
    register = Register()
    red = register.add("Project", "red")
    for name in known:
        register.add("Addon", name, red)
        register.add("Cluster", name, red)
    hydration = Hydration(references_of(Plan, TYPES), Names(register), namespaced=True)
    document = plan(spec={"parts": [{"name": name} for name in parts], "places": places})
    below = await hydration.down(document, ApplyOptions(**RED))
    [above] = await hydration.up([below])
    assert above == document


@pytest.mark.row(4)
async def test_an_id_that_nobody_knows_does_not_leave_either(
    hydrate: Hydrate, service: Service, register: Register
) -> None:
    red, lost = of(register, "Project", "red"), 32 * "f"
    row = plan(spec={"parts": [{"name": lost}], "places": [lost]})
    row["metadata"] = {"name": "a", "project": red, "resourceVersion": "1"}
    service.rows[red, "a"] = row
    shown = await hydrate.get("a", GetOptions(**RED))
    assert not list(ids_in(shown))
    assert shown["spec"]["places"] == ["(unknown)"]


@pytest.mark.row(22)
async def test_a_status_may_tell_of_a_project_that_has_gone(service: Service, register: Register) -> None:
    """It tells what was, and whoever writes it cannot help that."""
    references = [Reference(("status", "seen"), PROJECTS), Reference(("spec", "wanted"), PROJECTS)]
    hydrate = Hydrate(service, references, Names(register), kind="Plan")
    told = await hydrate.apply(plan(status={"seen": "gone"}), ApplyOptions(**RED))
    assert told["status"] == {"seen": "gone"}
    with pytest.raises(Refused, match=r'spec\.wanted: there is no project "gone"'):
        await hydrate.apply(plan(spec={"wanted": "gone"}), ApplyOptions(**RED))


async def test_names_are_forgotten_to_make_room_and_asked_for_again(register: Register) -> None:
    names = Names(register, room=2)
    ids = [of(register, "Project", name) for name in ("red", "blue", "green")]
    for _ in range(2):
        for one in ids:
            assert len(await names.names([one])) == 1
            assert len(names.known) <= 2

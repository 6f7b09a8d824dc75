"""A destination that is not where documents come from: what the system has is written there, and never deleted for it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.systems.gitops.desk import Desk, config, message
from tests.systems.gitops.test_both_ways import edit, started
from tests.systems.gitops.test_files import ADDON, VERSION
from tests.systems.gitops.test_files import make as addon
from tests.systems.gitops.test_up import MANIFEST, Up, up
from trimtab.client.artifacts import upload
from trimtab.client.protocol import Query, Ref
from trimtab.lab.git import run
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.yaml import load
from trimtab.systems.gitops.kinds import Repository

__all__ = ["up"]

ONE = {"a.yaml": config("a", x="1")}
OTHER: dict[str, Any] = {"repository": "mirror", "revision": "main"}
ALL: dict[str, Any] = {"include": ["*", "ConfigMap"], "exclude": ["*/Repository/team", "*/Repository/mirror"]}


async def make(desk: Desk, name: str, **data: str) -> None:
    await desk.client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace=desk.namespace), data=data))


async def mirrored(desk: Desk, files: dict[str, str] = ONE, **spec: Any) -> None:
    desk.git.create("mirror", {"README.md": "what the system has"})
    await desk.repository("mirror")
    await started(desk, files, **{**ALL, "destination": OTHER, **spec})


def files(desk: Desk, name: str = "mirror") -> set[str]:
    return {path.removeprefix(f"{desk.namespace}/") for path in desk.git.read(name)}


def said(desk: Desk, path: str) -> Any:
    """The data of a ConfigMap in the destination."""
    return load(desk.git.read("mirror")[path].decode())["data"]


@pytest.mark.row(50)
async def test_what_went_to_another_repository_is_not_deleted_because_the_source_does_not_have_it(desk: Desk) -> None:
    async with desk.working():
        await mirrored(desk)
        await make(desk, "fresh", a="1")
        await desk.repository("extra", endpoint=desk.url())
        wanted = {"README.md", "configmaps/fresh.yaml", "repositories/extra.yaml"}
        await desk.until(lambda sync: files(desk) == wanted)
        count = len(desk.git.history("mirror"))
        for how in ("manual", "webhook", "manual"):
            sync = await desk.again(how=how)
        assert await desk.names() == ["a", "fresh"]
        listing = await desk.client.list(Repository, Query(namespace=desk.namespace))
        assert sorted(item.name for item in listing.items) == ["extra", "mirror", "team"]
        assert sync.status.inventory.count == 1
        assert len(desk.git.history("mirror")) == count
        await desk.ready()


@pytest.mark.row(50)
async def test_what_changes_and_goes_later_does_so_in_the_destination_also_after_a_restart(desk: Desk) -> None:
    path = f"{desk.namespace}/configmaps/fresh.yaml"
    async with desk.working():
        await mirrored(desk)
        await make(desk, "fresh", a="1")
        await desk.until(lambda sync: "configmaps/fresh.yaml" in files(desk))
        await edit(desk, "fresh", a="2")
        await desk.until(lambda sync: said(desk, path) == {"a": "2"})
    async with desk.working("two"):
        await edit(desk, "fresh", a="3")
        await desk.until(lambda sync: said(desk, path) == {"a": "3"})
        await edit(desk, "a", x="2")
        await desk.until(lambda sync: "a.yaml" in files(desk))
        await edit(desk, "a", x="1")
        await desk.until(lambda sync: said(desk, "a.yaml") == {"x": "1"})
        for name in ("fresh", "a"):
            await desk.client.delete(Ref(ConfigMap, name, desk.namespace))
        await desk.until(lambda sync: files(desk) == {"README.md"})
        await desk.again()
        assert files(desk, "team") == {"a.yaml"}


@pytest.mark.row(50)
@pytest.mark.parametrize("place", [{"revision": "drift"}, {"revision": "main", "path": "live"}])
async def test_a_destination_may_be_another_branch_or_folder_of_the_same_repository(
    desk: Desk, place: dict[str, str]
) -> None:
    def there() -> set[str]:
        names = desk.git.read(revision=place["revision"])
        return {name.removeprefix(f"{root}/") for name in names if name.startswith(root)}

    root = place.get("path", "")
    async with desk.working():
        await started(desk, {"in/a.yaml": config("a", x="1")}, path="in")
        await desk.change(destination={"repository": "team", **place})
        await make(desk, "fresh", a="1")
        await desk.until(lambda sync: sync.status.last_pushed_revision)
        assert there() == {f"{desk.namespace}/configmaps/fresh.yaml"}
        await edit(desk, "a", x="2")
        await desk.until(lambda sync: "a.yaml" in there())
        count = len(desk.git.history(revision=place["revision"]))
        for _ in range(2):
            await desk.again()
        assert len(desk.git.history(revision=place["revision"])) == count
        assert desk.git.read()["in/a.yaml"].decode() == config("a", x="1")
        assert await desk.names() == ["a", "fresh"]


async def test_a_destination_that_is_the_source_is_none(desk: Desk) -> None:
    async with desk.working():
        await started(desk, ONE, destination={"repository": "team", "revision": "main", "path": "/"})
        await make(desk, "fresh", a="1")
        await desk.until(lambda sync: f"{desk.namespace}/configmaps/fresh.yaml" in desk.git.read())
        assert (await desk.ready()).status.inventory.count == 2


@pytest.mark.parametrize(
    ("revision", "path"), [("main", "live"), ("refs/heads/main", "live"), ("HEAD", "live"), ("HEAD", "")]
)
async def test_a_destination_within_what_is_synced_is_refused(desk: Desk, revision: str, path: str) -> None:
    desk.git.create("team", ONE)
    await desk.repository()
    to = {"repository": "team", "revision": "main", "path": path}
    async with desk.working():
        await desk.sync(revision=revision, systemToGit=True, destination=to)
        assert "spec.destination.path: is in the folder" in message(await desk.reason("InvalidSpec"))


async def test_a_destination_within_what_is_synced_is_refused_by_another_name_of_its_repository(desk: Desk) -> None:
    await desk.repository("same", endpoint=f"{desk.url()}/")
    async with desk.working():
        await started(desk, ONE, destination={"repository": "same", "revision": "main", "path": "live"})
        await edit(desk, "a", x="2")
        assert "same and team are one repository" in message(await desk.reason("InvalidSpec"))
        assert set(desk.git.read()) == set(ONE)


async def test_a_destination_that_is_a_tag_is_told_and_is_no_race(desk: Desk) -> None:
    async with desk.working():
        await mirrored(desk)
        run("-C", str(desk.git.path("mirror")), "tag", "v1")
        await desk.change(destination={**OTHER, "revision": "v1"})
        await edit(desk, "a", x="2")
        told = message(await desk.reason("InvalidSpec"))
        assert "spec.destination.revision: is written to, so it must be the name of a branch; 'v1' is a tag" in told


async def test_a_destination_that_is_not_there_is_told_by_its_own_field(desk: Desk) -> None:
    async with desk.working():
        await started(desk, ONE, destination={"repository": "nowhere", "revision": "main"})
        await edit(desk, "a", x="2")
        assert message(await desk.reason("RepositoryMissing")).startswith("spec.destination.repository: ")


@pytest.mark.row(50)
async def test_documents_of_one_file_have_files_of_their_own_in_the_destination(desk: Desk) -> None:
    both = "---\n".join((config("a", x="1"), config("b", x="1")))
    async with desk.working():
        await mirrored(desk, {"all.yaml": both}, triggers={"internal": False})
        for name in ("a", "b"):
            await edit(desk, name, x="2")
        await desk.again()
        assert files(desk) == {"README.md", "configmaps/a.yaml", "configmaps/b.yaml"}
        await desk.ready()


async def test_what_another_put_into_the_destination_is_not_overwritten_and_the_same_document_is(desk: Desk) -> None:
    path = f"{desk.namespace}/configmaps"
    async with desk.working():
        await mirrored(desk, triggers={"internal": False})
        theirs = {f"{path}/one.yaml": config("another", a="1"), f"{path}/two.yaml": f"# ours\n{config('two', a='1')}"}
        desk.git.commit("mirror", theirs)
        for name in ("one", "two"):
            await make(desk, name, a="2")
        sync = await desk.again()
        assert message(sync) == f"1 document left alone: {path}/one.yaml: is not written to Git: exists"
        found = desk.git.read("mirror")
        assert found[f"{path}/one.yaml"].decode() == theirs[f"{path}/one.yaml"]
        assert found[f"{path}/two.yaml"].startswith(b"# ours\n")
        assert b"'2'" in found[f"{path}/two.yaml"]


async def test_many_deletions_in_the_destination_wait_for_a_person(desk: Desk) -> None:
    names = [f"n{number}" for number in range(4)]
    async with desk.working():
        await mirrored(desk, triggers={"internal": False}, deletionGuard={"maxCount": 2, "maxPercent": 50})
        for name in names:
            await make(desk, name, a="1")
        await desk.again()
        for name in names[:3]:
            await desk.client.delete(Ref(ConfigMap, name, desk.namespace))
        await desk.again()
        sync = await desk.reason("MassDelete")
        assert sync.status.held.count == 3
        assert {f"configmaps/{name}.yaml" for name in names} < files(desk)


async def test_another_destination_gets_all_of_it(desk: Desk) -> None:
    async with desk.working():
        await mirrored(desk)
        await make(desk, "fresh", a="1")
        await desk.until(lambda sync: "configmaps/fresh.yaml" in files(desk))
        await desk.change(destination={**OTHER, "path": "new"})
        await desk.until(lambda sync: f"new/{desk.namespace}/configmaps/fresh.yaml" in desk.git.read("mirror"))
        assert await desk.names() == ["a", "fresh"]


@pytest.mark.row(50)
async def test_hub_kinds_and_their_files_go_to_the_destination_and_leave_it_with_their_object(up: Up) -> None:
    up.git.create("team", ONE)
    up.git.create("mirror", {"README.md": "what the system has"})
    await up.repository()
    await up.repository("mirror")
    await up.sync(systemToGit=True, destination=OTHER, exclude=["Repository"])
    await up.ready()
    await addon(up, "limits", "limits.yaml", MANIFEST.encode())
    place = "addons/limits"
    wanted = {"README.md", f"{place}/limits.yaml", f"{place}/limits-2.yaml"}
    await up.until(lambda sync: files(up) == wanted)
    await up.again()
    planned = await up.trimtab("plan", "fleet")
    assert "prune" not in planned.stdout, planned.stdout
    assert planned.returncode == 0

    async def other() -> Any:
        yield b"other"

    await upload(up.client, ADDON, "limits", "limits.yaml", other(), namespace=up.namespace)
    await up.until(lambda sync: up.git.read("mirror")[f"{up.namespace}/{place}/limits.yaml"] == b"other")
    count = len(up.git.history("mirror"))
    for _ in range(2):
        await up.again()
    assert len(up.git.history("mirror")) == count
    assert await up.live("limits", "Addon", VERSION) is not None
    await up.client.delete(Ref(ADDON, "limits", up.namespace))
    await up.until(lambda sync: files(up) == {"README.md"})

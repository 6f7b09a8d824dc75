"""Both ways: what changed in the system is written to Git, what changed on both sides is merged, and nothing goes round."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import pytest
from msgspec import UNSET

from tests.runtime.widgets import until_gone
from tests.systems.gitops.desk import Desk, config, message
from trimtab.client.protocol import Named, Ref
from trimtab.lab.git import run
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap, Namespace, Secret
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Untyped
from trimtab.runtime.git.mirror import Mirror
from trimtab.systems.gitops import running
from trimtab.systems.gitops.kinds import GitSync
from trimtab.systems.gitops.kinds.fields import CONFIRM
from trimtab.systems.gitops.sending import Sender

BOTH: dict[str, Any] = {"systemToGit": True, "include": ["ConfigMap"]}
COMMENTED = "# what the shop looks like\n" + config("shop", color="red", size="small").replace(
    "  color: 'red'\n", "  color: 'red'  # as the brand has it\n"
)


async def edit(desk: Desk, name: str, **data: str | None) -> None:
    """As a person does in the system."""
    while True:
        held = await desk.client.get(ConfigMap, name, desk.namespace)
        changed = {**(held.data or {}), **data}
        try:
            await desk.client.patch(held, held.replace(data={k: v for k, v in changed.items() if v is not None}))
            return
        except StatusError as error:
            if error.code != 409:
                raise


async def started(desk: Desk, files: dict[str, str], **spec: Any) -> None:
    desk.git.create("team", files)
    await desk.repository()
    await desk.sync(**{**BOTH, **spec})
    await desk.ready()


@pytest.mark.row(47)
@pytest.mark.row(49)
async def test_a_change_in_the_system_is_committed_in_place_with_comments_kept(desk: Desk) -> None:
    async with desk.working():
        await started(desk, {"shop.yaml": COMMENTED})
        before = desk.git.head()
        await edit(desk, "shop", size="large")
        await desk.until(lambda sync: sync.status.last_pushed_revision == desk.git.head() != before)
        await desk.ready()
        assert desk.git.read()["shop.yaml"].decode() == COMMENTED.replace("small", "large")
        assert len(desk.git.history()) == 2


async def test_an_edit_while_git_is_asked_is_not_overwritten_by_what_git_says(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system is looked at while Git is asked. What was seen then is too old for a commit that is new."""
    asked = running.head_of

    async def head_of(mirror: Mirror, sync: GitSync) -> str:
        head = await asked(mirror, sync)
        if head == pushed and not edited:
            edited.append(head)
            await edit(desk, "shop", color="green")
        return head

    pushed, edited = "", list[str]()
    async with desk.working():
        await started(desk, {"shop.yaml": config("shop", color="red")})
        await desk.again()
        monkeypatch.setattr(running, "head_of", head_of)
        pushed = desk.git.commit("team", {"shop.yaml": config("shop", color="blue")})
        await desk.ask()
        await desk.reason("Conflicts")
        live = await desk.live("shop")
        assert live is not None
        assert live["data"] == {"color": "green"}


@pytest.mark.row(49)
async def test_new_objects_and_deletions_in_the_system_go_to_git(desk: Desk) -> None:
    async with desk.working():
        await started(desk, {"shop.yaml": COMMENTED, "other.yaml": config("other", a="1")})
        made = ConfigMap(metadata=ObjectMeta(name="fresh", namespace=desk.namespace), data={"a": "1"})
        await desk.client.create(made)
        await desk.client.delete(Ref(ConfigMap, "shop", desk.namespace))
        await desk.until(lambda sync: "shop.yaml" not in desk.git.read() and len(desk.git.read()) == 2)
        files = desk.git.read()
        path = f"{desk.namespace}/configmaps/fresh.yaml"
        assert set(files) == {"other.yaml", path}
        assert b"name: fresh" in files[path]
        assert b"uid" not in files[path]


async def test_what_was_left_alone_again_and_again_goes_to_git_when_that_is_asked_for(desk: Desk) -> None:
    """A sync remembers with what there was nothing to do; what that means depends on what is asked for."""
    async with desk.working():
        await started(desk, {"shop.yaml": config("shop", color="red")}, systemToGit=False)
        await edit(desk, "shop", size="large")
        for _ in range(2):
            await desk.again()
        assert desk.git.read()["shop.yaml"].decode() == config("shop", color="red")
        await desk.change(**BOTH)
        await desk.until(lambda sync: sync.status.last_pushed_revision == desk.git.head())
        assert b"size: large" in desk.git.read()["shop.yaml"]


async def test_changes_of_different_fields_on_both_sides_are_merged(desk: Desk) -> None:
    async with desk.working():
        await started(desk, {"shop.yaml": config("shop", color="red", size="small")}, suspend=False)
        await desk.change(suspend=True)
        await desk.reason("Suspended")
        await edit(desk, "shop", size="large")
        desk.git.commit("team", {"shop.yaml": config("shop", color="blue", size="small")})
        await desk.change(suspend=False)
        await desk.until(lambda sync: b"large" in desk.git.read()["shop.yaml"])
        await desk.ready()
        live = await desk.live("shop")
        assert live is not None
        assert live["data"] == {"color": "blue", "size": "large"}
        assert desk.git.read()["shop.yaml"].decode() == config("shop", color="blue", size="large")


async def conflicting(desk: Desk, **spec: Any) -> None:
    await started(desk, {"shop.yaml": config("shop", color="red", size="small")}, **spec)
    await desk.change(suspend=True)
    await desk.reason("Suspended")
    await edit(desk, "shop", color="green")
    desk.git.commit("team", {"shop.yaml": config("shop", color="blue", size="small")})
    await desk.change(suspend=False)


async def test_a_conflict_is_held_with_both_sides_until_a_person_decides(desk: Desk) -> None:
    async with desk.working():
        await conflicting(desk)
        sync = await desk.reason("Conflicts")
        assert sync.status.conflicts == 1
        (conflict,) = await desk.conflicts()
        (field,) = conflict.spec.fields
        assert (field.path, field.base, field.git, field.system) == ("data.color", '"red"', '"blue"', '"green"')
        live = await desk.live("shop")
        assert live is not None
        assert live["data"]["color"] == "green"
        assert b"blue" in desk.git.read()["shop.yaml"]
        decided = conflict.replace(spec=conflict.spec.replace(resolution="system"))
        await desk.client.patch(conflict, decided)
        await desk.until(lambda sync: b"green" in desk.git.read()["shop.yaml"])
        await desk.ready()
        assert await desk.conflicts() == []


async def test_a_conflict_of_many_long_values_fits_into_its_object_and_is_decided_whole(desk: Desk) -> None:
    def data(word: str) -> dict[str, str]:
        return {f"k{number}": word * 1000 for number in range(200)}

    async with desk.working():
        await started(desk, {"shop.yaml": config("shop", **data("red"))})
        await desk.change(suspend=True)
        await desk.reason("Suspended")
        await edit(desk, "shop", **data("green"))
        desk.git.commit("team", {"shop.yaml": config("shop", **data("blue"))})
        await desk.change(suspend=False)
        await desk.reason("Conflicts")
        (conflict,) = await desk.conflicts()
        assert len(conflict.spec.fields) == 200
        await desk.change(suspend=True)
        await desk.reason("Suspended")
        await edit(desk, "shop", k7="green" * 1000 + "er")  # it begins as before
        await desk.client.patch(conflict, conflict.replace(spec=conflict.spec.replace(resolution="git")))
        await desk.change(suspend=False)
        await desk.again()
        (anew,) = await desk.conflicts()
        assert anew.spec.resolution is UNSET, "it was decided of another value"
        await desk.client.patch(anew, anew.replace(spec=anew.spec.replace(resolution="git")))
        await desk.ready()
        assert (await desk.live("shop") or {})["data"] == data("blue")


@pytest.mark.parametrize(("policy", "wins"), [("git", "blue"), ("system", "green")])
async def test_a_policy_decides_conflicts_by_itself(desk: Desk, policy: str, wins: str) -> None:
    async with desk.working():
        await conflicting(desk, conflictPolicy=policy)
        await desk.until(lambda sync: wins.encode() in desk.git.read()["shop.yaml"])
        await desk.ready()
        live = await desk.live("shop")
        assert live is not None
        assert live["data"]["color"] == wins
        assert await desk.conflicts() == []


async def test_idle_cycles_leave_commits_and_objects_as_they_are(desk: Desk) -> None:
    async with desk.working():
        await started(desk, {"shop.yaml": COMMENTED, "b.yaml": config("b", a="1")})
        await edit(desk, "shop", size="large")
        await desk.until(lambda sync: sync.status.last_pushed_revision == desk.git.head())
        await desk.again()
        before = {name: version for name, version in (await desk.versions()).items() if "GitSync" not in name}
        commits = desk.git.history()
        for _ in range(5):
            await desk.again()
        after = {name: version for name, version in (await desk.versions()).items() if "GitSync" not in name}
        assert (after, desk.git.history()) == (before, commits)


async def test_secrets_are_never_written_to_git(desk: Desk) -> None:
    async with desk.working():
        await started(desk, {"b.yaml": config("b", a="1")}, include=["ConfigMap", "Secret"])
        await desk.secret("login", password="hunter2")
        await desk.client.create(ConfigMap(metadata=ObjectMeta(name="c", namespace=desk.namespace), data={"x": "y"}))
        await desk.until(lambda sync: len(desk.git.read()) == 2)
        assert not any(b"hunter2" in data or b"aHVudGVyMg" in data for data in desk.git.read().values())
        assert await desk.client.get(Secret, "login", desk.namespace)


async def test_an_empty_branch_gets_its_first_commit_from_the_system(desk: Desk) -> None:
    async with desk.working():
        desk.git.create("team")
        await desk.repository()
        await desk.client.create(ConfigMap(metadata=ObjectMeta(name="c", namespace=desk.namespace), data={"x": "y"}))
        await desk.sync(**BOTH)
        await desk.until(lambda sync: bool(desk.git.head()) and sync.status.last_applied_revision == desk.git.head())
        assert f"{desk.namespace}/configmaps/c.yaml" in desk.git.read()


async def test_what_git_changed_is_applied_later_when_it_could_not_be_after_a_push(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both sides changed: the merge is pushed first, and then the server does not take its part."""

    async def refuse(*arguments: Any) -> Any:
        raise StatusError(403, "Forbidden", "not now")

    async with desk.working():
        await started(desk, {"shop.yaml": config("shop", color="red", size="small")}, triggers={"internal": False})
        await edit(desk, "shop", size="large")
        desk.git.commit("team", {"shop.yaml": config("shop", color="blue", size="small")})
        with monkeypatch.context() as patch:
            patch.setattr(Sender, "_ask", refuse)
            await desk.ask()
            await desk.reason("ApplyFailed")
        assert desk.git.read()["shop.yaml"].decode() == config("shop", color="blue", size="large")
        await desk.again()
        await desk.ready()
        live = await desk.live("shop")
        assert live is not None
        assert live["data"] == {"color": "blue", "size": "large"}


async def test_an_object_of_another_sync_is_not_new_to_this_one(desk: Desk) -> None:
    """A sync that writes all ConfigMaps to Git leaves those alone that another one has there."""
    desk.git.create("team", {"a.yaml": config("a", x="1")})
    desk.git.create("second", {"b.yaml": config("b", x="1")})
    await desk.repository()
    await desk.repository("second")
    async with desk.working():
        await desk.sync()
        await desk.ready()
        await desk.sync("second", repository="second", **BOTH)
        await desk.reason("Synced", "second")
        assert sorted(desk.git.read("second")) == ["b.yaml"]


@pytest.mark.parametrize("revision", ["refs/heads/main", "v1", "commit"])
async def test_what_cannot_be_written_to_is_told_and_is_no_race(desk: Desk, revision: str) -> None:
    """A full name, a tag and a commit can be read. A branch is all that a change can go to."""
    head = desk.git.create("team", {"a.yaml": config("a", x="1")})
    run("-C", str(desk.git.path("team")), "tag", "v1")
    await desk.repository()
    async with desk.working():
        await desk.sync(revision=head if revision == "commit" else revision)
        await desk.ready()
        await edit(desk, "a", x="2")
        await desk.change(**BOTH)
        sync = await desk.reason("InvalidSpec")
        assert "spec.revision: is written to, so it must be the name of a branch" in message(sync)
        refs = run("-C", str(desk.git.path("team")), "for-each-ref", "--format=%(refname)").split()
        assert refs == [b"refs/heads/main", b"refs/tags/v1"]


async def test_a_namespace_that_is_deleted_takes_nothing_out_of_git(desk: Desk) -> None:
    """Its objects go before the sync does. The embedded server deletes that, too; a bare kube-apiserver deletes nothing."""
    desk.git.create("team", {"a.yaml": config("a", x="1"), "b.yaml": config("b", x="1")})
    await desk.repository()
    async with desk.working():
        await desk.sync(**BOTH)
        await desk.ready()
        await desk.client.delete(Ref(Namespace, desk.namespace))
        with contextlib.suppress(StatusError):  # the server may have been faster
            await desk.client.delete(Ref(ConfigMap, "a", desk.namespace))
        gone = asyncio.create_task(until_gone(desk.client, GitSync, "fleet", desk.namespace))
        told = asyncio.create_task(desk.reason("NamespaceDeleting"))
        _, late = await asyncio.wait({gone, told}, return_when=asyncio.FIRST_COMPLETED)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
    assert sorted(desk.git.read("team")) == ["a.yaml", "b.yaml"]


async def test_an_item_that_came_from_the_system_goes_when_git_takes_it_away(desk: Desk) -> None:
    """Whoever made it owns it still: an apply alone would leave it there."""
    one, two = {"name": "one", "port": 1}, {"name": "two", "port": 2}
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"ports": [one]},
    }
    async with desk.working():
        await started(desk, {"web.json": json.dumps(document)}, include=["Service"])
        held = await desk.client.get(Named("v1", "Service"), "web", desk.namespace)
        ports = [*held.raw["spec"]["ports"], {**two, "protocol": "TCP", "targetPort": 2}]
        await desk.client.patch(held, Untyped({**held.raw, "spec": {**held.raw["spec"], "ports": ports}}))
        await desk.until(lambda sync: b"two" in desk.git.read()["web.json"])
        await desk.again()
        desk.git.commit("team", {"web.json": json.dumps(document)})
        await desk.again()
        await desk.ready()
        live = await desk.live("web", "Service")
        assert live is not None
        assert [port["name"] for port in live["spec"]["ports"]] == ["one"]


@pytest.mark.parametrize("gone", ["documents", "branch"])
async def test_a_new_object_does_not_let_the_deletions_of_an_empty_source_pass(desk: Desk, gone: str) -> None:
    """Its document would be the only one in Git, and all others as good as deleted."""
    async with desk.working():
        documents = {"a.yaml": config("a", x="1"), "b.yaml": config("b", x="1")}
        await started(desk, {"README": "two", **documents})
        if gone == "branch":
            run("-C", str(desk.git.path()), "update-ref", "-d", "refs/heads/main")
        else:
            desk.git.commit("team", dict.fromkeys(documents))
        await desk.again()
        before = desk.git.head()
        await desk.client.create(ConfigMap(metadata=ObjectMeta(name="new", namespace=desk.namespace), data={"x": "1"}))
        for _ in range(3):
            sync = await desk.again()
        assert await desk.names() == ["a", "b", "new"]
        assert desk.git.head() == before
        assert sync.status.held.reason == "EmptySource"
        await desk.change(annotations={CONFIRM: sync.status.held.plan})
        await desk.until(lambda sync: not sync.status.held)
        await desk.again()
        await desk.ready()
        assert await desk.names() == ["new"]
        assert f"{desk.namespace}/configmaps/new.yaml" in desk.git.read()


async def test_a_conflict_in_a_file_with_a_long_path_is_one_like_any_other(desk: Desk) -> None:
    path = "/".join(["d" * 100] * 12) + "/a.yaml"
    async with desk.working():
        await started(desk, {path: config("a", x="1")}, triggers={"interval": "1h", "internal": False})
        desk.git.commit("team", {path: config("a", x="2")})
        await edit(desk, "a", x="3")
        await desk.again()
        await desk.reason("Conflicts")
        [found] = await desk.conflicts()
        await desk.client.patch(found, found.replace(spec=found.spec.replace(resolution="system")))
        await desk.until(lambda sync: b"3" in desk.git.read()[path])

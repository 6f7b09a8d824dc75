"""Projects and their namespaces."""

from __future__ import annotations

import contextlib

from tests.systems.platform.stage import Stage, condition_of, config_map
from trimtab.client.protocol import Named, Ref
from trimtab.model.errors import StatusError
from trimtab.model.hub import HubResource
from trimtab.model.kubernetes import Namespace
from trimtab.model.resource import Spec
from trimtab.model.scheme import Untyped
from trimtab.runtime.objects import with_metadata
from trimtab.runtime.prepare import prepare
from trimtab.runtime.system import System
from trimtab.systems.platform.kinds import Addon, Cluster, Project, Workload

NAMESPACE = Named("v1", "Namespace")


async def test_a_project_makes_its_namespace_and_takes_it_away(stage: Stage) -> None:
    async with stage.working():
        await stage.create(Project, "", "team", {})
        done = await stage.ready(Project, "", "team")
        assert done["status"]["namespace"] == "team"
        made = await stage.hub.get(Namespace, "team")
        assert (made.metadata.labels or {})["hub.trimtab.dev/project"] == "team"
        await stage.delete(Project, "", "team")
        await stage.gone(Project, "", "team")
        await stage.gone(NAMESPACE, "", "team")


async def test_a_namespace_that_went_is_made_again(stage: Stage) -> None:
    async with stage.working():
        await stage.create(Project, "", "team", {})
        await stage.ready(Project, "", "team")
        first = await stage.hub.get(Namespace, "team")
        await stage.hub.delete(Ref(Namespace, "team"))
        await stage.until(NAMESPACE, "", "team", lambda found: found["metadata"]["uid"] != first.metadata.uid)


async def test_a_namespace_of_others_is_adopted_only_when_that_is_said_and_is_never_deleted(stage: Stage) -> None:
    await stage.namespace("team")
    async with stage.working():
        await stage.create(Project, "", "team", {})
        await stage.condition(Project, "", "team", "Ready", "False", "NamespaceExists")
        await stage.change(Project, "", "team", lambda spec: spec.update(adopt=True))
        done = await stage.ready(Project, "", "team")
        assert done["status"]["adopted"] is True
        await stage.delete(Project, "", "team")
        await stage.gone(Project, "", "team")
    left = await stage.hub.get(Namespace, "team")
    assert not left.metadata.deletion_timestamp
    assert not [name for name in left.metadata.annotations or {} if name.startswith("hub.trimtab.dev/")]


async def test_a_namespace_that_was_made_for_a_project_of_this_name_that_is_gone_is_its_own(stage: Stage) -> None:
    """As when one is deleted right after it was made: its namespace is there before its controller knows of it."""
    metadata = {
        "name": "team",
        "labels": {"hub.trimtab.dev/project": "team"},
        "annotations": {"hub.trimtab.dev/made-for": "another-uid"},
    }
    await stage.hub.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
    async with stage.working():
        await stage.create(Project, "", "team", {})
        done = await stage.ready(Project, "", "team")
        assert condition_of(done, "Ready")["reason"] == "NamespaceMade"
        await stage.delete(Project, "", "team")
        await stage.gone(Project, "", "team")
        await stage.gone(NAMESPACE, "", "team")


async def test_a_namespace_that_something_controls_is_not_adopted(stage: Stage) -> None:
    await stage.namespace("team")
    found = await stage.hub.get(Namespace, "team")
    holder = await stage.hub.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "boss"}}))
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": "boss", "uid": holder.metadata.uid, "controller": True}
    document = dict(found.raw or {})
    await stage.hub.patch(
        Untyped(document), Untyped({**document, "metadata": {**document["metadata"], "ownerReferences": [owner]}})
    )
    async with stage.working():
        await stage.create(Project, "", "team", {"adopt": True})
        told = await stage.condition(Project, "", "team", "Ready", "False", "NamespaceTaken")
    assert "boss" in condition_of(told, "Ready")["message"]


async def test_a_project_with_resources_stays_until_they_are_gone_or_go_with_it(stage: Stage) -> None:
    async with stage.working():
        await stage.create(Project, "", "team", {})
        await stage.ready(Project, "", "team")
        one = await stage.imported("team", "one")
        await stage.addon("team", "mesh", config_map("mesh"))
        await stage.workload("team", "shop", config_map("a"), ["one"])
        await stage.ready(Workload, "team", "shop")
        await stage.delete(Project, "", "team")
        told = await stage.until(Project, "", "team", lambda p: condition_of(p, "Ready").get("reason") == "NotEmpty")
        assert "Workload shop" in condition_of(told, "Ready")["message"]
        await stage.change(Project, "", "team", lambda spec: spec.update(deletion="Cascade"))
        for kind, name in ((Workload, "shop"), (Cluster, "one"), (Addon, "mesh")):
            await stage.until(Project, "", "team", lambda p, k=kind: k.__name__ in condition_of(p, "Ready")["message"])
            await stage.gone(kind, "team", name)
            with contextlib.suppress(StatusError):  # it may be gone by now
                await stage.nudge(Project, "", "team")
        await stage.gone(Project, "", "team")
    assert "a" not in await one.config_maps("web")


class GitSyncSpec(Spec):
    """As far as a project asks."""


class GitSync(HubResource, group="hub", version="v3", plural="gitsyncs"):
    spec: GitSyncSpec


async def test_a_project_with_resources_of_others_kinds_stays_until_they_are_gone(stage: Stage) -> None:
    """Which the hub tells of in its status, for they are not known here."""

    async def told(resources: int) -> None:
        while True:
            found = await stage.hub.get(Project, "team")
            status = {**dict(found.raw or {}).get("status", {}), "resources": resources}
            try:
                await stage.hub.patch(found, Untyped({**dict(found.raw or {}), "status": status}), subresource="status")
                return
            except StatusError as error:
                if error.code != 409:
                    raise

    async with stage.working():
        await stage.create(Project, "", "team", {})
        await stage.ready(Project, "", "team")
        found = await stage.hub.get(Project, "team")
        held = with_metadata(found, finalizers=(*(found.metadata.finalizers or ()), "tests.trimtab.dev/hold"))
        await stage.hub.patch(found, held)
    await stage.delete(Project, "", "team")
    await told(2)
    async with stage.working():
        waits = await stage.condition(Project, "", "team", "Ready", "False", "NotEmpty")
        assert "2 resources of kinds of others" in condition_of(waits, "Ready")["message"]
        assert not (await stage.hub.get(Namespace, "team")).metadata.deletion_timestamp
        await told(0)
        await stage.gone(NAMESPACE, "", "team")


async def test_syncs_go_before_what_they_would_put_back_or_take_out_of_git(stage: Stage) -> None:
    await prepare(stage.hub, (System(name="gitops", kinds=(GitSync,)),), rights=False)
    async with stage.working():
        await stage.create(Project, "", "team", {"deletion": "Cascade"})
        await stage.ready(Project, "", "team")
        await stage.create(GitSync, "team", "fleet", {}, finalizers=["example.com/last-words"])
        await stage.workload("team", "shop", config_map("a"), "site=none")
        await stage.delete(Project, "", "team")
        told = await stage.until(Project, "", "team", lambda p: condition_of(p, "Ready").get("reason") == "Emptying")
        assert "GitSync fleet" in condition_of(told, "Ready")["message"]
        assert not (await stage.hub.get(Workload, "shop", "team")).metadata.deletion_timestamp
        held = await stage.hub.get(GitSync, "fleet", "team")
        await stage.hub.patch(held, with_metadata(held, finalizers=()))
        await stage.gone(GitSync, "team", "fleet")
        with contextlib.suppress(StatusError):  # it may be gone by now
            await stage.nudge(Project, "", "team")
        await stage.gone(Workload, "team", "shop")


async def test_a_system_s_namespace_is_no_project_s(stage: Stage) -> None:
    async with stage.working():
        await stage.create(Project, "", "trimtab-system", {"adopt": True})
        await stage.condition(Project, "", "trimtab-system", "Ready", "False", "NamespaceReserved")

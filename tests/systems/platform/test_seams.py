"""What falls between two looks: a set that moves, one that is half there, and names that come to mean others."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from tests.systems.platform.stage import CONFIG_MAP as CM
from tests.systems.platform.stage import Document, Site, Stage, condition_of, config_map, kubeconfig, part_of, until
from trimtab.client.protocol import Named, Ref
from trimtab.client.transport import Call
from trimtab.model.errors import StatusError
from trimtab.model.redacted import Redacted
from trimtab.model.scheme import Untyped
from trimtab.runtime.objects import with_metadata
from trimtab.systems.platform import provisioners
from trimtab.systems.platform.kinds import Blueprint, Cluster, Workload
from trimtab.systems.platform.provisioners import Provisioned


@pytest.fixture
async def one(stage: Stage) -> Site:
    await stage.namespace("team")
    return await stage.imported("team", "one")


async def tampered(site: Site, name: str) -> None:
    live = await site.client.get(CM, name, "web")
    await site.client.patch(live, Untyped({**live.raw, "data": {"x": "hacked"}}))


async def looked(stage: Stage, site: Site) -> None:
    """Another look was taken, to its end."""
    await stage.nudge(Workload, "team", "shop")
    found = await stage.hub.get(Workload, "shop", "team")
    nudge = (found.metadata.annotations or {})["tests.trimtab.dev/nudge"]
    site.wire.calls.clear()
    await stage.annotate(Workload, "team", "shop", {"tests.trimtab.dev/nudge": f"{nudge}-again"})
    await site.wire.seen(lambda calls: any("/namespaces/web/" in call.path for call in calls))


@pytest.mark.parametrize("action", ["Detect", "Correct"])
async def test_another_namespace_is_no_drift_and_is_applied(stage: Stage, one: Site, action: str) -> None:
    async with stage.working():
        await stage.workload("team", "shop", config_map("a", x="1"), ["one"], drift={"action": action})
        await stage.ready(Workload, "team", "shop")
        await stage.change(Workload, "team", "shop", lambda spec: spec.update(namespace="shop"))
        await stage.ready(Workload, "team", "shop")
    assert (await one.config_maps("shop"))["a"] == {"x": "1"}
    assert "a" not in await one.config_maps("web")
    assert "DriftCorrected" not in [reason for reason, _ in await stage.events("shop", "team")]


async def test_what_is_only_to_be_detected_stays_also_when_an_object_is_being_deleted(stage: Stage, one: Site) -> None:
    content = config_map("a", x="1") + config_map("b", x="1")
    async with stage.working():
        await stage.workload("team", "shop", content, ["one"], drift={"action": "Detect"})
        await stage.ready(Workload, "team", "shop")
        live = await one.client.get(CM, "b", "web")
        await one.client.patch(live, with_metadata(live, finalizers=("tests.trimtab.dev/hold",)))
        await one.client.delete(Ref(CM, "b", "web"))
        await tampered(one, "a")
        await stage.nudge(Workload, "team", "shop")
        await stage.until(Workload, "team", "shop", lambda w: part_of(w, "one").get("reason") == "BeingDeleted")
        await looked(stage, one)
        await looked(stage, one)
    assert (await one.config_maps("web"))["a"] == {"x": "hacked"}


async def test_drift_that_nobody_asks_for_is_neither_told_nor_put_back(stage: Stage, one: Site) -> None:
    async with stage.working():
        await stage.workload("team", "shop", config_map("a") + config_map("b", x="1"), ["one"], drift={"action": "Off"})
        await stage.ready(Workload, "team", "shop")
        await one.client.delete(Ref(CM, "a", "web"))
        await tampered(one, "b")
        await stage.nudge(Workload, "team", "shop")
        await stage.until(Workload, "team", "shop", lambda w: part_of(w, "one")["healthy"] == 1)
        await looked(stage, one)
        await looked(stage, one)
    maps = await one.config_maps("web")
    assert "a" not in maps
    assert maps["b"] == {"x": "hacked"}
    assert not any(reason.startswith("Drift") for reason, _ in await stage.events("shop", "team"))


async def test_a_way_back_from_manifests_that_failed_half_way_is_no_drift(stage: Stage, one: Site) -> None:
    first, then = config_map("a", x="1") + config_map("b", x="1"), config_map("a", x="2") + config_map("b", x="2")
    async with stage.working():
        await stage.workload("team", "shop", first, ["one"], drift={"action": "Detect"})
        await stage.ready(Workload, "team", "shop")
        one.wire.refuse = lambda call: (
            StatusError(403, "Forbidden", "no") if call.path.endswith("/configmaps/b") and not call.safe else None
        )
        stage.files["shop", "all.yaml"] = then.encode()
        await stage.nudge(Workload, "team", "shop")
        await stage.until(Workload, "team", "shop", lambda w: part_of(w, "one").get("reason") == "ApplyFailed")
        assert (await one.config_maps("web"))["a"] == {"x": "2"}
        one.wire.refuse = lambda call: None
        stage.files["shop", "all.yaml"] = first.encode()
        await stage.nudge(Workload, "team", "shop")
        await stage.ready(Workload, "team", "shop")
    assert (await one.config_maps("web"))["a"] == {"x": "1"}


async def test_a_crash_in_the_midst_of_a_change_and_a_way_back_are_no_drift(stage: Stage, one: Site) -> None:
    first = config_map("a", x="1") + config_map("b", x="1")
    dead = asyncio.Event()
    async with stage.working():
        await stage.workload("team", "shop", first, ["one"], drift={"action": "Detect"})
        await stage.ready(Workload, "team", "shop")

        def dies(call: Call) -> Exception | None:
            if call.safe or not call.path.endswith("/configmaps/b"):
                return None
            dead.set()
            return RuntimeError("the process ends here")

        one.wire.refuse = dies
        stage.files["shop", "all.yaml"] = (config_map("a", x="2") + config_map("b", x="2")).encode()
        await stage.nudge(Workload, "team", "shop")
        async with asyncio.timeout(20):
            await dead.wait()  # and nothing more is written
    one.wire.refuse = lambda call: None
    stage.files["shop", "all.yaml"] = first.encode()
    async with stage.working():
        await until(one.client, CM, "web", "a", lambda found: found["data"] == {"x": "1"})
        await stage.ready(Workload, "team", "shop")


async def test_a_name_that_comes_to_mean_another_cluster_leaves_nothing_on_the_former(stage: Stage) -> None:
    for project in ("team", "infra"):
        await stage.namespace(project)
    shared = await stage.site("shared")
    own = await stage.site("own")
    sharing = {"enabled": True, "projects": [{"name": "team"}]}
    for project, site, more in (("infra", shared, {"sharing": sharing}), ("team", own, {})):
        await stage.secret(project, "access", kubeconfig=kubeconfig(site.url))
        spec: Document = {"config": {"imported": {"kubeconfigSecretRef": {"name": "access"}}}, **more}
        if project == "infra":
            await stage.create(Cluster, project, "one", spec)
    async with stage.working():
        await stage.workload("team", "shop", config_map("a"), ["one"])
        done = await stage.ready(Workload, "team", "shop")
        assert part_of(done, "one")["project"] == "infra"
        shared.wire.cut = True
        await stage.nudge(Cluster, "infra", "one")
        await stage.condition(Cluster, "infra", "one", "Reachable", "False")
        await stage.create(Cluster, "team", "one", spec)
        await stage.ready(Cluster, "team", "one")
        held = await stage.until(Workload, "team", "shop", lambda w: part_of(w, "one")["phase"] == "Removing")
        assert part_of(held, "one")["project"] == "infra", "it is not forgotten while it cannot be left"
        for interval in ("2m", "3m"):  # another look begins when the one before has ended
            await stage.change(Workload, "team", "shop", lambda spec, i=interval: spec.update(drift={"interval": i}))
            await stage.condition(Workload, "team", "shop", "Ready", "False")
        assert "a" not in await own.config_maps("web")
        shared.wire.cut = False
        await stage.nudge(Cluster, "infra", "one")
        done = await stage.ready(Workload, "team", "shop")
        assert "project" not in part_of(done, "one")
    assert "a" in await own.config_maps("web")
    assert "a" not in await shared.config_maps("web")


@pytest.mark.parametrize("name", ["renamed", "one"])
async def test_a_cluster_by_another_name_keeps_the_objects_that_are_there(stage: Stage, name: str) -> None:
    for project in ("team", "infra"):
        await stage.namespace(project)
    one = await stage.imported("infra", "one", sharing={"enabled": True, "projects": [{"name": "team"}]})
    async with stage.working():
        await stage.workload("team", "shop", config_map("a"), ["one"])
        await stage.ready(Workload, "team", "shop")
        before = (await one.client.get(CM, "a", "web")).raw["metadata"]["uid"]
        await stage.secret("team", "access", kubeconfig=kubeconfig(one.url))
        spec = {"config": {"imported": {"kubeconfigSecretRef": {"name": "access"}}}}
        await stage.create(Cluster, "team", name, spec)
        await stage.change(Workload, "team", "shop", lambda spec: spec["placement"].update(clusters=[{"name": name}]))

        def moved(workload: Document) -> bool:
            part = part_of(workload, name) if [p["name"] for p in workload["status"]["clusters"]] == [name] else {}
            return part.get("phase") == "Ready" and "project" not in part

        await stage.until(Workload, "team", "shop", moved)
        assert (await one.client.get(CM, "a", "web")).raw["metadata"]["uid"] == before
        await stage.delete(Cluster, "infra", "one")
        await stage.gone(Cluster, "infra", "one")
        assert (await one.client.get(CM, "a", "web")).raw["metadata"]["uid"] == before
        await stage.delete(Workload, "team", "shop")
        await stage.gone(Workload, "team", "shop")
    assert "a" not in await one.config_maps("web")


@pytest.mark.parametrize("goes", ["workload", "cluster"])
async def test_what_is_half_there_is_not_forgotten_while_its_cluster_s_name_is_nobody_s(
    stage: Stage, goes: str
) -> None:
    for project in ("team", "infra", "other"):
        await stage.namespace(project)
    one = await stage.site("one")
    await one.client.apply(
        Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web"}}), manager="tests"
    )
    await one.client.create(
        Untyped({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "web"}})
    )
    sharing = {"enabled": True, "projects": [{"name": "team"}]}
    await stage.imported("infra", "one", sharing=sharing)
    async with stage.working():
        await stage.workload("team", "shop", config_map("a") + config_map("b"), ["one"])
        await stage.until(Workload, "team", "shop", lambda w: part_of(w, "one").get("reason") == "AlreadyExists")
        await stage.imported("other", "one", sharing=sharing)
        await stage.until(Workload, "team", "shop", lambda w: part_of(w, "one").get("reason") == "ClusterAmbiguous")
        for interval in ("2m", "3m"):
            await stage.change(Workload, "team", "shop", lambda spec, i=interval: spec.update(drift={"interval": i}))
            told = await stage.condition(Workload, "team", "shop", "Ready", "False")
        assert part_of(told, "one")["reason"] == "ClusterAmbiguous"
        if goes == "workload":
            await stage.delete(Workload, "team", "shop")
            await stage.gone(Workload, "team", "shop")
            assert "a" not in await one.config_maps("web")
        else:
            await stage.delete(Cluster, "infra", "one")
            await stage.gone(Cluster, "infra", "one")
    told = [reason for reason, _ in await stage.events("shop", "team")]
    assert "ClusterGone" not in told
    assert goes == "workload" or "Removed" in told


async def test_a_cluster_is_known_to_have_answered_before_anything_is_put_there(stage: Stage) -> None:
    await stage.namespace("team")
    await stage.addon("team", "mesh", config_map("mesh"))
    await stage.create(Blueprint, "team", "base", {"addons": [{"name": "mesh"}]})
    one = await stage.imported("team", "one", blueprint="base")
    put = asyncio.Event()
    one.wire.refuse = lambda call: RuntimeError("the process ends here") if not call.safe and not put.set() else None
    async with stage.working():
        async with asyncio.timeout(20):
            await put.wait()
        found = await stage.hub.get(Cluster, "one", "team")
        assert found.status
        assert found.status.version


async def test_the_namespace_of_our_records_is_nobody_s_manifest(stage: Stage, one: Site) -> None:
    content = "apiVersion: v1\nkind: Namespace\nmetadata: {name: trimtab-system}\n"
    async with stage.working():
        await stage.workload(
            "team", "shop", content, ["one"], metadata={"annotations": {"hub.trimtab.dev/adopt": "true"}}
        )
        told = await stage.until(
            Workload, "team", "shop", lambda w: part_of(w, "one").get("reason") == "ManifestsInvalid"
        )
    assert "leave it out" in part_of(told, "one")["message"]


async def test_an_object_that_is_replaced_in_the_midst_of_its_removal_leaves_no_record_behind(
    stage: Stage, one: Site
) -> None:
    replaced = False

    async def replacing(call: Call, through: Any) -> Any:
        nonlocal replaced
        if call.method == "DELETE" and call.path.endswith("/configmaps/a") and not replaced:
            replaced = True
            await one.client.delete(Ref(CM, "a", "web"))
            await one.client.create(
                Untyped({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "web"}})
            )
        return await through(call)

    async with stage.working():
        await stage.workload("team", "shop", config_map("a"), ["one"])
        await stage.ready(Workload, "team", "shop")
        through = one.wire.call
        one.wire.call = lambda call: replacing(call, through)  # type: ignore[method-assign]
        await stage.delete(Workload, "team", "shop")
        await stage.until(Workload, "team", "shop", lambda w: condition_of(w, "Ready")["reason"] == "RemovalWaits")
        await stage.nudge(Workload, "team", "shop")
        await stage.gone(Workload, "team", "shop")
    assert "a" in await one.config_maps("web"), "the one that others made stays"
    assert await one.config_maps("trimtab-system") == {}


class Odd:
    """A provisioner of others."""

    flavours = ("gke",)

    def __init__(self, step: Any) -> None:
        self.step = step

    async def provision(self, cluster: Cluster, state: Document) -> Any:
        return self.step

    async def deprovision(self, cluster: Cluster, state: Document) -> Any:
        return Provisioned(done=True)


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (None, "ProvisionerFailed"),
        (Provisioned(done=True, state={"odd": object()}), "ProvisionerFailed"),
        (Provisioned(done=True, kubeconfig=Redacted(kubeconfig("https://one.test"))), "SecretTaken"),
        (Provisioned(done=False, reason="no reason!"), "Provisioning"),
    ],
    ids=["nothing", "no-data", "secret", "reason"],
)
async def test_a_provisioner_neither_stops_the_controller_nor_takes_a_secret_of_others(
    stage: Stage, step: Any, reason: str
) -> None:
    await stage.namespace("team")
    await stage.site("one")
    await stage.secret("team", "cloud-kubeconfig", kubeconfig="of-others")
    odd = Odd(step)
    provisioners.register(odd)
    try:
        async with stage.working():
            await stage.create(Cluster, "team", "cloud", {"config": {"gke": {}}})
            await stage.condition(Cluster, "team", "cloud", "Ready", "False", reason)
    finally:
        provisioners.forget(odd)
    kept = await stage.hub.get(Named("v1", "Secret"), "cloud-kubeconfig", "team")
    assert kept.raw["data"] == {"kubeconfig": "b2Ytb3RoZXJz"}


async def test_a_cluster_whose_provisioner_is_gone_goes_only_when_the_user_forces_it(stage: Stage) -> None:
    await stage.namespace("team")
    odd = Odd(Provisioned(done=False, state={"begun": True}))
    provisioners.register(odd)
    async with stage.working():
        await stage.create(Cluster, "team", "cloud", {"config": {"gke": {}}})
        await stage.until(Cluster, "team", "cloud", lambda c: (c.get("status") or {}).get("provisioner"))
        provisioners.forget(odd)
        await stage.delete(Cluster, "team", "cloud")
        told = await stage.condition(Cluster, "team", "cloud", "Ready", "False", "NoProvisioner")
        assert "force-delete" in condition_of(told, "Ready")["message"]
        await stage.annotate(Cluster, "team", "cloud", {"hub.trimtab.dev/force-delete": "true"})
        await stage.gone(Cluster, "team", "cloud")


async def test_a_cluster_that_was_made_anew_gets_everything_again_and_that_is_no_drift(stage: Stage, one: Site) -> None:
    async with stage.working():
        await stage.workload("team", "shop", config_map("a", x="1"), ["one"], drift={"action": "Detect"})
        await stage.ready(Workload, "team", "shop")
        other = await stage.site("other")  # the same address leads to another server from now on
        one.wire.call = other.wire.call  # type: ignore[method-assign]
        await stage.nudge(Workload, "team", "shop")
        await until(other.client, CM, "web", "a", lambda found: found["data"] == {"x": "1"})
        await stage.ready(Workload, "team", "shop")
    assert not any(reason.startswith("Drift") for reason, _ in await stage.events("shop", "team"))


async def test_a_cluster_that_does_not_tell_its_version_has_answered_all_the_same(stage: Stage) -> None:
    await stage.namespace("team")
    await stage.addon("team", "mesh", config_map("mesh"))
    await stage.create(Blueprint, "team", "base", {"addons": [{"name": "mesh"}]})
    one = await stage.imported("team", "one", blueprint="base")
    through = one.wire.call

    async def nameless(call: Call) -> Any:
        reply = await through(call)
        return msgspec.structs.replace(reply, body=b"{}") if call.path == "/version" else reply

    one.wire.call = nameless  # type: ignore[method-assign]
    async with stage.working():
        await stage.ready(Cluster, "team", "one")
        one.wire.cut = True
        await stage.delete(Cluster, "team", "one")
        await stage.condition(Cluster, "team", "one", "Ready", "False", "RemovalWaits")
        one.wire.cut = False
        await stage.nudge(Cluster, "team", "one")
        await stage.gone(Cluster, "team", "one")
    assert "mesh" not in await one.config_maps("addons")


class Sleeper:
    """Never comes back."""

    flavours = ("gke",)

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def provision(self, cluster: Cluster, state: Document) -> Any:
        self.asked.set()
        await asyncio.Event().wait()

    async def deprovision(self, cluster: Cluster, state: Document) -> Any:
        return Provisioned(done=True)


async def test_a_provisioner_that_never_comes_back_is_told(stage: Stage) -> None:
    await stage.namespace("team")
    sleeper = Sleeper()
    provisioners.register(sleeper)
    try:
        async with stage.working():
            await stage.create(Cluster, "team", "cloud", {"config": {"gke": {}}})
            await sleeper.asked.wait()
            stage.clock.leap(700)
            told = await stage.condition(Cluster, "team", "cloud", "Ready", "False", "ProvisionerFailed")
            assert condition_of(told, "Ready")["message"] == "TimeoutError"
    finally:
        provisioners.forget(sleeper)

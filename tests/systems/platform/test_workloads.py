"""Workloads on clusters: placed, kept, moved and removed."""

from __future__ import annotations

from tests.systems.platform.stage import Document, Stage, condition_of, config_map, part_of, until
from trimtab.client.protocol import Named, Ref
from trimtab.model.scheme import Untyped
from trimtab.systems.platform.kinds import Cluster, Workload

CM = Named("v1", "ConfigMap")
DEPLOYMENT = Named("apps/v1", "Deployment")


async def test_a_workload_is_applied_to_the_clusters_it_names(stage: Stage) -> None:
    await stage.namespace("team")
    one, two = await stage.imported("team", "one"), await stage.imported("team", "two")
    for site in (one, two):
        await site.client.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}))
    async with stage.working():
        await stage.workload("team", "shop", config_map("a", x="1") + config_map("b", "other", y="2"), ["one", "two"])
        done = await stage.ready(Workload, "team", "shop")
    assert (await one.config_maps("web"))["a"] == {"x": "1"}
    assert (await two.config_maps("other"))["b"] == {"y": "2"}
    assert done["status"]["placed"] == done["status"]["ready"] == 2
    assert part_of(done, "one")["objects"] == 2
    assert condition_of(done, "Applied")["status"] == "True"


async def test_a_change_of_the_manifests_is_applied_and_what_is_gone_from_them_is_pruned(stage: Stage) -> None:
    await stage.namespace("team")
    one = await stage.imported("team", "one")
    async with stage.working():
        await stage.workload("team", "shop", config_map("a", x="1") + config_map("b"), ["one"])
        first = await stage.ready(Workload, "team", "shop")
        stage.files["shop", "all.yaml"] = config_map("a", x="2").encode()
        await stage.nudge(Workload, "team", "shop")
        await stage.until(Workload, "team", "shop", lambda w: w["status"]["digest"] != first["status"]["digest"])
        await stage.ready(Workload, "team", "shop")
    assert {name: data for name, data in (await one.config_maps("web")).items() if name in "ab"} == {"a": {"x": "2"}}


async def test_a_workload_that_is_placed_elsewhere_leaves_where_it_was(stage: Stage) -> None:
    await stage.namespace("team")
    one, two = await stage.imported("team", "one"), await stage.imported("team", "two")
    async with stage.working():
        await stage.workload("team", "shop", config_map("a"), ["one"])
        await stage.ready(Workload, "team", "shop")

        def move(spec: Document) -> None:
            spec["placement"] = {"clusters": [{"name": "two"}]}

        await stage.change(Workload, "team", "shop", move)
        moved = await stage.ready(Workload, "team", "shop")
    assert [part["name"] for part in moved["status"]["clusters"]] == ["two"]
    assert "a" in await two.config_maps("web")
    assert "a" not in await one.config_maps("web")
    assert await one.config_maps("trimtab-system") == {}, "its anchor and its record are gone too"
    assert ("Removed", "removed 1 object from cluster one") in await stage.events("shop", "team")


async def test_a_workload_leaves_a_cluster_that_goes_also_when_its_manifests_cannot_be_read(stage: Stage) -> None:
    await stage.namespace("team")
    one, two = await stage.imported("team", "one"), await stage.imported("team", "two")
    async with stage.working():
        await stage.workload("team", "shop", config_map("a"), ["one", "two"])
        await stage.ready(Workload, "team", "shop")
        stage.files["shop", "all.yaml"] = b"- no manifest"
        await stage.nudge(Workload, "team", "shop")
        await stage.until(Workload, "team", "shop", lambda w: condition_of(w, "Ready")["reason"] == "ManifestsInvalid")
        await stage.delete(Cluster, "team", "one")
        await stage.gone(Cluster, "team", "one")
        left = await stage.until(Workload, "team", "shop", lambda w: len(w["status"]["clusters"]) == 1)
    assert "a" not in await one.config_maps("web")
    assert "a" in await two.config_maps("web"), "what is elsewhere stays until there is something else to put there"
    assert (part_of(left, "two")["phase"], left["status"]["placed"]) == ("Ready", 1)
    assert condition_of(left, "Ready")["reason"] == "ManifestsInvalid"


async def test_labels_place_a_workload_on_clusters_that_come_and_change(stage: Stage) -> None:
    await stage.namespace("team")
    one = await stage.imported("team", "one", labels={"env": "prod"})
    await stage.imported("team", "two", labels={"env": "test"})
    async with stage.working():
        await stage.workload("team", "shop", config_map("a"), "env in (prod)")
        done = await stage.ready(Workload, "team", "shop")
        assert [part["name"] for part in done["status"]["clusters"]] == ["one"]
        three = await stage.imported("team", "three", labels={"env": "prod"})
        await stage.until(Workload, "team", "shop", lambda w: w["status"].get("ready") == 2)
        assert "a" in await three.config_maps("web")
        found = await stage.hub.get(Cluster, "one", "team")
        changed = {**(found.raw or {}), "metadata": {**(found.raw or {})["metadata"], "labels": {"env": "test"}}}
        await stage.hub.patch(Untyped(dict(found.raw or {})), Untyped(changed))
        await stage.until(Workload, "team", "shop", lambda w: [p["name"] for p in w["status"]["clusters"]] == ["three"])
    assert "a" not in await one.config_maps("web")


async def test_a_deleted_workload_takes_its_objects_from_every_cluster(stage: Stage) -> None:
    await stage.namespace("team")
    one, two = await stage.imported("team", "one"), await stage.imported("team", "two")
    async with stage.working():
        await stage.workload("team", "shop", config_map("a") + config_map("b"), ["one", "two"])
        await stage.ready(Workload, "team", "shop")
        await stage.delete(Workload, "team", "shop")
        await stage.gone(Workload, "team", "shop")
    for site in (one, two):
        assert {"a", "b"}.isdisjoint(await site.config_maps("web"))


async def test_what_others_change_on_a_cluster_is_put_back(stage: Stage) -> None:
    await stage.namespace("team")
    one = await stage.imported("team", "one")
    async with stage.working():
        await stage.workload("team", "shop", config_map("a", x="1"), ["one"])
        await stage.ready(Workload, "team", "shop")
        live = await one.client.get(CM, "a", "web")
        await one.client.patch(live, Untyped({**live.raw, "data": {"x": "hacked"}}))
        await stage.nudge(Workload, "team", "shop")
        await until(one.client, CM, "web", "a", lambda found: found["data"] == {"x": "1"})
        await one.client.delete(Ref(CM, "a", "web"))
        await stage.nudge(Workload, "team", "shop")
        await until(one.client, CM, "web", "a", lambda found: found["data"] == {"x": "1"})
    assert "DriftCorrected" in [reason for reason, _ in await stage.events("shop", "team")]


async def test_drift_that_is_only_to_be_detected_is_told_and_left(stage: Stage) -> None:
    await stage.namespace("team")
    one = await stage.imported("team", "one")
    async with stage.working():
        await stage.workload("team", "shop", config_map("a", x="1"), ["one"], drift={"action": "Detect"})
        await stage.ready(Workload, "team", "shop")
        live = await one.client.get(CM, "a", "web")
        await one.client.patch(live, Untyped({**live.raw, "data": {"x": "hacked"}}))
        await stage.nudge(Workload, "team", "shop")
        told = await stage.condition(Workload, "team", "shop", "Ready", "False", "Unhealthy")
        assert part_of(told, "one")["drifted"] == 1
        assert "ConfigMap web/a" in part_of(told, "one")["message"]
        assert (await one.config_maps("web"))["a"] == {"x": "hacked"}
        # A new version of the manifests is no drift, and is applied.
        stage.files["shop", "all.yaml"] = config_map("a", x="2").encode()
        await stage.nudge(Workload, "team", "shop")
        await stage.ready(Workload, "team", "shop")
    assert (await one.config_maps("web"))["a"] == {"x": "2"}


async def test_a_workload_is_ready_when_its_objects_are(stage: Stage) -> None:
    await stage.namespace("team")
    one = await stage.imported("team", "one")
    deployment = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
"""
    async with stage.working():
        await stage.workload("team", "shop", deployment, ["one"])
        waiting = await stage.condition(Workload, "team", "shop", "Ready", "False", "Progressing")
        assert part_of(waiting, "one")["healthy"] == 0
        live = await one.client.get(DEPLOYMENT, "web", "web")
        running = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1,
                   "availableReplicas": 1, "conditions": [{"type": "Available", "status": "True", "reason": "Up",
                   "message": "", "lastUpdateTime": None, "lastTransitionTime": None}]}  # fmt: skip
        await one.client.patch(live, Untyped({**live.raw, "status": running}), subresource="status")
        await stage.nudge(Workload, "team", "shop")
        done = await stage.ready(Workload, "team", "shop")
    assert part_of(done, "one")["healthy"] == 1


async def test_custom_kinds_of_the_manifests_themselves_are_defined_first(stage: Stage) -> None:
    await stage.namespace("team")
    one = await stage.imported("team", "one")
    content = """
apiVersion: v1
kind: List
items:
- apiVersion: example.com/v1
  kind: Cup
  metadata: {name: mine}
  spec: {size: 3}
- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata: {name: cups.example.com}
  spec:
    group: example.com
    scope: Namespaced
    names: {kind: Cup, plural: cups}
    versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
    async with stage.working():
        await stage.workload("team", "shop", content, ["one"])
        await stage.ready(Workload, "team", "shop")
    assert await one.has(Named("example.com/v1", "Cup"), "mine", "web")


async def test_a_look_that_finds_nothing_changes_nothing_and_tells_nothing(stage: Stage) -> None:
    """Also for what a server writes in another way than it was said: no data, a quantity, a default."""
    await stage.namespace("team")
    one = await stage.imported("team", "one")
    odd = (
        config_map("empty")
        + config_map("full", x="1")
        + """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80}], selector: {app: web}}
"""
    )
    async with stage.working():
        await stage.workload("team", "shop", odd, ["one"])
        await stage.ready(Workload, "team", "shop")
        before = {name: (await one.client.get(CM, name, "web")).metadata.resource_version for name in ("empty", "full")}
        for _ in range(3):
            one.wire.calls.clear()
            await stage.nudge(Workload, "team", "shop")
            await stage.annotate(Cluster, "team", "one", {"tests.trimtab.dev/nudge": "x"})
            await one.wire.seen(lambda calls: sum(call.path.endswith("/services/web") for call in calls) >= 1)
        after = {name: (await one.client.get(CM, name, "web")).metadata.resource_version for name in ("empty", "full")}
        await stage.ready(Workload, "team", "shop")
    assert before == after
    assert all(call.query.get("dryRun") for call in one.wire.writes)
    assert "DriftCorrected" not in [reason for reason, _ in await stage.events("shop", "team")]

"""Clusters: reached, brought to their blueprints, and let go."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.systems.platform.stage import Document, Site, Stage, condition_of, config_map, kubeconfig, part_of
from trimtab.client.protocol import Ref
from trimtab.client.transport import Call
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import Secret
from trimtab.model.redacted import Redacted
from trimtab.systems.platform import provisioners
from trimtab.systems.platform.kinds import Addon, Blueprint, Cluster, Workload
from trimtab.systems.platform.provisioners import Provisioned


async def blueprint(stage: Stage, name: str, *addons: Any, project: str = "team", **spec: Any) -> None:
    entries = [{"name": each} if isinstance(each, str) else each for each in addons]
    await stage.create(Blueprint, project, name, {"addons": entries, **spec})


@pytest.mark.row(29)
async def test_a_cluster_that_answers_is_ready_and_tells_its_version(stage: Stage) -> None:
    await stage.namespace("team")
    await stage.imported("team", "one")
    async with stage.working():
        done = await stage.ready(Cluster, "team", "one")
    assert done["status"]["version"].startswith("v1.")
    assert condition_of(done, "Reachable")["status"] == "True"
    assert condition_of(done, "BlueprintApplied")["reason"] == "NoBlueprint"


@pytest.mark.row(29)
async def test_a_cluster_is_probed_and_its_loss_is_told(stage: Stage) -> None:
    await stage.namespace("team")
    one = await stage.imported("team", "one")
    async with stage.working():
        await stage.ready(Cluster, "team", "one")
        one.wire.cut = True
        await stage.nudge(Cluster, "team", "one")
        told = await stage.condition(Cluster, "team", "one", "Ready", "False", "Unreachable")
        assert told["status"]["version"].startswith("v1."), "what was known stays"
        one.wire.cut = False
        await stage.nudge(Cluster, "team", "one")
        await stage.ready(Cluster, "team", "one")
    reasons = [reason for reason, _ in await stage.events("one", "team")]
    assert {"Reachable", "Unreachable"} <= set(reasons)


@pytest.mark.row(29)
async def test_a_blueprint_is_applied_in_the_order_of_its_dependencies(stage: Stage) -> None:
    await stage.namespace("team")
    await stage.addon("team", "crds", config_map("crds"))
    await stage.addon("team", "mesh", config_map("mesh"), dependsOn=["crds"])
    await stage.addon("team", "dash", config_map("dash"))
    await blueprint(stage, "base", {"name": "dash", "dependsOn": ["mesh"]}, "mesh", "crds")
    one = await stage.imported("team", "one", blueprint="base")
    async with stage.working():
        done = await stage.ready(Cluster, "team", "one")
    written = [
        call.path.rpartition("/")[2] for call in one.wire.writes if "/namespaces/addons/configmaps/" in call.path
    ]
    assert written == ["crds", "mesh", "dash"]
    assert [part["phase"] for part in done["status"]["addons"]] == ["Ready"] * 3
    assert done["status"]["blueprint"] == {"name": "base"}


@pytest.mark.row(24)
@pytest.mark.row(29)
async def test_an_addon_waits_for_one_that_fails_and_others_go_on(stage: Stage) -> None:
    await stage.namespace("team")
    await stage.addon("team", "crds", config_map("crds"))
    await stage.addon("team", "mesh", config_map("mesh"), dependsOn=["crds"])
    await stage.addon("team", "dash", config_map("dash"))
    await blueprint(stage, "base", "crds", "mesh", "dash")
    one = await stage.imported("team", "one", blueprint="base")

    def refuse(call: Call) -> StatusError | None:
        return StatusError(500, "InternalError", "broken") if call.path.endswith("/configmaps/crds") else None

    one.wire.refuse = lambda call: refuse(call) if call.method == "PATCH" else None
    async with stage.working():
        told = await stage.condition(Cluster, "team", "one", "BlueprintApplied", "False", "AddonsFailed")
        assert part_of(told, "crds", "addons")["phase"] == "Failed"
        assert part_of(told, "mesh", "addons")["phase"] == "Waiting"
        assert part_of(told, "mesh", "addons")["message"] == "waits for crds"
        assert part_of(told, "dash", "addons")["phase"] == "Ready"
        assert condition_of(told, "Reachable")["status"] == "True"
        one.wire.refuse = lambda call: None
        await stage.nudge(Cluster, "team", "one")
        await stage.ready(Cluster, "team", "one")


ODD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: odd}\ndata: {a: 99999999999999999999999}\n"


async def test_an_addon_with_a_value_that_json_cannot_say_is_told_and_others_go_on(stage: Stage) -> None:
    await stage.namespace("team")
    await stage.addon("team", "odd", ODD)
    await stage.addon("team", "well", config_map("well"))
    await blueprint(stage, "base", "odd", "well")
    await stage.imported("team", "one", blueprint="base")
    async with stage.working():
        told = await stage.condition(Cluster, "team", "one", "BlueprintApplied", "False", "AddonsFailed")
    assert part_of(told, "odd", "addons")["reason"] == "ManifestsInvalid"
    assert "addon.yaml, document 1: data.a" in part_of(told, "odd", "addons")["message"]
    assert part_of(told, "well", "addons")["phase"] == "Ready"


@pytest.mark.parametrize("surprise", [TypeError, OverflowError, RecursionError, msgspec.EncodeError])
async def test_an_addon_that_cannot_be_written_for_the_wire_is_told_and_others_go_on(
    stage: Stage, surprise: type[Exception]
) -> None:
    await stage.namespace("team")
    await stage.addon("team", "odd", config_map("odd"))
    await stage.addon("team", "well", config_map("well"))
    await blueprint(stage, "base", "odd", "well")
    one = await stage.imported("team", "one", blueprint="base")
    one.wire.refuse = lambda call: surprise("hush") if call.path.endswith("/configmaps/odd") else None
    async with stage.working():
        told = await stage.condition(Cluster, "team", "one", "BlueprintApplied", "False", "AddonsFailed")
    assert part_of(told, "odd", "addons")["reason"] == "ManifestsInvalid"
    assert surprise.__name__ in part_of(told, "odd", "addons")["message"]
    assert "hush" not in part_of(told, "odd", "addons")["message"]
    assert part_of(told, "well", "addons")["phase"] == "Ready"


async def test_an_addon_that_leaves_the_blueprint_leaves_the_cluster(stage: Stage) -> None:
    await stage.namespace("team")
    await stage.addon("team", "mesh", config_map("mesh"))
    await stage.addon("team", "dash", config_map("dash"))
    await blueprint(stage, "base", "mesh", "dash")
    one = await stage.imported("team", "one", blueprint="base")
    async with stage.working():
        await stage.ready(Cluster, "team", "one")

        def drop(spec: Document) -> None:
            spec["addons"] = [{"name": "mesh"}]

        await stage.change(Blueprint, "team", "base", drop)
        await stage.until(Cluster, "team", "one", lambda c: [a["name"] for a in c["status"]["addons"]] == ["mesh"])
        assert "dash" not in await one.config_maps("addons")
        assert "mesh" in await one.config_maps("addons")
        # A blueprint that means nothing any more changes nothing on the cluster.
        await stage.hub.delete(Ref(Blueprint, "base", "team"))
        await stage.condition(Cluster, "team", "one", "BlueprintApplied", "False", "BlueprintMissing")
    assert "mesh" in await one.config_maps("addons")


async def test_a_base_blueprint_comes_first_and_is_overridden(stage: Stage) -> None:
    await stage.namespace("team")
    await stage.addon("team", "mesh", config_map("mesh"))
    await stage.addon("team", "dash", config_map("dash"))
    await blueprint(stage, "minimal", "mesh")
    await blueprint(stage, "full", {"name": "dash", "dependsOn": ["mesh"]}, base={"name": "minimal"})
    one = await stage.imported("team", "one", blueprint="full")
    async with stage.working():
        await stage.ready(Cluster, "team", "one")
        assert {"mesh", "dash"} <= set(await one.config_maps("addons"))

        def circle(spec: Document) -> None:
            spec["base"] = {"name": "full"}

        await stage.change(Blueprint, "team", "minimal", circle)
        await stage.nudge(Cluster, "team", "one")
        told = await stage.condition(Cluster, "team", "one", "BlueprintApplied", "False", "BlueprintCycle")
    assert "full → minimal → full" in condition_of(told, "Ready")["message"]


@pytest.mark.row(28)
async def test_a_version_that_was_never_published_is_named(stage: Stage) -> None:
    await stage.namespace("team")
    await stage.addon("team", "mesh", config_map("mesh"), version="v1")
    await blueprint(stage, "base", {"name": "mesh", "version": "v2"}, version="v1")
    await stage.imported("team", "one", blueprint="base", version="v1")
    async with stage.working():
        told = await stage.condition(Cluster, "team", "one", "Ready", "False", "VersionMissing")
        assert "Addon mesh was never published at version v2" in condition_of(told, "Ready")["message"]

        def publish(spec: Document) -> None:
            spec["version"] = "v2"

        await stage.change(Addon, "team", "mesh", publish)
        await stage.nudge(Cluster, "team", "one")
        done = await stage.ready(Cluster, "team", "one")
    assert done["status"]["blueprint"]["version"] == "v1"
    assert part_of(done, "mesh", "addons")["version"] == "v2"


@pytest.mark.row(23)
@pytest.mark.row(9)
async def test_names_mean_the_own_project_first_then_what_is_shared_and_never_a_guess(stage: Stage) -> None:
    for project in ("team", "infra", "other"):
        await stage.namespace(project)
    everyone = {"enabled": True, "projects": [{"name": "*"}]}
    await stage.addon("infra", "mesh", config_map("shared"), sharing=everyone)
    await blueprint(stage, "base", "mesh", project="infra", sharing={"enabled": True, "projects": [{"name": "team"}]})
    one = await stage.imported("team", "one", blueprint="base")
    async with stage.working():
        done = await stage.ready(Cluster, "team", "one")
        assert done["status"]["blueprint"] == {"name": "base", "project": "infra"}
        assert "shared" in await one.config_maps("addons")
        await blueprint(stage, "base", project="other", sharing=everyone)
        await stage.nudge(Cluster, "team", "one")
        told = await stage.condition(Cluster, "team", "one", "BlueprintApplied", "False", "BlueprintAmbiguous")
        assert "infra, other" in condition_of(told, "Ready")["message"]
        assert "shared" in await one.config_maps("addons"), "nothing goes while nobody knows what is meant"
        await stage.addon("team", "lb", config_map("lb"))
        await blueprint(stage, "base", "lb")
        await stage.nudge(Cluster, "team", "one")
        done = await stage.ready(Cluster, "team", "one")
    assert done["status"]["blueprint"] == {"name": "base"}
    assert "shared" not in await one.config_maps("addons")


@pytest.mark.row(23)
async def test_a_cluster_of_another_project_takes_workloads_only_when_it_is_shared(stage: Stage) -> None:
    for project in ("team", "infra"):
        await stage.namespace(project)
    one = await stage.imported("infra", "one")
    async with stage.working():
        await stage.workload("team", "shop", config_map("a"), ["one"])
        told = await stage.condition(Workload, "team", "shop", "Ready", "False")
        assert part_of(told, "one")["reason"] == "ClusterMissing"

        def share(spec: Document) -> None:
            spec["sharing"] = {"enabled": True, "projects": [{"name": "team"}]}

        await stage.change(Cluster, "infra", "one", share)
        done = await stage.ready(Workload, "team", "shop")
        assert part_of(done, "one")["project"] == "infra"
        assert "a" in await one.config_maps("web")
        await stage.change(Cluster, "infra", "one", lambda spec: spec.update(sharing={"enabled": False}))
        await stage.until(Workload, "team", "shop", lambda w: part_of(w, "one").get("reason") == "ClusterMissing")
    assert "a" not in await one.config_maps("web"), "what is shared no more is left"


async def test_a_cluster_goes_after_its_workloads_and_addons(stage: Stage) -> None:
    await stage.namespace("team")
    await stage.addon("team", "mesh", config_map("mesh"))
    await blueprint(stage, "base", "mesh")
    one = await stage.imported("team", "one", blueprint="base", labels={"env": "prod"})
    async with stage.working():
        await stage.workload("team", "shop", config_map("a"), "env=prod")
        await stage.ready(Workload, "team", "shop")
        await stage.ready(Cluster, "team", "one")
        await stage.delete(Cluster, "team", "one")
        await stage.gone(Cluster, "team", "one")
    assert "a" not in await one.config_maps("web")
    assert "mesh" not in await one.config_maps("addons")
    assert await one.config_maps("trimtab-system") == {}


async def test_a_cluster_that_is_gone_for_ever_goes_when_the_user_forces_it(stage: Stage) -> None:
    await stage.namespace("team")
    one = await stage.imported("team", "one")
    async with stage.working():
        await stage.ready(Cluster, "team", "one")
        one.wire.cut = True
        await stage.delete(Cluster, "team", "one")
        await stage.until(Cluster, "team", "one", lambda c: condition_of(c, "Ready").get("reason") == "RemovalWaits")
        await stage.annotate(Cluster, "team", "one", {"hub.trimtab.dev/force-delete": "true"})
        await stage.gone(Cluster, "team", "one")


MKS = {
    "kubernetesVersion": "v1.31.4",
    "network": {"cni": {"name": "Calico"}, "podSubnet": "10.244.0.0/16", "serviceSubnet": "10.96.0.0/12"},
    "nodes": {
        "m1": {
            "arch": "amd64", "hostname": "m1", "operatingSystem": "Ubuntu22.04", "privateIp": "10.0.0.5",
            "roles": ["ControlPlane", "Worker"],
        }
    },
}  # fmt: skip


async def test_a_managed_cluster_without_a_provisioner_says_so(stage: Stage) -> None:
    await stage.namespace("team")
    await stage.create(Cluster, "team", "metal", {"config": {"mks": MKS}})
    async with stage.working():
        told = await stage.condition(Cluster, "team", "metal", "Ready", "False", "NoProvisioner")
        assert "mks" in condition_of(told, "Ready")["message"]
        await stage.delete(Cluster, "team", "metal")
        await stage.gone(Cluster, "team", "metal")


class Forge:
    """Makes clusters in two steps."""

    flavours = ("mks",)

    def __init__(self, site: Site) -> None:
        self.site = site
        self.steps: list[str] = []

    async def provision(self, cluster: Cluster, state: Document) -> Provisioned:
        assert cluster.spec.config.mks
        self.steps.append(f"provision {state.get('machines', 0)}")
        if not state:
            return Provisioned(done=False, message="machines are being installed", state={"machines": 1}, again=1.0)
        return Provisioned(done=True, state=state, kubeconfig=Redacted(kubeconfig(self.site.url)))

    async def deprovision(self, cluster: Cluster, state: Document) -> Provisioned:
        self.steps.append("deprovision")
        return Provisioned(done=True)


async def test_a_provisioner_makes_a_cluster_step_by_step_and_takes_it_down(stage: Stage) -> None:
    await stage.namespace("team")
    site = await stage.site("metal")
    forge = Forge(site)
    provisioners.register(forge)
    try:
        async with stage.working():
            await stage.create(Cluster, "team", "metal", {"config": {"mks": MKS}})
            await stage.until(Cluster, "team", "metal", lambda c: (c.get("status") or {}).get("provisioner"))
            await stage.nudge(Cluster, "team", "metal")
            done = await stage.ready(Cluster, "team", "metal")
            assert done["status"]["kubeconfigSecretRef"] == {"name": "metal-kubeconfig", "key": "kubeconfig"}
            assert "token" not in str(done["status"])
            assert (await stage.hub.get(Secret, "metal-kubeconfig", "team")).metadata.owner_references
            await stage.delete(Cluster, "team", "metal")
            await stage.gone(Cluster, "team", "metal")
        assert forge.steps[:2] == ["provision 0", "provision 1"]
        assert forge.steps[-1] == "deprovision"
    finally:
        provisioners.forget(forge)


class Broken:
    """Fails in its own ways."""

    flavours = ("gke",)

    async def provision(self, cluster: Cluster, state: Document) -> Provisioned:
        raise RuntimeError("the password is hush")

    async def deprovision(self, cluster: Cluster, state: Document) -> Provisioned:
        return Provisioned(done=True, reason="not a reason!")


async def test_a_provisioner_that_fails_is_told_without_what_it_says(stage: Stage) -> None:
    await stage.namespace("team")
    broken = Broken()
    provisioners.register(broken)
    try:
        async with stage.working():
            await stage.create(Cluster, "team", "cloud", {"config": {"gke": {"zone": "x"}}})
            told = await stage.condition(Cluster, "team", "cloud", "Ready", "False", "ProvisionerFailed")
            assert "hush" not in str(told)
            assert "RuntimeError" in condition_of(told, "Ready")["message"]
            await stage.delete(Cluster, "team", "cloud")
            await stage.gone(Cluster, "team", "cloud")
    finally:
        provisioners.forget(broken)

"""Addons that leave a blueprint leave its clusters; many objects at once only when a person says so of the Cluster."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.systems.platform.stage import Document, Site, Stage, config_map, part_of
from trimtab.client.protocol import Named
from trimtab.client.transport import Call
from trimtab.model.errors import StatusError
from trimtab.systems.platform.kinds import Blueprint, Cluster

NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: mesh}\n"


def many(name: str, count: int = 12) -> str:
    return "".join(config_map(f"{name}-{number}") for number in range(count))


async def blueprint(stage: Stage, name: str, *addons: str, project: str = "team", **spec: Document) -> None:
    await stage.create(Blueprint, project, name, {"addons": [{"name": each} for each in addons], **spec})


def only(*addons: str) -> Callable[[Document], None]:
    return lambda spec: spec.update(addons=[{"name": each} for each in addons])


async def followed(stage: Stage, **addons: str) -> Site:
    """A cluster that its blueprint `base`, of these addons, will be brought to."""
    await stage.namespace("team")
    for name, content in addons.items():
        await stage.addon("team", name, content)
    await blueprint(stage, "base", *addons)
    return await stage.imported("team", "one", blueprint="base")


async def held(stage: Stage, addon: str) -> str:
    """What the Cluster says of an addon that does not go; once it was looked at with it."""
    told = await stage.until(
        Cluster,
        "team",
        "one",
        lambda c: part_of(c, addon, "addons").get("reason") == "MassDelete",
    )
    return str(part_of(told, addon, "addons")["message"])


async def test_a_blueprint_that_is_emptied_empties_no_cluster_until_that_is_said(stage: Stage) -> None:
    one = await followed(stage, mesh=many("mesh"))
    async with stage.working():
        await stage.ready(Cluster, "team", "one")
        await stage.change(Blueprint, "team", "base", only())
        message = await held(stage, "mesh")
        assert "mesh-11" in await one.config_maps("addons")
        await stage.condition(Cluster, "team", "one", "BlueprintApplied", "False", "AddonsFailed")
        digest = re.search(r"annotate the Cluster with (\S+): (sha256:[0-9a-f]{64})", message)
        assert digest is not None, message
        await stage.annotate(Cluster, "team", "one", {digest[1]: digest[2]})
        await stage.ready(Cluster, "team", "one")
    assert "mesh-11" not in await one.config_maps("addons")


async def test_an_empty_blueprint_of_the_own_project_does_not_empty_clusters_in_the_place_of_a_shared_one(
    stage: Stage,
) -> None:
    for project in ("team", "infra"):
        await stage.namespace(project)
    everyone = {"enabled": True, "projects": [{"name": "*"}]}
    await stage.addon("infra", "mesh", config_map("mesh"), sharing=everyone)
    await blueprint(stage, "base", "mesh", project="infra", sharing=everyone)
    one = await stage.imported("team", "one", blueprint="base")
    async with stage.working():
        await stage.ready(Cluster, "team", "one")
        await blueprint(stage, "base")
        await held(stage, "mesh")
    assert "mesh" in await one.config_maps("addons")


async def test_addons_that_leave_together_are_counted_together(stage: Stage) -> None:
    one = await followed(stage, a=many("a", 3), b=many("b", 3), c=config_map("c"))
    async with stage.working():
        await stage.ready(Cluster, "team", "one")
        await stage.change(Blueprint, "team", "base", only("c"))
        assert "ConfigMap addons/a-0: too many objects would go at once" in await held(stage, "a")
    assert {"a-0", "b-0"} <= set(await one.config_maps("addons"))


async def test_an_addon_with_a_namespace_goes_only_when_that_is_said(stage: Stage) -> None:
    one = await followed(stage, mesh=NAMESPACE, lb=config_map("lb"))
    async with stage.working():
        await stage.ready(Cluster, "team", "one")
        await stage.change(Blueprint, "team", "base", only("lb"))
        assert "Namespace mesh: everything in it would go with it" in await held(stage, "mesh")
    assert await one.has(Named("v1", "Namespace"), "mesh")


async def test_an_addon_that_comes_back_to_the_blueprint_is_well_again(stage: Stage) -> None:
    await followed(stage, mesh=many("mesh"))
    async with stage.working():
        await stage.ready(Cluster, "team", "one")
        await stage.change(Blueprint, "team", "base", only())
        await held(stage, "mesh")
        await stage.change(Blueprint, "team", "base", only("mesh"))
        await stage.ready(Cluster, "team", "one")


@pytest.mark.parametrize("spec", [{"name": "other"}, None])
async def test_a_cluster_that_names_another_blueprint_or_none_loses_the_addons_of_the_former(
    stage: Stage, spec: Document | None
) -> None:
    one = await followed(stage, mesh=many("mesh"))
    await blueprint(stage, "other")
    async with stage.working():
        await stage.ready(Cluster, "team", "one")
        await stage.change(Cluster, "team", "one", lambda held: held.update(blueprint=spec))
        await stage.ready(Cluster, "team", "one")
    assert "mesh-11" not in await one.config_maps("addons")


async def test_a_cluster_that_names_another_version_loses_what_is_not_in_it(stage: Stage) -> None:
    await stage.namespace("team")
    await stage.addon("team", "mesh", many("mesh"))
    await stage.create(Blueprint, "team", "base", {"addons": [{"name": "mesh"}], "version": "v1"})
    one = await stage.imported("team", "one", blueprint="base", version="v1")
    async with stage.working():
        await stage.ready(Cluster, "team", "one")
        await stage.change(Blueprint, "team", "base", lambda spec: spec.update(addons=[], version="v2"))
        await stage.change(Cluster, "team", "one", lambda spec: spec["blueprint"].update(version="v2"))
        await stage.ready(Cluster, "team", "one")
    assert "mesh-11" not in await one.config_maps("addons")


async def test_what_a_person_said_of_the_cluster_still_holds_after_a_removal_that_failed(stage: Stage) -> None:
    one = await followed(stage, mesh=many("mesh"))
    await stage.addon("team", "lb", config_map("lb"))
    await blueprint(stage, "other", "lb")

    def refuse(call: Call) -> StatusError | None:
        return StatusError(500, "InternalError", "broken") if call.path.endswith("/configmaps/mesh-0") else None

    async with stage.working():
        await stage.ready(Cluster, "team", "one")
        one.wire.refuse = lambda call: refuse(call) if call.method == "DELETE" else None
        await stage.change(Cluster, "team", "one", lambda spec: spec.update(blueprint={"name": "other"}))
        await stage.until(
            Cluster, "team", "one", lambda c: part_of(c, "mesh", "addons").get("reason") == "ClusterRefused"
        )
        one.wire.refuse = lambda call: None
        await stage.nudge(Cluster, "team", "one")
        done = await stage.ready(Cluster, "team", "one")
    assert "mesh-0" not in await one.config_maps("addons")
    assert done["status"]["blueprint"] == {"name": "other"}


async def test_a_deleted_cluster_takes_all_its_addons_with_it(stage: Stage) -> None:
    one = await followed(stage, mesh=many("mesh"))
    async with stage.working():
        await stage.ready(Cluster, "team", "one")
        await stage.delete(Cluster, "team", "one")
        await stage.gone(Cluster, "team", "one")
    assert "mesh-11" not in await one.config_maps("addons")

"""More of `trimtab up` as a hub: a provisioner of one's own, the hub as its own cluster, many objects, the way back."""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.widgets import until_gone
from tests.systems.platform.stage import condition_of, config_map, part_of, until
from tests.systems.platform.test_clusters import MKS
from tests.systems.platform.test_real import (  # noqa: F401 - fixtures
    CM,
    IMPORTED,
    Home,
    home,
    hub_server,
    settled,
    target_server,
)
from trimtab.client.protocol import Named, Query, Ref
from trimtab.model.errors import StatusError
from trimtab.systems.platform.kinds import Addon, Blueprint, Cluster, Project, Workload
from trimtab.testing.embedded import TrimtabServer

pytestmark = pytest.mark.slow

UPLOADED = {"uploadedYAML": {"paths": [{"name": "all.yaml"}]}}
OPERATOR = '''
from pathlib import Path

from trimtab.model.redacted import Redacted
from trimtab.runtime.system import System
from trimtab.systems.platform.provisioners import Provisioned, register

SYSTEM = System(name="metal")


class Metal:
    """Machines that are there already."""

    flavours = ("mks",)

    async def provision(self, cluster, state):
        if not state:
            return Provisioned(done=False, message="machines are being installed", state={"machines": 1}, again=0.2)
        return Provisioned(done=True, state=state, kubeconfig=Redacted(Path("KUBECONFIG").read_text()))

    async def deprovision(self, cluster, state):
        Path("GONE").write_text(str(state))
        return Provisioned(done=True)


register(Metal())
'''


async def test_a_provisioner_in_an_operator_file_makes_clusters_that_do_real_work(
    tmp_path: Path,
    trimtab_server: Any,
) -> None:
    gone = tmp_path / "gone"
    (tmp_path / "hub").mkdir()
    operator = tmp_path / "metal.py"
    operator.write_text(OPERATOR.replace("KUBECONFIG", str(trimtab_server.kubeconfig)).replace("GONE", str(gone)))
    flags = ("--systems", "platform", "--operator", str(operator))
    with TrimtabServer(tmp_path / "hub", flags=flags) as hub:
        made = await settled(hub, trimtab_server)
        await made.create(Cluster, "metal", {"config": {"mks": MKS}})
        done = await made.ready(Cluster, "metal")
        assert condition_of(done, "Provisioned")["status"] == "True"
        assert done["status"]["provisioner"] == {"machines": 1}
        spec = {"namespace": "web", "placement": {"clusters": [{"name": "metal"}]}, "artifact": UPLOADED}
        await made.create(Workload, "shop", spec)
        await made.upload(Workload, "shop", "all.yaml", config_map("metal-made", x="1"))
        await made.ready(Workload, "shop")
        assert await made.data("metal-made", "web") == {"x": "1"}
        await made.create(Cluster, "cloud", {"config": {"eks": {}}})
        told = await until(
            made.hub,
            Cluster,
            made.project,
            "cloud",
            lambda c: condition_of(c, "Ready").get("reason") == "NoProvisioner",
        )
        assert condition_of(told, "Ready")["status"] == "False"
        await made.hub.delete(Ref(Project, made.project))
        await until_gone(made.hub, Project, made.project, "")
        await made.hub.close()
    assert gone.read_text() == "{'machines': 1}"
    with pytest.raises(StatusError):
        await made.data("metal-made", "web")
    await made.target.close()


async def test_a_hub_can_be_a_cluster_of_its_own(hub_server: TrimtabServer) -> None:  # noqa: F811
    made = await settled(hub_server, hub_server)
    place = f"{made.project}-web"
    await made.create(Cluster, "self", {"config": IMPORTED})
    await made.ready(Cluster, "self")
    spec = {"namespace": place, "placement": {"clusters": [{"name": "self"}]}, "artifact": UPLOADED}
    await made.create(Workload, "shop", spec)
    inner = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {made.project}-inner}}\n---\n"
    await made.upload(Workload, "shop", "all.yaml", config_map("a", x="1") + inner)
    await made.ready(Workload, "shop")
    assert await made.data("a", place) == {"x": "1"}
    await made.hub.delete(Ref(Project, made.project))
    await until_gone(made.hub, Project, made.project, "")
    assert "a" not in {item.name for item in (await made.hub.list(CM, Query(namespace=place))).items}
    await until_gone(made.hub, Named("v1", "Namespace"), f"{made.project}-inner", "")
    await made.hub.close()
    await made.target.close()


async def there(home: Home, name: str) -> bool:  # noqa: F811
    found = (await home.hub.list(Workload, Query(namespace=home.project))).items
    return any(item.name == name for item in found)


async def test_two_thousand_objects_come_stay_and_go(home: Home) -> None:  # noqa: F811
    count = 1990
    await home.create(Cluster, "one", {"config": IMPORTED})
    spec = {"namespace": home.project, "placement": {"clusters": [{"name": "one"}]}, "artifact": UPLOADED}
    begin = time.monotonic()
    await home.create(Workload, "shop", spec)
    await home.upload(Workload, "shop", "all.yaml", "".join(config_map(f"c{n}", x="y" * 500) for n in range(count)))
    done = await until(
        home.hub,
        Workload,
        home.project,
        "shop",
        lambda w: condition_of(w, "Ready").get("status") == "True" and w["status"].get("objects") == count,
        patience=240.0,
    )
    print(f"{count} objects are there after {time.monotonic() - begin:.1f} s")
    assert part_of(done, "one")["healthy"] == count
    await home.hub.delete(Ref(Workload, "shop", home.project))
    async with asyncio.timeout(240):
        while await there(home, "shop"):
            with contextlib.suppress(AssertionError, TimeoutError):
                await until_gone(home.hub, Workload, "shop", home.project)
    found = (await home.target.list(CM, Query(namespace=home.project))).items
    assert [item.name for item in found if item.name.startswith("c")] == []


async def test_a_pinned_version_goes_back_and_a_blueprint_is_switched(home: Home) -> None:  # noqa: F811
    space = f"{home.project}-mesh"
    await home.create(Addon, "mesh", {"namespace": space, "artifact": UPLOADED})
    for version in ("v1", "v2"):
        if version == "v2":
            await home.change(Addon, "mesh", version="")
        await home.upload(Addon, "mesh", "all.yaml", config_map("mesh", at=version) + config_map(f"only-{version}"))
        await home.change(Addon, "mesh", version=version)
        if version == "v1":
            await home.create(Blueprint, "base", {"addons": [{"name": "mesh", "version": "v1"}], "version": "v1"})
        else:
            await home.change(Blueprint, "base", addons=[{"name": "mesh", "version": "v2"}], version="v2")
    await home.create(Blueprint, "bare", {"addons": [], "version": "v1"})
    await home.create(Cluster, "one", {"config": IMPORTED, "blueprint": {"name": "base"}})
    for wanted, there in (("latest", "v2"), ("v1", "v1"), ("v2", "v2")):
        await home.change(Cluster, "one", blueprint={"name": "base", "version": wanted})
        done = await home.ready(Cluster, "one")
        assert done["status"]["blueprint"]["version"] == there
        assert await home.data("mesh", space) == {"at": there}
        names = {item.name for item in (await home.target.list(CM, Query(namespace=space))).items}
        assert {name for name in names if name.startswith("only-")} == {f"only-{there}"}
    await home.change(Cluster, "one", blueprint={"name": "bare", "version": "v1"})
    done = await home.ready(Cluster, "one")
    assert "addons" not in done["status"]
    with pytest.raises(StatusError):
        await home.data("mesh", space)
    await home.change(Cluster, "one", blueprint={"name": "base", "version": "v9"})
    await until(
        home.hub, Cluster, home.project, "one", lambda c: condition_of(c, "Ready").get("reason") == "VersionMissing"
    )

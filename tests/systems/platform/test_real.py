"""`trimtab up` as the hub, and real servers as clusters: another `trimtab up`, and a kube-apiserver."""

from __future__ import annotations

import base64
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.runtime.widgets import until_gone
from tests.systems.platform.stage import Document, condition_of, config_map, part_of, until
from trimtab.client.api import ApiClient
from trimtab.client.connect import connect
from trimtab.client.protocol import Named, Query, Ref
from trimtab.client.transport import Call
from trimtab.model import kubernetes
from trimtab.model.scheme import Scheme, Untyped
from trimtab.model.yaml import load as yaml_load
from trimtab.systems.platform.kinds import Addon, Blueprint, Cluster, Project, Workload
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.pki import Authority
from trimtab.testing.ports import free_ports

pytestmark = pytest.mark.slow
CM = Named("v1", "ConfigMap")
GROUPS = {Project: "hub", Addon: "infra", Blueprint: "infra", Cluster: "infra", Workload: "apps"}


@pytest.fixture(scope="module")
def hub_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrimtabServer]:
    with TrimtabServer(tmp_path_factory.mktemp("hub"), flags=("--systems", "platform,gitops")) as server:
        yield server


@pytest.fixture(params=["trimtab", pytest.param("kubernetes", marks=pytest.mark.cluster)])
def target_server(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue("trimtab_server" if request.param == "trimtab" else "real_cluster")


IMPORTED = {"imported": {"kubeconfigSecretRef": {"name": "access"}}}


class Home:
    """A project of its own on the hub, and a cluster in it."""

    def __init__(self, hub: ApiClient, target: ApiClient, project: str, kubeconfig: bytes) -> None:
        self.hub, self.target, self.project, self.kubeconfig = hub, target, project, kubeconfig

    async def create(self, kind: Any, name: str, spec: Document) -> None:
        place = {} if kind is Project else {"namespace": self.project}
        api_version = f"{GROUPS[kind]}.trimtab.dev/v3"
        await self.hub.create(
            Untyped(
                {"apiVersion": api_version, "kind": kind.__name__, "metadata": {"name": name, **place}, "spec": spec}
            )
        )

    async def change(self, kind: Any, name: str, **spec: Any) -> None:
        place = await self.hub.place(kind)
        body = msgspec.json.encode({"spec": spec})
        path = place.path(self.project, name)
        await self.hub.transport.call(
            Call(method="PATCH", path=path, body=body, content_type="application/merge-patch+json")
        )

    async def upload(self, kind: Any, name: str, path: str, content: str) -> None:
        place = await self.hub.place(kind)
        target = f"{place.path(self.project, name)}/artifacts/{path}"
        await self.hub.transport.call(
            Call(method="PUT", path=target, body=content.encode(), content_type="application/octet-stream")
        )

    async def ready(self, kind: Any, name: str) -> Document:
        def met(document: Document) -> bool:
            found = condition_of(document, "Ready")
            return (
                found.get("status") == "True" and found.get("observedGeneration") == document["metadata"]["generation"]
            )

        return await until(self.hub, kind, "" if kind is Project else self.project, name, met)

    async def data(self, name: str, namespace: str) -> Document:
        return dict((await self.target.get(CM, name, namespace)).raw["data"])

    async def secret(self, name: str, kubeconfig: bytes) -> None:
        document = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": self.project},
            "data": {"kubeconfig": base64.b64encode(kubeconfig).decode()},
        }
        await self.hub.apply(Untyped(document), manager="tests", force=True)


async def settled(hub_server: TrimtabServer, target_server: Any) -> Home:
    hub = connect(hub_server.kubeconfig, scheme=kubernetes.register(Scheme()))
    target = connect(target_server.kubeconfig, scheme=kubernetes.register(Scheme()))
    project = f"p{uuid.uuid4().hex[:10]}"
    made = Home(hub, target, project, target_server.kubeconfig.read_bytes())
    await made.create(Project, project, {"deletion": "Cascade"})
    await made.ready(Project, project)
    await made.secret("access", made.kubeconfig)
    return made


@pytest.fixture
async def home(hub_server: TrimtabServer, target_server: Any) -> AsyncIterator[Home]:
    made = await settled(hub_server, target_server)
    yield made
    await made.hub.delete(Ref(Project, made.project))
    await until_gone(made.hub, Project, made.project, "")
    await until_gone(made.hub, Named("v1", "Namespace"), made.project, "")
    await made.hub.close()
    await made.target.close()


def other_ca(folder: Path) -> str:
    return base64.b64encode(Authority(folder).certificate.read_bytes()).decode()


@pytest.mark.row(28)
@pytest.mark.row(29)
async def test_published_versions_reach_a_cluster_and_a_pinned_one_keeps_its_own(home: Home) -> None:
    space = f"addons-{home.project}"
    artifact = {"uploadedYAML": {"paths": [{"name": "mesh/mesh.yaml"}]}}
    await home.create(Addon, "mesh", {"namespace": space, "artifact": artifact})
    await home.upload(Addon, "mesh", "mesh/mesh.yaml", config_map("mesh", release="one"))
    await home.change(Addon, "mesh", version="v1")
    await home.create(Blueprint, "base", {"version": "v1", "addons": [{"name": "mesh", "version": "v1"}]})
    await home.create(Cluster, "site", {"config": IMPORTED, "blueprint": {"name": "base", "version": "v1"}})
    done = await home.ready(Cluster, "site")
    assert done["status"]["blueprint"] == {"name": "base", "version": "v1"}
    assert part_of(done, "mesh", "addons")["version"] == "v1"
    assert await home.data("mesh", space) == {"release": "one"}
    # The next version is written, and the cluster stays where it was pinned.
    await home.change(Addon, "mesh", version="")
    await home.upload(Addon, "mesh", "mesh/mesh.yaml", config_map("mesh", release="two"))
    await home.change(Addon, "mesh", version="v2")
    await home.change(Blueprint, "base", version="v2", addons=[{"name": "mesh", "version": "v2"}])
    await home.change(Cluster, "site", probeInterval="1s")
    still = await home.ready(Cluster, "site")
    assert part_of(still, "mesh", "addons")["version"] == "v1"
    assert await home.data("mesh", space) == {"release": "one"}
    await home.change(Cluster, "site", blueprint={"name": "base", "version": "latest"})
    moved = await home.ready(Cluster, "site")
    assert part_of(moved, "mesh", "addons")["version"] == "v2"
    assert await home.data("mesh", space) == {"release": "two"}


@pytest.mark.row(5)
async def test_a_workload_reaches_a_real_cluster_and_leaves_it(home: Home) -> None:
    space = f"web-{home.project}"
    await home.create(Cluster, "site", {"config": IMPORTED})
    await home.ready(Cluster, "site")
    spec = {
        "namespace": space,
        "placement": {"clusters": [{"name": "site"}]},
        "artifact": {"uploadedYAML": {"paths": [{"name": "all.yaml"}]}},
    }
    await home.create(Workload, "shop", spec)
    told = await until(
        home.hub, Workload, home.project, "shop", lambda w: condition_of(w, "Ready").get("reason") == "ArtifactMissing"
    )
    assert "all.yaml" in condition_of(told, "Ready")["message"]
    await home.upload(Workload, "shop", "all.yaml", config_map("a", x="1") + config_map("b"))
    done = await home.ready(Workload, "shop")
    assert part_of(done, "site")["healthy"] == 2
    assert done["spec"]["sharing"] == {"enabled": False}, "a default that is always shown"
    assert await home.data("a", space) == {"x": "1"}
    await home.upload(Workload, "shop", "all.yaml", config_map("a", x="2"))
    await until(home.target, CM, space, "a", lambda found: found["data"] == {"x": "2"})
    await home.ready(Workload, "shop")
    left = {item.name for item in (await home.target.list(CM, Query(namespace=space))).items}
    assert "b" not in left
    await home.hub.delete(Ref(Workload, "shop", home.project))
    await until_gone(home.hub, Workload, "shop", home.project)
    await until_gone(home.target, CM, "a", space)


@pytest.mark.row(23)
@pytest.mark.row(9)
async def test_a_shared_blueprint_of_another_project_is_used_by_its_name(home: Home, hub_server: TrimtabServer) -> None:
    lender = Home(home.hub, home.target, f"lend-{home.project}", home.kubeconfig)
    await lender.create(Project, lender.project, {"deletion": "Cascade"})
    await lender.ready(Project, lender.project)
    space = f"addons-{home.project}"
    sharing = {"enabled": True, "projects": [{"name": home.project}]}
    artifact = {"uploadedYAML": {"paths": [{"name": "mesh.yaml"}]}}
    await lender.create(Addon, "mesh", {"namespace": space, "artifact": artifact, "sharing": sharing})
    await lender.upload(Addon, "mesh", "mesh.yaml", config_map("mesh", by="lender"))
    await lender.create(Blueprint, "base", {"addons": [{"name": "mesh"}], "sharing": sharing})
    await home.create(Cluster, "site", {"config": IMPORTED, "blueprint": {"name": "base"}})
    done = await home.ready(Cluster, "site")
    assert done["spec"]["blueprint"]["name"] == "base"
    assert done["status"]["blueprint"] == {"name": "base", "project": lender.project}
    assert await home.data("mesh", space) == {"by": "lender"}
    await home.hub.delete(Ref(Cluster, "site", home.project))
    await until_gone(home.hub, Cluster, "site", home.project)
    await until_gone(home.target, CM, "mesh", space)
    await home.hub.delete(Ref(Project, lender.project))
    await until_gone(home.hub, Project, lender.project, "")


async def test_why_a_cluster_cannot_be_reached_is_told_apart(home: Home, tmp_path: Path) -> None:
    whole = yaml_load(home.kubeconfig.decode())
    (port,) = free_ports(1)
    cluster, user = whole["clusters"][0]["cluster"], {"token": "not-a-token"}

    def written(**changes: Any) -> bytes:
        users = [{"name": whole["users"][0]["name"], "user": changes.pop("user", whole["users"][0]["user"])}]
        clusters = [{"name": whole["clusters"][0]["name"], "cluster": {**cluster, **changes}}]
        return msgspec.json.encode({**whole, "clusters": clusters, "users": users})

    garbage = base64.b64encode(b"no certificate").decode()
    cases = {
        "unauthorized": (written(user=user), {"Unauthorized"}),
        "unreachable": (written(server=f"https://127.0.0.1:{port}"), {"Unreachable"}),
        "untrusted": (written(**{"certificate-authority-data": other_ca(tmp_path)}), {"Untrusted"}),
        "garbage": (written(**{"certificate-authority-data": garbage}), {"Untrusted", "KubeconfigInvalid"}),
    }
    for name, (kubeconfig, reasons) in cases.items():
        await home.secret(name, kubeconfig)
        config = {"imported": {"kubeconfigSecretRef": {"name": name}}}
        await home.create(Cluster, name, {"config": config})
        told = await until(
            home.hub, Cluster, home.project, name, lambda c: condition_of(c, "Reachable").get("status") == "False"
        )
        assert condition_of(told, "Reachable")["reason"] in reasons, name
        assert "not-a-token" not in str(told)
        forced = {**told["metadata"], "annotations": {"hub.trimtab.dev/force-delete": "true"}}
        await home.hub.patch(Untyped({**told, "metadata": {**told["metadata"]}}), Untyped({**told, "metadata": forced}))


async def test_a_hub_that_is_killed_in_the_midst_goes_on_where_it_was(
    tmp_path: Path, trimtab_server: TrimtabServer
) -> None:
    flags = ("--systems", "platform")
    server = TrimtabServer(tmp_path, flags=flags)
    try:
        home = await settled(server, trimtab_server)
        space = f"many-{home.project}"
        await home.create(Cluster, "site", {"config": IMPORTED})
        spec = {
            "namespace": space,
            "placement": {"clusters": [{"name": "site"}]},
            "artifact": {"uploadedYAML": {"paths": [{"name": "all.yaml"}]}},
        }
        await home.create(Workload, "shop", spec)
        await home.upload(Workload, "shop", "all.yaml", "".join(config_map(f"c{n:03}") for n in range(150)))
        await until(home.target, CM, space, "c010", lambda found: True)
        server.kill()
        there = {item.name for item in (await home.target.list(CM, Query(namespace=space))).items}
        assert 10 < len(there) < 150, "it was in the midst"
        await home.hub.close()
        server = TrimtabServer(tmp_path, flags=flags)
        home.hub = connect(server.kubeconfig, scheme=kubernetes.register(Scheme()))
        done = await home.ready(Workload, "shop")
        assert part_of(done, "site")["objects"] == 150
        found = {item.name for item in (await home.target.list(CM, Query(namespace=space))).items}
        assert len([name for name in found if name.startswith("c")]) == 150
        await home.hub.delete(Ref(Workload, "shop", home.project))
        await until_gone(home.hub, Workload, "shop", home.project)
        left = {item.name for item in (await home.target.list(CM, Query(namespace=space))).items}
        assert [name for name in left if name.startswith("c")] == []
        await home.hub.close()
        await home.target.close()
    finally:
        server.stop()


ODD = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80}], selector: {app: web}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: web
        env: []
        resources: {requests: {cpu: 1000m, memory: 1024Mi}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: empty, labels: {}}
data: {}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
"""


async def test_what_a_server_writes_in_another_way_is_no_drift(home: Home) -> None:
    space = f"odd-{home.project}"
    await home.create(Cluster, "site", {"config": IMPORTED})
    spec = {
        "namespace": space,
        "placement": {"clusters": [{"name": "site"}]},
        "artifact": {"uploadedYAML": {"paths": [{"name": "all.yaml"}]}},
    }
    await home.create(Workload, "shop", spec)
    await home.upload(Workload, "shop", "all.yaml", ODD)
    places = [("v1", "Service", "web"), ("apps/v1", "Deployment", "web"), ("v1", "ConfigMap", "empty")]

    async def revisions() -> list[Any]:
        return [
            (await home.target.get(Named(version, kind), name, space)).metadata.resource_version
            for version, kind, name in places
        ]

    await until(home.hub, Workload, home.project, "shop", lambda w: condition_of(w, "Applied").get("status") == "True")
    before = await revisions()
    for action in ("Detect", "Correct", "Off"):
        await home.change(Workload, "shop", drift={"action": action})
        seen = await until(
            home.hub,
            Workload,
            home.project,
            "shop",
            lambda w: w["status"]["observedGeneration"] == w["metadata"]["generation"],
        )
        assert part_of(seen, "site").get("drifted", 0) == 0
    assert await revisions() == before
    events = (await home.hub.list(Named("events.k8s.io/v1", "Event"), Query(namespace=home.project))).items
    assert "DriftCorrected" not in [event.raw["reason"] for event in events]


@pytest.mark.row(23)
@pytest.mark.row(4)
async def test_references_come_back_as_the_names_they_were_also_of_what_is_not_there(home: Home) -> None:
    blueprint = {
        "base": {"name": "not-there-yet", "version": "v1"},
        "addons": [{"name": "mesh", "version": "latest", "dependsOn": ["crds", "nowhere"]}],
        "sharing": {"enabled": False},
    }
    artifact = {"helmInRepo": {"repository": "charts", "chart": "mesh"}}
    for name in ("crds", "mesh"):
        await home.create(Addon, name, {"namespace": "x", "artifact": artifact, "dependsOn": ["crds"]})
    await home.create(Blueprint, "base", blueprint)
    assert (await home.hub.get(Blueprint, "base", home.project)).raw["spec"] == blueprint
    await home.hub.delete(Ref(Addon, "crds", home.project))
    assert (await home.hub.get(Blueprint, "base", home.project)).raw["spec"] == blueprint
    found = (await home.hub.get(Addon, "mesh", home.project)).raw["spec"]
    assert found["artifact"] == artifact
    assert found["dependsOn"] == ["crds"]

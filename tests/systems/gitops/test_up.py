"""Git sync in `trimtab up`: kinds that the hub serves, their files and lineage, accounts, and the command line."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.widgets import until_gone
from tests.systems.gitops.desk import Desk, config, message
from trimtab.client.api import ApiClient
from trimtab.client.connect import connect
from trimtab.client.protocol import Named, Ref
from trimtab.client.transport import Call, document_of
from trimtab.lab.git import run as git_run
from trimtab.lab.git_daemon import GitDaemon
from trimtab.model import kubernetes
from trimtab.model.scheme import Scheme, Untyped
from trimtab.systems.gitops.acting import impersonating
from trimtab.systems.gitops.kinds import GitSync, Repository, SyncConflict
from trimtab.systems.gitops.run.owners import living
from trimtab.testing.embedded import TrimtabServer

MANIFEST = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: inside\n"
ADDON = """\
# kept by the platform team
apiVersion: infra.trimtab.dev/v3
kind: Addon
metadata:
  name: ingress
  description: lets traffic in
spec:
  namespace: ingress
  artifact:
    uploadedYAML:
      paths:
      - name: ingress/all.yaml
"""


class Up(Desk):
    """The controllers are those of the server."""

    server: TrimtabServer

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [
            str(Path(sys.executable).with_name("trimtab")),
            "git",
            *words,
            "--kubeconfig",
            str(self.server.kubeconfig),
        ]
        if words[0] != "listen":
            command += ["--namespace", self.namespace]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    async def trimtab(self, *words: str) -> subprocess.CompletedProcess[str]:
        return await asyncio.to_thread(self.run, *words)

    async def read(self, path: str, **query: str) -> bytes:
        reply = await self.client.transport.call(Call(method="GET", path=path, query=query, accept="*/*"))
        return reply.body

    async def addon(self, **query: str) -> dict[str, Any]:
        return document_of(
            await self.read(f"/apis/infra.trimtab.dev/v3/namespaces/{self.namespace}/addons/ingress", **query)
        )

    async def patch_addon(self, change: bytes) -> None:
        path = f"/apis/infra.trimtab.dev/v3/namespaces/{self.namespace}/addons/ingress"
        media = "application/merge-patch+json"
        await self.client.transport.call(Call(method="PATCH", path=path, body=change, content_type=media))


@pytest.fixture
async def up(trimtab_server: TrimtabServer, git_daemon: GitDaemon, tmp_path: Path) -> AsyncIterator[Up]:
    scheme = kubernetes.register(Scheme())
    for kind in (Repository, GitSync, SyncConflict):
        scheme.register(kind)
    client: ApiClient = connect(trimtab_server.kubeconfig, scheme=scheme)
    project = f"team-{uuid.uuid4().hex[:8]}"
    await client.create(
        Untyped({"apiVersion": "hub.trimtab.dev/v3", "kind": "Project", "metadata": {"name": project}, "spec": {}})
    )
    made = Up(client, project, tmp_path, git_daemon)
    made.server = trimtab_server
    try:
        yield made
    finally:
        await client.close()


@pytest.mark.row(27)
@pytest.mark.row(40)
@pytest.mark.row(48)
async def test_hub_kinds_come_with_their_files_and_keep_their_lineage_to_themselves(up: Up) -> None:
    up.git.create("team", {"addons/ingress.yaml": ADDON, "addons/ingress/all.yaml": MANIFEST})
    await up.repository()
    await up.sync()
    await up.ready()
    base = f"/apis/infra.trimtab.dev/v3/namespaces/{up.namespace}/addons/ingress"
    assert await up.read(f"{base}/artifacts/ingress/all.yaml") == MANIFEST.encode()
    plain, whole = await up.addon(), await up.addon(includeLineage="true")
    assert "hub.trimtab.dev/lineage" not in str(plain)
    assert whole["metadata"]["annotations"]["hub.trimtab.dev/lineage"].startswith(f"{up.namespace}/fleet@")
    up.git.commit("team", {"addons/ingress/all.yaml": MANIFEST + "data: {a: b}\n"})
    await up.again()
    assert await up.read(f"{base}/artifacts/ingress/all.yaml") == (MANIFEST + "data: {a: b}\n").encode()
    up.git.commit("team", {"addons/ingress.yaml": ADDON.replace("ingress/all.yaml", "../../etc/passwd")})
    await up.ask()
    sync = await up.reason("InvalidDocuments")
    assert any("leaves the folder" in problem.message for problem in sync.status.documents)


async def test_a_sync_that_is_made_again_has_its_objects_back(up: Up) -> None:
    up.git.create("team", {"addons/ingress.yaml": ADDON, "addons/ingress/all.yaml": MANIFEST})
    await up.repository()
    await up.sync()
    await up.ready()
    before = await up.addon()
    await up.client.delete(Ref(GitSync, "fleet", up.namespace))
    await until_gone(up.client, GitSync, "fleet", up.namespace)
    made = await up.sync()
    sync = await up.ready()
    assert sync.status.inventory.count == 1
    whole = await up.addon(includeLineage="true")
    assert whole["metadata"]["uid"] == before["metadata"]["uid"]
    lineage = whole["metadata"]["annotations"]["hub.trimtab.dev/lineage"]
    assert lineage == f"{up.namespace}/fleet@{made.metadata.uid}"


async def test_an_owner_that_may_not_be_read_is_not_taken_for_gone(up: Up) -> None:
    lineage = f"{up.namespace}/fleet@gone"
    stranger = ApiClient(impersonating(up.client.transport, "stranger"), up.client.scheme)
    try:
        assert await living(up.client, [lineage]) == {}
        assert await living(stranger, [lineage]) == {lineage: f"{up.namespace}/fleet"}
    finally:
        await stranger.close()


@pytest.mark.row(47)
@pytest.mark.row(49)
async def test_changes_of_hub_kinds_and_their_files_go_to_git_by_themselves(up: Up) -> None:
    up.git.create("team", {"addons/ingress.yaml": ADDON, "addons/ingress/all.yaml": MANIFEST})
    await up.repository()
    await up.sync(systemToGit=True, exclude=["Project", "hub.*/Repository"])
    await up.ready()
    await up.patch_addon(b'{"spec": {"namespace": "edge"}}')
    await up.until(lambda sync: b"namespace: edge" in up.git.read()["addons/ingress.yaml"])
    await up.ready()
    assert up.git.read()["addons/ingress.yaml"].decode() == ADDON.replace("namespace: ingress", "namespace: edge")
    shown = git_run("-C", str(up.git.path()), "log", "-1", "--format=%an, %cn", "main").decode().strip()
    assert shown == "trimtab-admin, trimtab"
    path = f"/apis/infra.trimtab.dev/v3/namespaces/{up.namespace}/addons/ingress/artifacts/ingress/all.yaml"
    body = MANIFEST.encode() + b"data: {x: y}\n"
    await up.client.transport.call(Call(method="PUT", path=path, body=body, content_type="application/octet-stream"))
    await up.until(lambda sync: up.git.read()["addons/ingress/all.yaml"] == body)
    await up.ready()
    assert len(up.git.history()) == 3
    assert b"digest" not in up.git.read()["addons/ingress.yaml"]


async def test_secrets_of_a_cluster_stay_where_they_are(up: Up) -> None:
    """Those in Git are Git's, those that are not there are the system's; what is around them goes both ways."""
    up.git.create("team", {"edge.yaml": CLUSTER})
    await up.repository()
    await up.sync(systemToGit=True, exclude=["Project", "hub.*/Repository"])
    await up.ready()
    path = f"/apis/infra.trimtab.dev/v3/namespaces/{up.namespace}/clusters/edge"
    mine = {"nodes": {"one": {"ssh": {"passphrase": "hunter2"}}}, "kubernetesVersion": "v1.32.0"}
    proxy = {"enabled": True, "httpProxy": "http://proxy", "proxyAuth": "me:hunter2"}
    change = json.dumps({"spec": {"config": {"mks": mine}, "proxy": proxy}}).encode()
    media = "application/merge-patch+json"
    await up.client.transport.call(Call(method="PATCH", path=path, body=change, content_type=media))
    await up.until(lambda sync: b"v1.32.0" in up.git.read()["edge.yaml"])
    await up.ready()
    written = up.git.read()["edge.yaml"].decode()
    assert written.startswith(CLUSTER.replace("v1.31.4", "v1.32.0"))
    assert "httpProxy: http://proxy" in written
    log = git_run("-C", str(up.git.path()), "log", "-p", "main").decode()
    assert "hunter2" not in log
    up.git.commit("team", {"edge.yaml": written.replace("hostname: one", "hostname: first")})
    said = await up.trimtab("diff", "fleet")
    assert ("first" in said.stdout, "hunter2" in said.stdout) == (True, False), said
    await up.again()
    await up.ready()
    live = document_of(await up.read(path))["spec"]
    assert live["config"]["mks"]["nodes"]["one"]["hostname"] == "first"
    assert live["config"]["mks"]["nodes"]["one"]["ssh"] == {"passphrase": "of-git"}
    assert live["proxy"]["proxyAuth"] == "me:hunter2"


CLUSTER = """\
apiVersion: infra.trimtab.dev/v3
kind: Cluster
metadata:
  name: edge
spec:
  config:
    mks:
      kubernetesVersion: v1.31.4
      network:
        cni: {name: Calico}
        podSubnet: 10.244.0.0/16
        serviceSubnet: 10.96.0.0/12
      nodes:
        one:
          arch: amd64
          hostname: one
          operatingSystem: Ubuntu22.04
          privateIp: 10.0.0.1
          roles: [ControlPlane]
          ssh: {passphrase: of-git}  # for the first start
"""


async def test_a_sync_with_a_service_account_may_do_what_that_may(up: Up) -> None:
    role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: reader}\nrules: []\n"
    up.git.create("team", {"role.yaml": role, "a.yaml": config("a", x="1")})
    await up.repository()
    for document in (
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "deployer"}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "deployer"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "deployer"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "deployer"},
            "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": up.namespace}],
        },
    ):
        document["metadata"]["namespace"] = up.namespace
        await up.client.create(Untyped(document))
    await up.sync(serviceAccount="deployer")
    sync = await up.until(lambda sync: "deployer" in message(sync))
    assert "forbidden" in message(sync)
    up.git.commit("team", {"role.yaml": None})
    await up.ask()
    await up.ready()
    assert await up.names() == ["a"]


@pytest.mark.slow
@pytest.mark.row(50)
async def test_the_command_line_plans_syncs_and_decides(up: Up, tmp_path: Path) -> None:
    up.git.create("team", {f"{n}.yaml": config(f"c{n}", x="1") for n in range(9)})
    await up.repository()
    await up.sync()
    await up.ready()
    said = await up.trimtab("plan", "fleet", "--exit-code")
    assert (said.returncode, "9 unchanged" in said.stdout) == (0, True), said
    feature = {f"{n}.yaml": None for n in range(7)}
    up.git.commit(
        "team",
        {**feature, "8.yaml": config("c8", x="2"), "new.yaml": config("new", x="1")},
        branch="feature",
        force_from=up.git.head(),
    )
    said = await up.trimtab("plan", "fleet", "--revision", "feature", "--exit-code")
    assert said.returncode == 1, said
    assert "+ create" in said.stdout
    assert "MassDelete" in said.stdout
    up.git.commit("team", {"new.yaml": config("new", x="1")}, branch="more", force_from=up.git.head())
    said = await up.trimtab("plan", "fleet", "--revision", "more", "--exit-code")
    assert (said.returncode, "1 to create" in said.stdout) == (2, True), said
    said = await up.trimtab("diff", "--revision", "feature")
    assert "-  x: '1'" in said.stdout
    assert "+  x: '2'" in said.stdout
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.yaml").write_text("apiVersion: v1\nkind: ConfigMapp\nmetadata: {name: a}\n")
    said = await up.trimtab("plan", "--folder", str(folder))
    assert said.returncode == 1, said
    assert "a.yaml:1: kind: ConfigMapp is not in v1" in said.stdout
    up.git.commit("team", {**feature, "8.yaml": config("c8", x="2")})
    said = await up.trimtab("sync", "fleet")
    assert (said.returncode, "MassDelete" in said.stdout) == (1, True), said
    said = await up.trimtab("status", "fleet")
    assert (said.returncode, "held       7 deletions" in said.stdout) == (1, True), said
    assert f"next       `trimtab git confirm fleet -n {up.namespace}` lets them pass" in said.stdout
    assert (await up.trimtab("confirm", "fleet", "--plan", "wrong")).returncode == 1
    assert (await up.trimtab("confirm", "fleet")).returncode == 0
    await up.ready()
    assert await up.names() == ["c7", "c8"]
    assert (await up.trimtab("suspend", "fleet", "--reason", "frozen")).returncode == 0
    await up.reason("Suspended")
    assert (await up.trimtab("sync", "fleet")).returncode == 1
    assert (await up.trimtab("resume", "fleet")).returncode == 0
    await up.ready()
    said = await up.trimtab("status", "nothing")
    assert (said.returncode, "there are: fleet" in said.stderr) == (3, True), said


CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: GROUPS}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: carts, kind: Cart}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {size: {type: integer}}}}
"""


async def root(up: Up) -> None:
    """A ServiceAccount that may do everything."""
    await up.client.create(
        Untyped({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "root", "namespace": up.namespace}})
    )
    await up.client.create(
        Untyped(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": up.namespace},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
                "subjects": [{"kind": "ServiceAccount", "name": "root", "namespace": up.namespace}],
            }
        )
    )


async def test_a_kind_and_its_objects_may_come_in_one_revision(up: Up) -> None:
    group = f"{up.namespace}.example.com"
    crd = CRD.replace("GROUPS", f"carts.{group}").replace("GROUP", group)
    cart = f"apiVersion: {group}/v1\nkind: Cart\nmetadata: {{name: big}}\nspec: {{size: large}}\n"
    up.git.create("team", {"a-cart.yaml": cart, "crd.yaml": crd})
    await up.repository()
    await root(up)
    await up.sync(serviceAccount="root")
    assert "spec.size" in message(await up.reason("InvalidDocuments"))
    up.git.commit("team", {"a-cart.yaml": cart.replace("large", "3")})
    await up.ask()
    await up.ready()
    live = await up.live("big", "Cart", f"{group}/v1")
    assert live is not None
    assert live["spec"] == {"size": 3}


def carts(up: Up, *versions: str) -> str:
    """The definition of Carts; the last version is the one that is stored, and the first two are served."""
    group = f"{up.namespace}.example.com"
    head, _, one = CRD.replace("GROUPS", f"carts.{group}").replace("GROUP", group).partition("  - name: v1\n")
    last = versions[-1]
    return head + "".join(
        f"  - name: {v}\n" + (one if v == last else one.replace("storage: true", "storage: false")) for v in versions
    )


def cart(up: Up, version: str, size: int) -> str:
    return f"apiVersion: {up.namespace}.example.com/{version}\nkind: Cart\nmetadata: {{name: big}}\nspec: {{size: {size}}}\n"


@pytest.mark.parametrize("both", [False, True])
async def test_a_new_version_of_a_kind_and_its_objects_in_it_may_come_in_one_revision(up: Up, both: bool) -> None:
    up.git.create("team", {"crd.yaml": carts(up, "v1"), "big.yaml": cart(up, "v1", 3)})
    await up.repository()
    await root(up)
    await up.sync(serviceAccount="root", systemToGit=both, exclude=["Repository"])
    await up.ready()
    up.git.commit("team", {"crd.yaml": carts(up, "v1", "v2"), "big.yaml": cart(up, "v2", 4)})
    await up.ask()
    await up.ready()
    assert ((await up.live("big", "Cart", f"{up.namespace}.example.com/v2")) or {})["spec"] == {"size": 4}


@pytest.mark.parametrize("both", [False, True])
async def test_what_was_synced_in_a_version_that_is_served_no_more_is_pruned(up: Up, both: bool) -> None:
    up.git.create("team", {"crd.yaml": carts(up, "v1", "v2"), "big.yaml": cart(up, "v1", 3)})
    await up.repository()
    await root(up)
    await up.sync(serviceAccount="root", systemToGit=both, exclude=["Repository"])
    await up.ready()
    kind = Named("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    held = await up.client.get(kind, f"carts.{up.namespace}.example.com")
    without_v1 = {**held.raw["spec"], "versions": held.raw["spec"]["versions"][1:]}
    await up.client.patch(held, Untyped({**held.raw, "spec": without_v1}))
    up.git.commit("team", {"crd.yaml": carts(up, "v2"), "big.yaml": None})
    await up.ask()
    await up.ready()
    assert await up.live("big", "Cart", f"{up.namespace}.example.com/v2") is None


async def test_a_kind_that_is_deleted_takes_nothing_out_of_git(up: Up) -> None:
    up.git.create("team", {"crd.yaml": carts(up, "v1"), "big.yaml": cart(up, "v1", 3)})
    await up.repository()
    await root(up)
    await up.sync(serviceAccount="root", systemToGit=True, exclude=["Repository"])
    await up.ready()
    head = up.git.head()
    kind, name = Named("apiextensions.k8s.io/v1", "CustomResourceDefinition"), f"carts.{up.namespace}.example.com"
    await up.client.delete(Ref(kind, name))
    await until_gone(up.client, kind, name, "")
    await up.ask()
    await up.reason("KindGone")
    assert up.git.head() == head
    up.git.commit("team", {"crd.yaml": None, "big.yaml": None, "a.yaml": config("a", x="1")})
    await up.ask()
    await up.ready()

"""`trimtab restore --server` with the hub's own: resources with versions and files, from one server to another."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import msgspec
import orjson
import pytest

from tests.cli.conftest import Program
from tests.needs import needs
from trimtab.cli.backup_archive import HUB, opened, write
from trimtab.lab.git_http import GitHttp
from trimtab.model.yaml import load
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.ports import free_ports

pytestmark = pytest.mark.slow

INFRA, APPS, HUB_API = "infra.trimtab.dev/v3", "apps.trimtab.dev/v3", "hub.trimtab.dev/v3"
FLAGS = ("--systems", "platform,gitops")
LINEAGE = "hub.trimtab.dev/lineage"
ONE, TWO, DRAFT, WEB = b"kind: One\n", b"kind: Two\n", b"kind: Draft\n", bytes(range(256)) * 5000

Document = dict[str, Any]


class Server:
    """One of the two, as kubectl and the program meet it."""

    def __init__(self, started: TrimtabServer, program: Program) -> None:
        self.started, self._program = started, program
        self.data = started.kubeconfig.parent

    def __call__(self, *words: str, stdin: str = "") -> Any:
        self._program.env["KUBECONFIG"] = str(self.started.kubeconfig)
        return self._program(*words, stdin=stdin)

    def done(self, *words: str, stdin: str = "") -> str:
        ran = self(*words, stdin=stdin)
        assert ran.code == 0, ran.out + ran.err
        return str(ran.out)

    def apply(self, *documents: Document) -> None:
        text = "\n---\n".join(orjson.dumps(each).decode() for each in documents)
        self.done("apply", "--force-conflicts", "-f", "-", stdin=text)

    def put(self, whose: str, path: str, data: bytes, project: str = "shop") -> None:
        (self._program.folder / "file").write_bytes(data)
        self.done("hub", "artifacts", "put", whose, path, "file", "-n", project)

    def file(self, whose: str, path: str, version: str = "") -> bytes:
        of = ("--version", version) if version else ()
        self.done("hub", "artifacts", "get", whose, path, "got", "-n", "shop", *of)
        return (self._program.folder / "got").read_bytes()

    def raw(self, path: str, *words: str, stdin: str = "") -> Document:
        command = ["kubectl", "--kubeconfig", str(self.started.kubeconfig), *(words or ("get",)), "--raw", path]
        command += ["-f", "-"] if stdin else []
        found: Document = orjson.loads(
            subprocess.run(command, input=stdin.encode(), capture_output=True, check=True).stdout
        )
        return found

    def said(self, api: str, plural: str, name: str, project: str = "shop", **query: str) -> Document:
        """What people have said of a resource."""
        where = f"namespaces/{project}/" if project else ""
        asked = "&".join(f"{word}={value}" for word, value in {"includeLineage": "true", **query}.items())
        found = self.raw(f"/apis/{api}/{where}{plural}/{name}?{asked}")
        metadata = found["metadata"]
        annotations = {k: v.partition("@")[0] for k, v in (metadata.get("annotations") or {}).items()}
        annotations.pop("hub.trimtab.dev/changed-by")
        words = {word: metadata[word] for word in ("name", "project", "description", "labels") if word in metadata}
        return {"metadata": {**words, "annotations": annotations}, "spec": found["spec"]}

    def versions(self, plural: str, name: str) -> list[str]:
        found = self.raw(f"/apis/{INFRA}/namespaces/shop/{plural}/{name}/versions")
        return [each["version"] for each in found["items"]]


ALL = (
    (HUB_API, "projects", "shop", ""),
    (HUB_API, "projects", "blue", ""),
    (HUB_API, "projects", "default", ""),
    (HUB_API, "repositories", "desk", "shop"),
    (HUB_API, "gitsyncs", "desk", "shop"),
    (INFRA, "addons", "limits", "shop"),
    (INFRA, "addons", "empty", "shop"),
    (INFRA, "blueprints", "edge", "shop"),
    (INFRA, "clusters", "one", "shop"),
    (APPS, "workloads", "web", "shop"),
)


def named(api: str, kind: str, name: str, project: str = "shop", **more: Any) -> Document:
    metadata = {"name": name, **({"namespace": project} if project else {}), **more.pop("metadata", {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **more}


def addon(name: str, **spec: Any) -> Document:
    files = {"uploadedYAML": {"paths": [{"name": "m/it.yaml"}]}}
    return named(INFRA, "Addon", name, spec={"namespace": "sys", "artifact": files, **spec})


def blueprint(version: str, *addons: str) -> Document:
    sharing = {"enabled": True, "projects": [{"name": "blue"}]}
    spec = {"version": version, "addons": [{"name": each} for each in addons], "sharing": sharing}
    return named(INFRA, "Blueprint", "edge", spec=spec)


def fill(server: Server) -> None:
    server.apply(
        named(HUB_API, "Project", "shop", "", metadata={"description": "What is sold."}),
        named("v1", "Namespace", "blue", "", metadata={"labels": {"mine": "yes"}}),
        named(HUB_API, "Project", "blue", "", spec={"adopt": True, "deletion": "Cascade"}),
    )
    server.done("wait", "project/shop", "project/blue", "--for", "condition=Ready")
    server.apply(named("v1", "Secret", "one", stringData={"kubeconfig": "{}"}), addon("limits"), addon("empty"))
    for version, data in (("v1", ONE), ("v2", TWO)):
        server.apply(addon("limits"))
        server.put("addon/limits", "m/it.yaml", data)
        server.apply(addon("limits", version=version))
    server.apply(addon("limits", namespace="later"))
    server.put("addon/limits", "m/it.yaml", DRAFT)
    server.put("addon/empty", "m/it.yaml", ONE)
    server.apply(addon("empty", version="v1"), blueprint("v1", "limits"), blueprint("v2", "limits", "empty"))
    imported = {"imported": {"kubeconfigSecretRef": {"name": "one"}}}
    proxy = {"enabled": True, "httpProxy": "http://127.0.0.1:1", "proxyAuth": "user:password"}
    git = {"endpoint": "https://127.0.0.1:1/desk.git"}
    server.apply(
        named(INFRA, "Cluster", "one", spec={"blueprint": {"name": "edge"}, "config": imported, "proxy": proxy}),
        named(HUB_API, "Repository", "desk", spec=git),
        named(HUB_API, "GitSync", "desk", spec={"repository": "desk", "path": "shop"}),
        named(
            APPS,
            "Workload",
            "web",
            metadata={"labels": {"tier": "front"}, "annotations": {"note": "by hand"}, "description": "The shop."},
            spec={
                "namespace": "web",
                "placement": {"clusters": [{"name": "one"}]},
                "artifact": {"uploadedYAML": {"paths": [{"name": "web.yaml", "sensitive": True}]}},
            },
        ),
    )
    server.put("workload/web", "web.yaml", WEB)
    server.apply(named(HUB_API, "Project", "going", ""))
    server.done("wait", "project/going", "--for", "condition=Ready")
    server.apply({**addon("left"), "metadata": {"name": "left", "namespace": "going"}})
    server.done("delete", "project", "going", "--no-wait")
    path = f"/apis/{INFRA}/namespaces/shop/blueprints/edge?includeLineage=true"
    uid = server.raw(f"/apis/{HUB_API}/namespaces/shop/gitsyncs/desk")["metadata"]["uid"]
    edge = server.raw(path)
    edge["metadata"].setdefault("annotations", {})[LINEAGE] = f"shop/desk@{uid}"
    server.raw(path, "replace", stdin=orjson.dumps(edge).decode())


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, zygote: Any) -> Iterator[Server]:
    from tests.cli.conftest import environment

    folder = tmp_path_factory.mktemp("source")
    with TrimtabServer(folder, flags=FLAGS) as started:
        server = Server(started, Program(folder, environment(), zygote))
        fill(server)
        server.done("backup", "saved.tar.gz", "--data-dir", str(server.data))
        yield server


@pytest.fixture
def saved(source: Server, bare: Program) -> Path:
    shutil.copy(source.data.parent / "saved.tar.gz", bare.folder / "saved.tar.gz")
    return bare.folder / "saved.tar.gz"


@pytest.fixture
def target(saved: Path, bare: Program, tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "target").mkdir()
    with TrimtabServer(tmp_path / "target", flags=FLAGS) as started:
        server = Server(started, bare)
        server.done("wait", "project/default", "--for", "condition=Ready")
        yield server


RESTORE = ("restore", "saved.tar.gz", "--server")


def test_the_hubs_resources_come_back_with_versions_files_and_lineage(source: Server, target: Server) -> None:
    shown = target(*RESTORE)
    assert shown.code == 0, shown.err
    assert "create     addon.infra.trimtab.dev shop/limits" in shown.lines
    assert "unchanged" in shown.lines[-2]
    assert target("get", "project", "shop").code == 3, "a plan changes nothing"
    ran = target(*RESTORE, "--yes")
    assert ran.code == 0, ran.out + ran.err
    for each in ALL:
        assert target.said(*each) == source.said(*each), each
    assert target.versions("addons", "limits") == ["v2", "v1"], "the newest first"
    assert target.versions("blueprints", "edge") == ["v2", "v1"]
    for version in ("v1", "v2", "latest"):
        for plural, name in (("addons", "limits"), ("blueprints", "edge")):
            at = (INFRA, plural, name)
            assert target.said(*at, version=version)["spec"] == source.said(*at, version=version)["spec"]
    got = [target.file("addon/limits", "m/it.yaml", version) for version in ("v1", "v2", "")]
    assert got == [ONE, TWO, DRAFT]
    assert target.file("workload/web", "web.yaml") == WEB
    sync = target.raw(f"/apis/{HUB_API}/namespaces/shop/gitsyncs/desk")
    edge = target.raw(f"/apis/{INFRA}/namespaces/shop/blueprints/edge?includeLineage=true")
    assert edge["metadata"]["annotations"][LINEAGE] == f"shop/desk@{sync['metadata']['uid']}", "the sync's uid here"
    assert sync["spec"]["suspend"] is False, "everything is there"


def test_a_projects_namespace_is_its_own_and_one_that_it_took_over_stays(source: Server, target: Server) -> None:
    assert target(*RESTORE, "--yes").code == 0
    target.done("wait", "project/shop", "project/blue", "--for", "condition=Ready")
    for name, how in (("shop", "made-for"), ("blue", "adopted-by")):
        uid = target.raw(f"/apis/{HUB_API}/projects/{name}")["metadata"]["uid"]
        annotations = target.raw(f"/api/v1/namespaces/{name}")["metadata"]["annotations"]
        assert annotations == {f"hub.trimtab.dev/{how}": uid}
    assert target.raw("/api/v1/namespaces/blue")["metadata"]["labels"]["mine"] == "yes"


def test_a_second_restore_changes_nothing(target: Server) -> None:
    assert target(*RESTORE, "--yes").code == 0
    target.done("wait", "project/shop", "project/blue", "--for", "condition=Ready")
    before = [target.said(*each) for each in ALL]
    ran = target(*RESTORE, "--yes")
    assert ran.code == 0, ran.out + ran.err
    assert " 0 create," in ran.out
    assert " 0 conflict, 0 overwrite," in ran.out
    assert ran.lines[-1] == "0 created, 0 overwritten, 0 failed"
    assert [target.said(*each) for each in ALL] == before


def test_what_differs_is_a_conflict_and_the_archive_wins_when_it_is_told_to(source: Server, target: Server) -> None:
    assert target(*RESTORE, "--yes").code == 0
    target.put("addon/limits", "m/it.yaml", b"kind: Other\n")
    target.apply(named(APPS, "Workload", "web", metadata={"description": "Something else."}))
    plain = ("shop/limits: spec is another on the server", "shop/web: metadata.description is another on the server")
    ran = target(*RESTORE, "--yes")
    assert ran.code == 1
    for told in plain:
        assert any(line.startswith("conflict ") and line.endswith(told) for line in ran.lines), ran.out
    assert target.file("addon/limits", "m/it.yaml") == b"kind: Other\n", "nothing was overwritten"
    ran = target(*RESTORE, "--yes", "--overwrite")
    assert ran.code == 0, ran.out + ran.err
    assert ran.lines[-1] == "0 created, 2 overwritten, 0 failed"
    assert target.file("addon/limits", "m/it.yaml") == DRAFT
    assert [target.said(*each) for each in ALL] == [source.said(*each) for each in ALL]


def test_a_version_with_other_contents_is_never_overwritten(target: Server) -> None:
    target.apply(named(HUB_API, "Project", "shop", ""))
    for name, version in (("empty", "v1"), ("limits", "v3")):
        target.apply(addon(name, version=version, namespace="other"))
        target.put(f"addon/{name}", "m/it.yaml", DRAFT)
    ran = target(*RESTORE, "--yes", "--overwrite")
    assert ran.code == 1
    why = "version v1 is published there with other contents, and never changes"
    assert f"conflict   addon.infra.trimtab.dev shop/empty: {why}" in ran.lines
    why = "version v1 cannot be published after v3, which the server has"
    assert f"conflict   addon.infra.trimtab.dev shop/limits: {why}" in ran.lines
    assert target.versions("addons", "limits") == ["v3"]
    assert target.versions("blueprints", "edge") == ["v2", "v1"], "all the rest comes back"


def test_a_restore_that_was_cut_off_is_gone_on_with(source: Server, target: Server) -> None:
    """It ends at the last write of the addon: two versions and a draft are there, with the mark."""
    stop = (
        "import os, trimtab.cli.restore_hub_write as w\n"
        "real = w.Bringing._write\n"
        "async def write(self, spec, *, marked):\n"
        "    if self.name.name == 'limits' and not marked: os._exit(9)\n"
        "    return await real(self, spec, marked=marked)\n"
        "w.Bringing._write = write\n"
        f"import sys; sys.argv = ['trimtab', *{RESTORE!r}, '--yes']\n"
        "from trimtab.cli import main; main()\n"
    )
    folder = target.data.parent.parent
    env = {**os.environ, "KUBECONFIG": str(target.started.kubeconfig)}
    assert subprocess.run([sys.executable, "-c", stop], cwd=folder, env=env, capture_output=True).returncode == 9
    assert target.raw(f"/apis/{HUB_API}/namespaces/shop/gitsyncs/desk")["spec"]["suspend"] is True, "it waits"
    ran = target(*RESTORE, "--yes")
    assert ran.code == 0, ran.out + ran.err
    assert "create     addon.infra.trimtab.dev shop/limits: a restore of it was cut off" in ran.lines
    assert [target.said(*each) for each in ALL] == [source.said(*each) for each in ALL]
    assert target.versions("addons", "limits") == ["v2", "v1"]


def changed(saved: Path, *statements: str) -> None:
    """The archive, with another hub.db in it."""
    folder = saved.parent / "unpacked"
    folder.mkdir()
    with opened(saved) as archive:
        manifest = archive.manifest
        for member, read in archive.members():
            path = folder / member.sha256
            with path.open("wb") as out:
                while piece := read(1 << 20):
                    out.write(piece)
    place = {member.name: folder / member.sha256 for member in manifest.members}
    connection = apsw.Connection(str(place[HUB]))
    for statement in statements:
        connection.execute(statement)
    connection.close()
    data = place[HUB].read_bytes()
    members = tuple(
        msgspec.structs.replace(member, size=len(data), sha256=hashlib.sha256(data).hexdigest())
        if member.name == HUB
        else member
        for member in manifest.members
    )
    with saved.open("wb") as out:
        write(
            out, msgspec.structs.replace(manifest, members=members), lambda m: place[m.name].open("rb"), lambda _: None
        )


def test_what_cannot_come_back_is_told(saved: Path, target: Server) -> None:
    digest = f"sha256:{hashlib.sha256(WEB).hexdigest()}"
    changed(
        saved,
        f"DELETE FROM hub_blobs WHERE digest = '{digest}'",
        "INSERT INTO hub_resources SELECT organization, 'tickets.desk', project_name, name, project, 'x', revision, labels, data "
        "FROM hub_resources WHERE name = 'limits'",
    )
    ran = target(*RESTORE, "--yes")
    assert ran.code == 1
    why = 'the bytes of its file "web.yaml" are not in the archive'
    assert f"lost       workload.apps.trimtab.dev shop/web: {why}" in ran.lines
    assert "left out   1 tickets.desk: no such kind is known here" in ran.lines
    assert target("get", "workload", "web", "-n", "shop").code == 3
    assert target.file("addon/limits", "m/it.yaml") == DRAFT, "all the rest came back"


def test_resources_of_a_project_that_is_not_there_are_left_out(target: Server) -> None:
    ran = target(*RESTORE, "--yes")
    assert ran.code == 0, ran.out + ran.err
    assert "left out   1 Project: it was being deleted" in ran.lines
    assert "left out   1 Addon: the project going is not there" in ran.lines
    target.apply(named(HUB_API, "Project", "going", "", spec={"adopt": True}))
    ran = target(*RESTORE, "--yes")
    assert "create     addon.infra.trimtab.dev going/left" in ran.lines, "the project is there now"
    assert target("get", "addon", "left", "-n", "going").code == 0


def test_a_server_without_the_hub_is_told_what_it_does_not_serve(saved: Path, bare: Program, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with TrimtabServer(tmp_path / "plain", flags=("--systems", "none")) as started:
        ran = Server(started, bare)(*RESTORE, "--yes")
        assert ran.code == 0, ran.out + ran.err
        assert "left out   3 Addon: the server does not serve this kind" in ran.lines


def test_who_may_not_write_lineage_restores_without_it(target: Server, tmp_path: Path) -> None:
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
    rbac, who = "rbac.authorization.k8s.io", {"kind": "ServiceAccount", "name": "keeper", "namespace": "default"}
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": verbs}]
    role = {"apiGroup": rbac, "kind": "ClusterRole", "name": "keeper"}
    target.apply(
        named("v1", "ServiceAccount", "keeper", "default"),
        named(f"{rbac}/v1", "ClusterRole", "keeper", "", rules=rules),
        named(f"{rbac}/v1", "ClusterRoleBinding", "keeper", "", roleRef=role, subjects=[who]),
    )
    command = ["kubectl", "--kubeconfig", str(target.started.kubeconfig), "create", "token", "keeper", "-n", "default"]
    token = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    config = load(target.started.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    (tmp_path / "keeper").write_bytes(orjson.dumps(config))
    blobs = ("--blobs", str(target.data / "blobs"))
    ran = target(*RESTORE, "--yes", "--kubeconfig", str(tmp_path / "keeper"), *blobs)
    assert ran.code == 0, ran.out + ran.err
    assert "left out   lineage: you may not see and write it (the verb lineage)" in ran.lines
    assert LINEAGE not in target.said(INFRA, "blueprints", "edge")["metadata"]["annotations"]
    assert target.file("addon/limits", "m/it.yaml", "v1") == ONE


DESK = """syntax = "proto3";
message Ticket { Meta metadata = 1; TicketSpec spec = 2; }
message Meta { string name = 1; }
message TicketSpec { string title = 1; }
"""


def test_a_kind_of_a_file_comes_back_when_the_file_is_named(bare: Program, tmp_path: Path) -> None:
    bare.write("desk.proto", DESK)
    file = f"desk/v1={tmp_path / 'desk.proto'}"
    for name in ("from", "to"):
        (tmp_path / name).mkdir()
    with TrimtabServer(tmp_path / "from", flags=("--systems", "none", "--proto", file)) as started:
        first = Server(started, bare)
        first.apply(named("desk.trimtab.dev/v1", "Ticket", "one", "default", spec={"title": "A door"}))
        first.done("backup", "saved.tar.gz", "--data-dir", str(first.data))
    with TrimtabServer(tmp_path / "to", flags=("--systems", "none", "--proto", file)) as started:
        second = Server(started, bare)
        assert "left out   1 tickets.desk: no such kind is known here" in second(*RESTORE, "--yes").lines
        ran = second(*RESTORE, "--yes", "--proto", file)
        assert ran.code == 0, ran.out + ran.err
        assert second.said("desk.trimtab.dev/v1", "tickets", "one", "default")["spec"] == {"title": "A door"}


def test_a_git_sync_goes_on_with_what_it_had_applied(bare: Program, tmp_path: Path) -> None:
    """What came from Git is its own on the other server, too, and it follows Git there; but it deletes only objects that it
    knows by their uids."""
    names = ("one", "two")
    texts = {f"{name}.yaml": orjson.dumps(addon(name)).decode() for name in names}
    for name in ("from", "to"):
        (tmp_path / name).mkdir()
    needs("git")
    with GitHttp(tmp_path / "git", free_ports(1)[0]) as git:
        git.repositories.create("team", texts)
        with TrimtabServer(tmp_path / "from", flags=FLAGS) as started:
            first = Server(started, bare)
            first.apply(
                named(HUB_API, "Project", "shop", ""),
                named(HUB_API, "Repository", "team", spec={"endpoint": git.url("team")}),
                named(HUB_API, "GitSync", "team", spec={"repository": "team"}),
            )
            first.done("wait", "gitsync/team", "-n", "shop", "--for", "condition=Ready")
            first.done("backup", "saved.tar.gz", "--data-dir", str(first.data))
        with TrimtabServer(tmp_path / "to", flags=FLAGS) as started:
            second = Server(started, bare)
            second.done("wait", "project/default", "--for", "condition=Ready")
            second.done(*RESTORE, "--yes")
            git.repositories.commit("team", {"one.yaml": None, "three.yaml": orjson.dumps(addon("three")).decode()})
            second.done("git", "sync", "team", "-n", "shop")
            sync = second.raw(f"/apis/{HUB_API}/namespaces/shop/gitsyncs/team")
            assert sync["status"]["inventory"]["count"] == 2
            for name in names:
                found = second.raw(f"/apis/{INFRA}/namespaces/shop/addons/{name}?includeLineage=true")["metadata"]
                assert found["annotations"][LINEAGE] == f"shop/team@{sync['metadata']['uid']}"
                assert found["generation"] == 1, "nobody wrote it again"
            assert second("get", "addon", "three", "-n", "shop").code == 0
            assert " 0 create," in second.done(*RESTORE)

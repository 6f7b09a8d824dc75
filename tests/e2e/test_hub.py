"""The hub as kubectl and `trimtab` meet it on `trimtab up`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kubectl import Kubectl, newest
from trimtab.testing.embedded import TrimtabServer

TRIMTAB = str(Path(sys.executable).with_name("trimtab"))
INFRA, HUB = "infra.trimtab.dev/v3", "hub.trimtab.dev/v3"
ADDONS, BLUEPRINTS, PROJECTS = "addons.infra.trimtab.dev", "blueprints.infra.trimtab.dev", "projects.hub.trimtab.dev"
DESK = """syntax = "proto3";
package acme.desk;
// A question that somebody must answer.
message Ticket { Meta metadata = 1; TicketSpec spec = 2; }
message Meta { string name = 1; }
message TicketSpec {
  // What it is about.
  string title = 1;
  int32 days = 2;
}
"""
FLAGS = ("--systems", "platform", "--group-suffix", "acme.io")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrimtabServer]:
    folder = tmp_path_factory.mktemp("hub")
    (folder / "desk.proto").write_text(DESK)
    with TrimtabServer(folder, flags=(*FLAGS, "--proto", f"desk/v1={folder / 'desk.proto'}")) as server:
        yield server


@pytest.fixture
def kubectl(home: TrimtabServer, namespace: str, tmp_path: Path) -> Kubectl:
    """Bound to a project of this test."""
    bound = Kubectl(newest(), home, namespace, tmp_path)
    bound("create", "-f", "-", stdin=written(project(namespace)))
    return bound


def written(*documents: dict[str, Any]) -> str:
    return "\n---\n".join(map(json.dumps, documents))


def project(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": HUB, "kind": "Project", "metadata": {"name": name}, "spec": spec}


def addon(name: str = "web", api: str = INFRA, **metadata: Any) -> dict[str, Any]:
    spec = {"namespace": "web", "artifact": {"uploadedYAML": {"paths": [{"name": "m/web.yaml"}]}}}
    return {"apiVersion": api, "kind": "Addon", "metadata": {"name": name, **metadata}, "spec": spec}


def blueprint(version: str, *addons: str) -> dict[str, Any]:
    spec = {"version": version, "addons": [{"name": name, "version": "v1"} for name in addons]}
    return {"apiVersion": INFRA, "kind": "Blueprint", "metadata": {"name": "base"}, "spec": spec}


def trimtab(kubectl: Kubectl, *args: str, stdin: str = "") -> str:
    command = [TRIMTAB, *args, "--kubeconfig", str(kubectl.server.kubeconfig)]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.row(1)
def test_a_project_and_what_is_in_it_come_from_one_file(home: TrimtabServer, tmp_path: Path) -> None:
    kubectl = Kubectl(newest(), home, "together", tmp_path)
    told = kubectl("apply", "-f", "-", stdin=written(project("together"), addon(), blueprint("v1", "web")))
    assert [line.rpartition(" ")[2] for line in told.splitlines()] == ["created"] * 3
    kubectl("wait", PROJECTS, "together", "--for=condition=Ready", "--timeout=20s")
    table = kubectl("get", BLUEPRINTS).splitlines()
    assert table[0].split() == ["NAME", "VERSION", "BASE", "AGE"]
    assert table[1].split()[:2] == ["base", "v1"]


@pytest.mark.row(30)
def test_all_ways_to_change_a_resource_work(kubectl: Kubectl) -> None:
    kubectl("apply", "--server-side", "-f", "-", stdin=written(addon(labels={"a": "b"})))
    kubectl("patch", ADDONS, "web", "--type=json", "-p", '[{"op":"add","path":"/metadata/labels/c","value":"d"}]')
    kubectl("patch", ADDONS, "web", "--type=merge", "-p", '{"metadata":{"description":"a door"}}')
    kubectl("label", ADDONS, "web", "e=f")
    document = kubectl.json("get", ADDONS, "web")
    document["spec"]["namespace"] = "edge"
    kubectl("replace", "-f", "-", stdin=written(document))
    kubectl("patch", ADDONS, "web", "--subresource=status", "--type=merge", "-p", '{"status":{"observedGeneration":2}}')
    assert kubectl.json("get", ADDONS, "-l", "a=b,c=d,e=f")["items"][0]["spec"]["namespace"] == "edge"
    changed = kubectl.json("get", ADDONS, "web", "--show-managed-fields")
    assert changed["metadata"]["generation"] == 2
    assert changed["status"] == {"observedGeneration": 2}
    assert changed["metadata"]["description"] == "a door"
    assert {"kubectl", "kubectl-patch", "kubectl-label", "kubectl-replace"} <= {
        entry["manager"] for entry in changed["metadata"]["managedFields"]
    }


def test_what_is_applied_again_is_no_change(kubectl: Kubectl) -> None:
    document = written(addon(description="a door"), blueprint("v1", "web"))
    kubectl("apply", "--server-side", "-f", "-", stdin=document)
    before = kubectl.json("get", f"{ADDONS},{BLUEPRINTS}")
    kubectl("apply", "--server-side", "-f", "-", stdin=document)
    assert kubectl.json("get", f"{ADDONS},{BLUEPRINTS}") == before
    assert kubectl("diff", "--server-side", "-f", "-", stdin=document) == ""


@pytest.mark.row(5)
def test_a_document_that_names_its_project_needs_no_namespace(kubectl: Kubectl) -> None:
    mine = written(addon(project=kubectl.namespace))
    assert trimtab(kubectl, "apply", "-f", "-", stdin=mine) == "addon.infra.trimtab.dev/web created\n"
    assert trimtab(kubectl, "apply", "-f", "-", stdin=mine) == "addon.infra.trimtab.dev/web unchanged\n"
    kubectl("apply", "-f", "-", stdin=mine)  # -n says the same
    shown = trimtab(kubectl, "get", ADDONS, "-n", kubectl.namespace, "-o", "yaml")
    assert f"project: {kubectl.namespace}" in shown
    assert "web" in trimtab(kubectl, "describe", ADDONS, "web", "-n", kubectl.namespace)
    assert "web" in trimtab(kubectl, "tree", ADDONS, "web", "-n", kubectl.namespace)
    trimtab(kubectl, "wait", f"{ADDONS}/web", "--for=create", "-n", kubectl.namespace)
    assert trimtab(kubectl, "delete", "-f", "-", stdin=mine) == 'addon.infra.trimtab.dev "web" deleted\n'
    other = f"{kubectl.namespace}-other"
    together = trimtab(kubectl, "apply", "-f", "-", stdin=written(addon(project=other), project(other)))
    assert [line.rpartition(" ")[2] for line in together.splitlines()] == ["created"] * 2, "projects go first"
    refused = kubectl.fails("apply", "-f", "-", stdin=written(addon(project="default")))
    assert 'metadata.project: Invalid value: "default": a project is the namespace of its name: it must be ' in refused


@pytest.mark.row(9)
@pytest.mark.row(22)
def test_a_mistake_is_told_by_its_field(kubectl: Kubectl) -> None:
    for sharing, why in (
        ({"enabled": True, "projects": [{"name": "ghost"}]}, 'spec.sharing.projects[0].name: Invalid value: "ghost"'),
        ({"enabled": True}, "spec.sharing: Invalid value"),
        ({"enabled": True, "projects": [{"name": "*"}, {"name": "default"}]}, "is all projects: name it alone"),
    ):
        wrong = {**addon(), "spec": {**addon()["spec"], "sharing": sharing}}
        for dry in ((), ("--dry-run=server",)):
            assert why in kubectl.fails("create", "-f", "-", *dry, stdin=written(wrong))
    unknown = {**addon(), "spec": {**addon()["spec"], "colour": "red"}}
    assert 'unknown field "spec.colour"' in kubectl.fails("create", "-f", "-", stdin=written(unknown))
    assert kubectl("get", ADDONS, "-o", "name") == ""


@pytest.mark.row(28)
def test_a_published_version_stays_as_it_is(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=written(blueprint("v1", "a")))
    assert 'version "v1" of base is published' in kubectl.fails(
        "apply", "-f", "-", stdin=written(blueprint("v1", "a", "b"))
    )
    kubectl("apply", "-f", "-", stdin=written(blueprint("v2", "a", "b")))
    root = f"/apis/{INFRA}/namespaces/{kubectl.namespace}/blueprints/base"
    versions = json.loads(kubectl("get", "--raw", f"{root}/versions"))
    assert [each["version"] for each in versions["items"]] == ["v2", "v1"]
    for asked, count in (("v1", 1), ("v2", 2), ("latest", 2)):
        assert len(json.loads(kubectl("get", "--raw", f"{root}?version={asked}"))["spec"]["addons"]) == count


@pytest.mark.row(10)
def test_a_white_label_shows_the_same_resource_under_its_own_name(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=written(addon(api="infra.acme.io/v3")))
    ours, theirs = (kubectl.json("get", f"addons.infra.{suffix}", "web") for suffix in ("trimtab.dev", "acme.io"))
    assert theirs["apiVersion"] == "infra.acme.io/v3"
    assert (ours["metadata"]["uid"], ours["spec"]) == (theirs["metadata"]["uid"], theirs["spec"])
    assert "trimtab.dev" not in json.dumps(theirs)
    assert "acme.io" not in json.dumps(ours)


@pytest.mark.row(46)
def test_roles_hold_for_a_white_label_as_for_the_first_name(kubectl: Kubectl) -> None:
    kubectl("create", "rolebinding", "ed", "--clusterrole=edit", "--user=eve")
    document = written(addon(api="infra.acme.io/v3"))
    kubectl("create", "-f", "-", "--as=eve", stdin=document)
    for suffix in ("trimtab.dev", "acme.io"):
        assert kubectl("get", f"addons.infra.{suffix}", "-o", "name", "--as=eve") == f"addon.infra.{suffix}/web"
    kubectl.fails("get", "addons.infra.acme.io", "--as=mallory")


@pytest.mark.row(6)
def test_a_proto_file_is_a_kind_with_words_and_bounds(kubectl: Kubectl) -> None:
    told = kubectl("explain", "tickets.desk.trimtab.dev")
    assert "A question that somebody must answer." in told
    assert "What it is about." in kubectl("explain", "tickets.desk.trimtab.dev.spec.title")
    assert "its namespace" in kubectl("explain", "tickets.desk.trimtab.dev.metadata.project")
    ticket = {"apiVersion": "desk.trimtab.dev/v1", "kind": "Ticket", "metadata": {"name": "t"}, "spec": {"days": 3}}
    kubectl("create", "-f", "-", stdin=written(ticket))
    assert kubectl.json("get", "tickets.desk.trimtab.dev", "t")["spec"] == {"days": 3}
    refused = kubectl.fails("patch", "tickets.desk.trimtab.dev", "t", "--type=merge", "-p", '{"spec":{"days":3e10}}')
    assert "spec.days" in refused


def test_finalizers_owners_and_cascades_are_those_of_any_resource(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=written({**addon(finalizers=["acme.io/held"])}))
    uid = kubectl.json("get", ADDONS, "web")["metadata"]["uid"]
    owner = {"apiVersion": INFRA, "kind": "Addon", "name": "web", "uid": uid}
    owned = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned", "ownerReferences": [owner]}}
    kubectl("create", "-f", "-", stdin=written(owned))
    kubectl("delete", ADDONS, "web", "--wait=false")
    assert kubectl.json("get", ADDONS, "web")["metadata"]["deletionTimestamp"]
    kubectl("patch", ADDONS, "web", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    kubectl("wait", "--for=delete", f"{ADDONS}/web", "configmap/owned", "--timeout=20s")


def test_a_watch_tells_every_change_once(kubectl: Kubectl) -> None:
    watching = kubectl.start("get", ADDONS, "--watch", "--output-watch-events")
    try:
        assert watching.stdout is not None
        kubectl("create", "-f", "-", stdin=written(addon()))
        assert watching.stdout.readline().split()[:2] == ["EVENT", "NAME"]
        assert watching.stdout.readline().split()[:2] == ["ADDED", "web"]
        kubectl("label", ADDONS, "web", "a=b")
        assert watching.stdout.readline().split()[0] == "MODIFIED"
        kubectl("delete", ADDONS, "web")
        assert watching.stdout.readline().split()[0] == "DELETED"
    finally:
        watching.kill()
        watching.communicate()


def test_what_a_namespace_held_goes_with_it_and_its_project_makes_a_new_one(kubectl: Kubectl) -> None:
    kubectl("wait", PROJECTS, kubectl.namespace, "--for=condition=Ready", "--timeout=20s")
    kubectl("create", "-f", "-", stdin=written(addon()))
    before = kubectl.json("get", "namespace", kubectl.namespace)["metadata"]["uid"]
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")
    kubectl("wait", "--for=delete", f"{ADDONS}/web", "--timeout=20s")
    kubectl.server.wait_until(lambda: _uid(kubectl) not in ("", before), within=20)  # type: ignore[attr-defined]
    kubectl("create", "-f", "-", stdin=written(addon()))


def _uid(kubectl: Kubectl) -> str:
    return kubectl.run("get", "namespace", kubectl.namespace, "-o", "jsonpath={.metadata.uid}").out


def test_what_was_acknowledged_is_there_after_a_power_cut(tmp_path: Path) -> None:
    server = TrimtabServer(tmp_path, flags=FLAGS)
    kubectl = Kubectl(newest(), server, "default", tmp_path)
    kubectl("create", "-f", "-", stdin=written(project("red"), blueprint("v1", "a")))
    before = kubectl.json("get", f"{PROJECTS},{BLUEPRINTS}")["items"]
    server.kill()
    with TrimtabServer(tmp_path, flags=FLAGS) as server:
        kubectl = Kubectl(newest(), server, "default", tmp_path)
        after = kubectl.json("get", f"{PROJECTS},{BLUEPRINTS}")["items"]
        assert [item["metadata"]["uid"] for item in after] == [item["metadata"]["uid"] for item in before]
        Kubectl(newest(), server, "red", tmp_path)("create", "-f", "-", stdin=written(addon()))


def test_kinds_that_cannot_be_served_are_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "desk.proto").write_text(DESK)
    (tmp_path / "none.proto").write_text('syntax = "proto3"; message Meta { string name = 1; }')
    (tmp_path / "ids.proto").write_text(DESK.replace("int32 days", "string cluster_id"))
    for flags, why in (
        (("--proto", "desk/v1=none.proto"), "none.proto has no kind"),
        (("--proto", "desk/v1=ids.proto"), "Ticket has spec.clusterId"),
        (("--proto", "desk/v1=desk.proto", "--proto", "desk/v1=desk.proto"), "is registered twice"),
        (("--group-suffix", "Not_A_Domain"), '"Not_A_Domain" cannot end the name of a group'),
        (("--hub-storage", "ftp://db"), "the hub's storage cannot be ftp://"),
        (("--hub-storage-token-file", "token"), "token is for a storage over https://"),
    ):
        command = [TRIMTAB, "up", "--port", "0", "--data-dir", "data", "--systems", "platform", *flags]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30)
        assert (done.returncode, why in done.stderr, "Traceback" in done.stderr) == (1, True, False), done.stderr


@pytest.mark.slow
def test_a_storage_that_does_not_answer_is_told_without_its_password(tmp_path: Path) -> None:
    command = [TRIMTAB, "up", "--port", "0", "--data-dir", "data", "--systems", "platform"]
    command += ["--hub-storage", "postgresql://u:secret@127.0.0.1:1/hub"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, "Connection refused" in done.stderr) == (1, True)
    assert not [word for word in ("Traceback", "secret") if word in done.stderr]

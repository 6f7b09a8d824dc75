"""Where manifests come from: repositories of Git, and charts by the helm program."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET, UnsetType

from tests.needs import needs
from tests.systems.platform.stage import Document, Stage, condition_of, config_map, part_of
from trimtab.lab.git_http import GitHttp
from trimtab.model.hub import HubResource, Sharing
from trimtab.model.redacted import Redacted
from trimtab.model.resource import Spec
from trimtab.runtime.prepare import prepare
from trimtab.runtime.system import System
from trimtab.systems.platform.faults import Fault
from trimtab.systems.platform.kinds import Workload
from trimtab.systems.platform.rendering.helm import ChartFolder, Helm, RemoteChart
from trimtab.testing.ports import free_ports


class RepositorySpec(Spec):
    """As far as the platform asks."""

    type: str = "git"
    endpoint: str
    secret_ref: dict[str, str] | UnsetType = UNSET
    insecure: bool = False
    sharing: Sharing = Sharing()


class Repository(HubResource, group="hub", version="v3", plural="repositories"):
    spec: RepositorySpec


@pytest.fixture(scope="module")
def git_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHttp]:
    needs("git")
    folder = tmp_path_factory.mktemp("git")
    with GitHttp(folder, free_ports(1)[0], username="ann", password="pass-of-ann") as server:
        yield server


@pytest.fixture
async def shop(stage: Stage, git_server: GitHttp, request: pytest.FixtureRequest) -> str:
    """The name of a repository of the test's own, known to the hub as `shop`."""
    name = f"r{abs(hash(request.node.name)) % 10**8}"
    git_server.repositories.create(name)
    await prepare(stage.hub, (System(name="gitops", kinds=(Repository,)),), rights=False)
    await stage.namespace("team")
    await stage.secret("team", "git", username="ann", password="pass-of-ann")
    spec = {"endpoint": git_server.url(name), "secretRef": {"name": "git"}}
    await stage.create(Repository, "team", "shop", spec)
    return name


async def test_manifests_of_a_repository_are_applied_and_followed(stage: Stage, git_server: GitHttp, shop: str) -> None:
    files = {"deploy/a.yaml": config_map("a", x="1"), "deploy/readme.md": "no", "elsewhere.yaml": config_map("z")}
    first = git_server.repositories.commit(shop, {name: text.encode() for name, text in files.items()})
    one = await stage.imported("team", "one")
    artifact = {"yamlInRepo": {"repository": "shop", "revision": "main", "paths": ["deploy"]}}
    async with stage.working():
        await stage.workload("team", "shop", "", ["one"], artifact=artifact)
        done = await stage.ready(Workload, "team", "shop")
        assert done["status"]["revision"] == first
        assert {"a"} <= set(await one.config_maps("web"))
        assert "z" not in await one.config_maps("web")
        second = git_server.repositories.commit(shop, {"deploy/a.yaml": config_map("a", x="2").encode()})
        await stage.nudge(Workload, "team", "shop")
        await stage.until(Workload, "team", "shop", lambda w: w["status"]["revision"] == second)
    assert (await one.config_maps("web"))["a"] == {"x": "2"}


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ({"repository": "nowhere", "paths": ["a"]}, "RepositoryMissing"),
        ({"repository": "shop", "paths": ["nothing"]}, "PathMissing"),
        ({"repository": "shop", "revision": "no-such", "paths": ["deploy"]}, "RepositoryUnreadable"),
        ({"repository": "shop", "revision": "--upload-pack=x", "paths": ["deploy"]}, "PathMissing"),
        ({"repository": "shop", "paths": ["deploy", ".git/config"]}, "PathMissing"),
        ({"repository": "shop", "paths": ["bad"]}, "ManifestsInvalid"),
    ],
)
async def test_what_a_repository_lacks_is_told_and_what_is_there_stays(
    stage: Stage, git_server: GitHttp, shop: str, source: Document, reason: str
) -> None:
    git_server.repositories.commit(shop, {"deploy/a.yaml": config_map("a").encode(), "bad/x.yaml": b"kind: Nothing"})
    one = await stage.imported("team", "one")
    async with stage.working():
        await stage.workload("team", "shop", config_map("kept"), ["one"])
        await stage.ready(Workload, "team", "shop")
        await stage.change(Workload, "team", "shop", lambda spec: spec.update(artifact={"yamlInRepo": source}))
        told = await stage.condition(Workload, "team", "shop", "Rendered", "False", reason)
        assert condition_of(told, "Ready")["reason"] == reason
        assert "pass-of-ann" not in str(told)
        assert "kept" in await one.config_maps("web")


PROGRAM = """#!/usr/bin/env python3
import json, os, sys
if sys.argv[1] == "repo":
    sys.exit(0)
assert "template" == sys.argv[1], sys.argv
if os.path.exists("values-0.yaml") and "fail" in open("values-0.yaml").read():
    print("Error: execution error: secret is hush", file=sys.stderr)
    sys.exit(1)
if os.path.exists("values-0.yaml") and "forever" in open("values-0.yaml").read():
    import time
    time.sleep(600)
if os.path.exists("values-0.yaml") and "flood" in open("values-0.yaml").read():
    while True:
        sys.stdout.write("x" * 65536)
config = {}
if os.path.exists("config/repositories.yaml"):
    config = json.load(open("config/repositories.yaml"))
    assert os.stat("config/repositories.yaml").st_mode & 0o077 == 0
data = {"release": sys.argv[2], "arguments": " ".join(sys.argv[3:]), "home": os.environ["HOME"],
        "proxy": os.environ.get("HTTPS_PROXY", ""), "chart": str(os.path.isdir("chart")),
        "known": json.dumps(config), "here": str("HELM_TEST_SECRET" in os.environ)}
print(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "chart"}, "data": data}))
"""


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    """A program that tells how it was called: what we do around helm is ours, what helm does is helm's."""
    program = tmp_path / "helm"
    program.write_text(PROGRAM)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return Helm(str(program), time=5.0)


async def test_without_helm_a_chart_says_what_to_install(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    await stage.namespace("team")
    await stage.imported("team", "one")
    stage.files["shop", "c.tgz"] = b"chart"
    async with stage.working():
        await stage.workload("team", "shop", "", ["one"], artifact={"uploadedHelm": {"chartPath": {"name": "c.tgz"}}})
        told = await stage.condition(Workload, "team", "shop", "Rendered", "False", "HelmMissing")
    assert "install helm" in condition_of(told, "Rendered")["message"]


async def test_an_uploaded_chart_is_rendered_without_network_and_applied(stage: Stage, helm: Helm) -> None:
    stage.helm = helm
    await stage.namespace("team")
    one = await stage.imported("team", "one")
    stage.files["shop", "c.tgz"] = b"chart"
    stage.files["shop", "v.yaml"] = b"replicas: 1"
    artifact = {"uploadedHelm": {"chartPath": {"name": "c.tgz"}, "valuesPaths": [{"name": "v.yaml"}]}}
    async with stage.working():
        await stage.workload("team", "shop", "", ["one"], artifact=artifact)
        done = await stage.ready(Workload, "team", "shop")
    assert part_of(done, "one")["objects"] == 1
    data = (await one.config_maps("web"))["chart"]
    assert data["release"] == "shop"
    assert "--namespace web --include-crds --no-hooks" in data["arguments"]
    assert "values-0.yaml" in data["arguments"]
    assert data["proxy"].startswith("http://127.0.0.1:")
    assert not Path(data["home"]).exists()  # noqa: ASYNC240 - a test


async def test_charts_of_repositories_get_credentials_by_a_private_file(helm: Helm, monkeypatch: Any) -> None:
    monkeypatch.setenv("HELM_TEST_SECRET", "x")
    chart = RemoteChart(
        endpoint="https://charts.example.com", chart="web", version="1.2.3", username="ann", password=Redacted("pw-ann")
    )
    text = (await helm.template("r", chart, [], "web")).decode()
    assert "source/web --version 1.2.3" in text
    assert "pw-ann" not in text.split('"known"')[0], "not among the arguments"
    assert "pw-ann" in text
    assert '"here": "False"' in text, "what we have in our environment is ours"


@pytest.mark.parametrize("endpoint", ["http://charts.example.com", "ftp://x", "file:///etc"])
async def test_a_repository_of_charts_must_be_one_that_can_be_trusted(helm: Helm, endpoint: str) -> None:
    with pytest.raises(Fault) as refused:
        await helm.template("r", RemoteChart(endpoint=endpoint, chart="web"), [], "web")
    assert refused.value.reason == "RepositoryUnfit"


async def test_a_chart_in_a_folder_cannot_write_outside_of_it(helm: Helm) -> None:
    text = await helm.template("r", ChartFolder(files={"Chart.yaml": b"name: x", "templates/a.yaml": b""}), [], "web")
    assert b'"chart": "True"' in text
    with pytest.raises(Fault, match="leads out of the chart"):
        await helm.template("r", ChartFolder(files={"../evil": b""}), [], "web")


@pytest.mark.parametrize(
    ("values", "secret", "says", "hides"),
    [
        (b"fail", False, "helm ended with 1: Error: execution error", ""),
        (b"fail", True, "not shown", "hush"),
        (b"forever", False, "did not finish", ""),
        (b"flood", False, "more than 16 MiB", ""),
    ],
)
async def test_helm_is_bounded_and_what_it_says_is_hidden_where_values_are(
    helm: Helm, values: bytes, secret: bool, says: str, hides: str
) -> None:
    helm._time = 1.0
    with pytest.raises(Fault) as failed:
        await helm.template("r", b"chart", [values], "web", secret=secret)
    assert failed.value.reason == "HelmFailed"
    assert says in failed.value.message
    assert not hides or hides not in failed.value.message

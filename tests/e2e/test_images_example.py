"""The example of image discovery works as it is: a registry, the commands of its page, and reports of its images."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.kubectl import newest, programs
from trimtab.lab.registry_demo import PORT
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.peer import ApiServer
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import Process

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "images"
PROGRAM = str(Path(sys.executable).with_name("trimtab"))
GOOD = {
    ("team/web", "1.0", "linux/amd64"),
    ("team/web", "stable", "linux/amd64"),
    ("team/web", "stable", "linux/arm64"),
    ("team/api", "2.0", "linux/amd64"),
}
BROKEN = ("team/broken", "1.0", "linux/amd64")

Shell = Callable[..., subprocess.CompletedProcess[str]]


class Stand:
    """The registry of the example, which can be started again with another release. It has a port of its own, and a copy of
    the example names that: who runs the tests may be trying the example too."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (self._port,) = free_ports(1)
        copied = Path(shutil.copytree(EXAMPLE, folder / "examples" / "images"))
        manifest = (copied / "registry.yaml").read_text()
        (copied / "registry.yaml").write_text(manifest.replace(f"127.0.0.1:{PORT}", f"127.0.0.1:{self._port}"))
        self._process = self._started("--release", "1")

    def again(self, *words: str) -> None:
        self.stop()
        self._process = self._started(*words)

    def stop(self) -> None:
        self._process.stop()

    def _started(self, *words: str) -> Process:
        log = self._folder / "registry.log"
        log.unlink(missing_ok=True)
        command = [sys.executable, "-m", "trimtab.lab.registry_demo", "--port", str(self._port), *words]
        process = Process(command, log=log)
        try:
            process.wait_until(lambda: "Ctrl-C ends it" in log.read_text(), within=30)
        except BaseException:
            process.stop()
            raise
        return process


class Home(NamedTuple):
    """Where the controllers run. Blobs are beside the kubeconfig; the example is in the folder."""

    folder: Path
    kubeconfig: Path
    log: Callable[[], str]
    stand: Stand
    collects: bool = True
    """Whether something removes what a deleted owner had: a cluster's controller manager, which the test's has not."""


@pytest.fixture(scope="module", params=["embedded", pytest.param("kubernetes", marks=pytest.mark.cluster)])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """The two homes of image discovery, in turn, each with the registry beside it."""
    folder = tmp_path_factory.mktemp("images")
    stand = Stand(folder)
    try:
        if request.param == "embedded":
            yield from embedded(folder, stand)
        else:
            yield from on_cluster(folder, stand, request.getfixturevalue("real_cluster"))
    finally:
        stand.stop()


def embedded(folder: Path, stand: Stand) -> Iterator[Home]:
    with TrimtabServer(folder, flags=("--systems", "images")) as server:
        server.wait_until(lambda: "controller works" in server.log(), within=30)
        yield Home(folder, server.kubeconfig, server.log, stand)


def on_cluster(folder: Path, stand: Stand, cluster: ApiServer) -> Iterator[Home]:
    """With the rights that `install` prints, and no more. Nobody runs its Deployment here, so nobody serves its webhook."""
    kubeconfig, log = folder / "kubeconfig", folder / "log"
    kubeconfig.write_bytes(cluster.kubeconfig.read_bytes())
    prepare = (
        "trimtab install --systems images --blobs postgresql://db.example.com/trimtab"
        " | kubectl apply --server-side -f -; kubectl delete validatingwebhookconfiguration trimtab-images"
        "; kubectl wait --for=condition=Established crd/registries.images.trimtab.dev --timeout=30s"
    )
    ran(folder, kubeconfig, prepare)
    command = [PROGRAM, "controllers", "--systems", "images", "--kubeconfig", str(kubeconfig)]
    command += ["--data-dir", str(folder / "data"), "--blobs", str(folder / "blobs"), "--no-leader-election"]
    with Process(command, log=log) as process:
        process.wait_until(lambda: "controller works" in process.tail(), within=30)
        yield Home(folder, kubeconfig, lambda: log.read_text(errors="replace"), stand, collects=False)
        end = "kubectl delete registry,vexsource --all --timeout=30s; kubectl delete image,sbom --all; kubectl delete secret"
        ran(folder, kubeconfig, f"{end} pushes")


def ran(folder: Path, kubeconfig: Path, script: str) -> subprocess.CompletedProcess[str]:
    """A script, as the page's reader runs it, where the example is."""
    path = f"{programs()[newest()].parent}:{Path(sys.executable).parent}:/usr/bin:/bin"
    env = {"PATH": path, "HOME": str(kubeconfig.parent), "KUBECONFIG": str(kubeconfig)}
    command = ["bash", "-euo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=110)


@pytest.fixture(scope="module")
def shell(home: Home) -> Shell:
    def run(script: str, *, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = ran(home.folder, home.kubeconfig, script)
        assert done.returncode == code, f"{script}\n{done.stdout}{done.stderr}\n{home.log()[-4000:]}"
        return done

    return run


@pytest.fixture(scope="module")
def discovered(shell: Shell) -> str:
    """What the commands of the page print, up to the SBOM."""
    page = (EXAMPLE / "README.md").read_text()
    (commands,) = re.findall(r"^```console\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    return shell(commands.replace("export KUBECONFIG=.trimtab/kubeconfig\n", "")).stdout


def found(shell: Shell, kind: str) -> dict[tuple[str, str, str], dict[str, Any]]:
    """All of a kind, by repository, tag and platform."""
    items: list[dict[str, Any]] = json.loads(shell(f"kubectl get {kind} -o json").stdout)["items"]
    return {(each["spec"]["repository"], each["spec"]["tag"], each["spec"]["platform"]): each for each in items}


def test_every_image_that_the_filters_select_is_there_with_its_report(discovered: str, shell: Shell) -> None:
    assert found(shell, "image").keys() == GOOD | {BROKEN}
    assert found(shell, "sbom").keys() == found(shell, "vuln").keys() == GOOD


def test_one_damaged_image_fails_alone_and_is_named(discovered: str, shell: Shell) -> None:
    (ready,) = found(shell, "image")[BROKEN]["status"]["conditions"]
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "False", "LayerDamaged")
    assert re.search(r"^team/broken:1\.0 +LayerDamaged ", discovered, re.MULTILINE)
    assert ": PartiallySucceeded in " in discovered


def test_the_report_shows_what_is_wrong_with_packages_of_every_kind(discovered: str, shell: Shell) -> None:
    web, api = (shell(f"trimtab images report {name}").stdout for name in ("team/web:1.0", "team/api:2.0"))
    assert set(re.findall(r"CVE-\d+-\d+", web)) == {
        "CVE-2020-14343",
        "CVE-2023-32681",
        "CVE-2023-38545",
        "CVE-2023-4911",
        "CVE-2024-22195",
    }
    assert set(re.findall(r"CVE-\d+-\d+", api)) == {"CVE-2021-23337", "CVE-2021-44906", "CVE-2022-37434"}


def test_what_vex_suppressed_is_shown_with_who_said_so(discovered: str, shell: Shell) -> None:
    said = shell("trimtab images report team/web:1.0 --all").stdout
    (line,) = (line for line in said.splitlines() if "CVE-2023-44487" in line)
    assert "not_affected (vulnerable_code_not_in_execute_path) by platform team" in line


def test_the_sbom_is_printed_as_cyclonedx(discovered: str) -> None:
    document = json.loads(discovered[discovered.index('{"$schema"') :])
    names = {component["name"] for component in document["components"]}
    assert {"musl", "busybox", "zlib", "lodash", "minimist"} <= names


def test_a_preview_says_what_the_filters_leave_out(discovered: str, shell: Shell) -> None:
    said = shell("trimtab images preview lab").stdout
    assert re.search(r"^team/api +2 +1 +0 +1 released +2\.0$", said, re.MULTILINE)


def test_a_job_of_what_is_unchanged_makes_nothing_anew(discovered: str, shell: Shell) -> None:
    before = {name: image["metadata"]["uid"] for name, image in found(shell, "image").items()}
    shell("kubectl apply -f examples/images/job.yaml")
    shell("kubectl wait discoveryjob/now --for=condition=Completed --timeout=60s")
    counts = json.loads(shell("kubectl get discoveryjob now -o jsonpath='{.status.images}'").stdout)
    assert (counts["created"], counts["unchanged"], counts["reports"]) == (0, 5, 4)
    assert {name: image["metadata"]["uid"] for name, image in found(shell, "image").items()} == before


def test_the_next_release_is_told_as_a_difference(discovered: str, shell: Shell, home: Home) -> None:
    home.stand.again("--release", "2")
    said = shell("trimtab images discover lab").stdout
    assert "tags: 1 added, 1 moved, 1 removed" in said
    images = json.loads(shell("kubectl get image -o json").stdout)["items"]
    missing = {(each["spec"]["repository"], each["spec"]["tag"]) for each in images if "missingSince" in each["status"]}
    assert missing == {("team/api", "2.0"), ("team/web", "stable")}


def test_what_the_registry_tells_of_is_discovered_without_asking(discovered: str, shell: Shell, home: Home) -> None:
    """What was there before is pushed again, so nothing is missing any more."""
    (port,) = free_ports(1)
    command = [PROGRAM, "images", "listen", "--listen", f"127.0.0.1:{port}", "--kubeconfig", str(home.kubeconfig)]
    with Process(command, log=home.kubeconfig.with_name("listen.log")) as listening:
        listening.wait_until(lambda: "listening at" in listening.tail(), within=30)
        home.stand.again("--notify", f"http://127.0.0.1:{port}/default/lab", "--notify-token", "lab-only")
        shell("kubectl wait registry/lab --for=jsonpath='{.status.missing}'=0 --timeout=60s")
        assert "lab-only" not in listening.tail() + home.log()
    images = json.loads(shell("kubectl get image -o json").stdout)["items"]
    assert [each["spec"]["repository"] for each in images if "missingSince" in each["status"]] == []


def test_deleting_the_registry_removes_its_images(discovered: str, shell: Shell, home: Home) -> None:
    images = json.loads(shell("kubectl get image -o json").stdout)["items"]
    owners = [owner for each in images for owner in each["metadata"]["ownerReferences"]]
    assert {(owner["kind"], owner["name"], owner["controller"]) for owner in owners} == {("Registry", "lab", True)}
    shell("kubectl delete registry lab --timeout=30s")
    if home.collects:
        shell("kubectl wait --for=delete image --all --timeout=30s")
        assert json.loads(shell("kubectl get image,sbom,vuln,discoveryjob -o json").stdout)["items"] == []

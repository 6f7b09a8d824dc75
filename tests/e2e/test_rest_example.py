"""The example of the generic reconciler works as it is: the emulator, the commands of its page, and what they promise."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from tests.e2e.kubectl import newest, programs
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.peer import ApiServer
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import Process

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "rest"
PAGE = (EXAMPLE / "README.md").read_text()
GUIDE = (ROOT / "docs" / "rest.md").read_text()
PROGRAM = str(Path(sys.executable).with_name("trimtab"))
PORT = "7490"
GROUP = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/shop"
SETS = f"{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets"

Shell = Callable[..., subprocess.CompletedProcess[str]]


class Home(NamedTuple):
    """Where the controllers run. The example is in the folder, with the emulator's own port in it."""

    folder: Path
    port: str
    kubeconfig: Path
    log: Callable[[], str]
    judges: bool = True
    """Whether admission is asked."""


@pytest.fixture(scope="module", params=["embedded", pytest.param("kubernetes", marks=pytest.mark.cluster)])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """The two homes of the generic reconciler, in turn, each with the emulator beside it."""
    folder = tmp_path_factory.mktemp("rest")
    port = str(free_ports(1)[0])
    copied = Path(shutil.copytree(EXAMPLE, folder / "examples" / "rest"))
    for file, theirs, ours in (
        ("service.yaml", PORT, port),
        ("requests.py", PORT, port),
        ("definitions.yaml", "refresh: { interval: 10s }", "refresh: { interval: 1s }"),  # who has no time to wait
    ):
        text = (copied / file).read_text()
        assert theirs in text
        (copied / file).write_text(text.replace(theirs, ours))
    (started,) = (line for line in PAGE.splitlines() if line.startswith("python -m trimtab.lab.arm "))
    command = [sys.executable, *started.replace(PORT, port).replace("examples", str(ROOT / "examples")).split()[1:]]
    log = folder / "arm.log"
    with Process(command, log=log) as emulator:
        emulator.wait_until(lambda: port in log.read_text(), within=30)
        if request.param == "embedded":
            yield from embedded(folder, port)
        else:
            yield from on_cluster(folder, port, request.getfixturevalue("real_cluster"))


def embedded(folder: Path, port: str) -> Iterator[Home]:
    with TrimtabServer(folder, flags=("--systems", "rest")) as server:
        server.wait_until(lambda: "controller works" in server.log(), within=30)
        yield Home(folder, port, server.kubeconfig, server.log)


def on_cluster(folder: Path, port: str, cluster: ApiServer) -> Iterator[Home]:
    """With the rights that `install --manage-crds` prints, and no more. Nobody runs its Deployment here, so nobody serves
    its webhooks."""
    kubeconfig, log = folder / "kubeconfig", folder / "log"
    kubeconfig.write_bytes(cluster.kubeconfig.read_bytes())
    prepare = (
        "trimtab install --systems rest --manage-crds | kubectl apply --server-side -f -"
        "; kubectl delete validatingwebhookconfiguration trimtab-rest"
        "; kubectl wait --for=condition=Established crd/restdefinitions.rest.trimtab.dev --timeout=30s"
    )
    ran(folder, kubeconfig, prepare)
    command = [PROGRAM, "controllers", "--systems", "rest", "--manage-crds", "--kubeconfig", str(kubeconfig)]
    command += ["--data-dir", str(folder / "data"), "--no-leader-election"]
    with Process(command, log=log) as process:
        process.wait_until(lambda: "controller works" in process.tail(), within=30)
        yield Home(folder, port, kubeconfig, lambda: log.read_text(errors="replace"), judges=False)
        end = "kubectl delete vmss,storageaccounts,rg --all --timeout=60s; kubectl delete restdefinitions --all --timeout=30s"
        ran(folder, kubeconfig, f"{end}; kubectl delete restservice azure --timeout=30s; kubectl delete cm compute")


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
def managed(shell: Shell) -> list[str]:
    """The requests that the commands of the page show, those of the creation and those of the change of the capacity."""
    (commands,) = re.findall(r"^```console\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    where, _, rest = commands.partition("\n")
    assert where.startswith("export KUBECONFIG=.trimtab/kubeconfig ")  # here they are elsewhere
    said = shell(rest).stdout
    return [line for line in said.splitlines() if re.match(r"(GET|PUT|PATCH) +\d{3} ", line)]


@pytest.fixture
def portal(managed: list[str], shell: Shell, home: Home) -> Callable[[str], None]:
    """The functions of the page that change things behind our back, then some words with them."""
    blocks = re.findall(r"^```\w*\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (functions,) = (block for block in blocks if "change()" in block)

    def run(words: str) -> None:
        shell(f"{functions.replace(PORT, home.port)}\n{words}")

    return run


def vmss(shell: Shell, name: str = "web") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shell(f"kubectl get vmss {name} -o json").stdout)
    return found


def change(shell: Shell, patch: dict[str, Any], *, code: int = 0) -> subprocess.CompletedProcess[str]:
    return shell(f"kubectl patch vmss web --type=merge -p '{json.dumps(patch)}'", code=code)


def settled(shell: Shell, path: str, value: str) -> list[str]:
    """Wait until what is observed is so, and all is well; then what was asked for it."""
    shell(f"kubectl wait vmss/web --for=jsonpath='{{.status.observed.{path}}}'={value} --timeout=60s")
    shell("kubectl wait vmss/web --for=condition=Ready --timeout=60s")
    return shell("python examples/rest/requests.py").stdout.splitlines()


def writes(asked: list[str]) -> list[str]:
    return [line for line in asked if not line.startswith("GET ")]


def test_it_is_looked_for_created_and_joined_with_its_instance_view(managed: list[str], shell: Shell) -> None:
    created = [line for line in managed if "virtualMachineScaleSets/web" in line]
    assert created[0].startswith("GET   404 ")
    assert re.match(r"PUT   201 virtualMachineScaleSets/web  if-none-match: \*", created[1])
    joined = vmss(shell)["status"]["joined"]["instanceView"]["value"]
    assert joined["statuses"][0]["code"] == "ProvisioningState/succeeded"


def test_kubectl_scale_is_one_patch_of_the_capacity(managed: list[str]) -> None:
    (patch,) = (line for line in managed if line.startswith("PATCH"))
    assert patch.endswith('{"sku": {"capacity": 5}}')
    assert "if-match: " in patch


def test_scale_reads_what_is_there_as_a_deployment_does(managed: list[str], shell: Shell) -> None:
    url = "/apis/azure.rest.trimtab.dev/v1/namespaces/default/virtualmachinescalesets/web/scale"
    scale = json.loads(shell(f"kubectl get --raw {quote(url)}").stdout)
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (5, 5)


def test_kubectl_get_shows_how_many_are_desired_and_how_many_there_are(managed: list[str], shell: Shell) -> None:
    shown = shell("kubectl get vmss web").stdout.splitlines()
    (heads, row) = (line.split() for line in shown)
    assert " ".join(heads) in " ".join(GUIDE.split())
    assert (row[heads.index("DESIRED")], row[heads.index("CURRENT")]) == ("5", "5")


def test_explain_says_what_decided_of_a_field(managed: list[str], shell: Shell) -> None:
    said = shell("trimtab rest explain vmss --class create-only").stdout
    assert re.search(r"^location +string +create-only +x-ms-mutability: create, read ", said, re.MULTILINE)


def test_a_tag_is_a_patch_of_all_tags(managed: list[str], shell: Shell) -> None:
    change(shell, {"spec": {"tags": {"stage": "test"}}})
    (write,) = writes(settled(shell, "tags.stage", "test"))
    assert write.startswith("PATCH")
    assert json.loads(write[write.index('{"tags"') :]) == {"tags": {"team": "blue", "stage": "test"}}


def test_what_patch_does_not_take_is_a_put_of_all_that_was_read(managed: list[str], shell: Shell) -> None:
    image = {"virtualMachineProfile": {"imageReference": {"offer": "debian-13"}}}
    change(shell, {"spec": {"properties": image}})
    (write,) = writes(settled(shell, "properties.virtualMachineProfile.imageReference.offer", "debian-13"))
    assert write.startswith("PUT ")
    body = json.loads(write[write.index('{"') :])
    assert body["sku"] == {"name": "Standard_B2s", "capacity": 5, "tier": "Standard"}
    assert body["properties"]["virtualMachineProfile"]["osProfile"]["adminPassword"] == "Lab-only-1"


def test_what_can_only_be_given_at_creation_is_refused(managed: list[str], shell: Shell, home: Home) -> None:
    moved = {"spec": {"location": "eastus"}}
    if home.judges:
        assert "spec.location: Forbidden: is create-only" in change(shell, moved, code=1).stderr
        return
    change(shell, moved)
    shell("kubectl wait vmss/web --for=condition=Stalled --timeout=30s")
    stalled = [each for each in vmss(shell)["status"]["conditions"] if each["type"] == "Stalled"]
    assert [(each["reason"], "location" in each["message"]) for each in stalled] == [("ImmutableChanged", True)]
    change(shell, {"spec": {"location": "westus"}})
    assert writes(settled(shell, "location", "westus")) == []


def test_what_others_set_is_left_alone_and_drift_is_corrected(portal: Callable[[str], None], shell: Shell) -> None:
    portal("""change web '{"properties":{"singlePlacementGroup":true}}'""")
    assert writes(settled(shell, "properties.singlePlacementGroup", "true")) == []
    portal("""change web '{"sku":{"capacity":9}}'""")
    shell("kubectl wait vmss/web --for=condition=Progressing --timeout=60s")
    (write,) = writes(settled(shell, "sku.capacity", "5"))
    assert write.endswith('{"sku": {"capacity": 5}}')
    assert "sku.capacity (drifted)" in shell("kubectl events --for virtualmachinescaleset/web").stdout


def test_a_plan_writes_nothing(managed: list[str], shell: Shell) -> None:
    change(shell, {"spec": {"policy": {"mode": "plan"}, "sku": {"capacity": 7}}})
    shell("kubectl wait vmss/web --for=jsonpath='{.status.plan.action}'=patch --timeout=30s")
    (planned,) = vmss(shell)["status"]["plan"]["changes"]
    assert planned == {"path": "sku.capacity", "why": "changed", "old": 5, "new": 7}
    change(shell, {"spec": {"policy": None, "sku": {"capacity": 5}}})
    assert writes(settled(shell, "sku.capacity", "5")) == []


def test_a_capacity_that_is_initial_belongs_to_the_autoscaler(portal: Callable[[str], None], shell: Shell) -> None:
    definition = "restdefinition virtualmachinescalesets.azure"
    before = vmss(shell)["status"]["sync"]["model"]
    shell(f"kubectl patch {definition} --type=merge --patch-file examples/rest/autoscaled.yaml")
    shell(
        f"""until [ "$(kubectl get vmss web -o jsonpath='{{.status.sync.model}}')" != {before} ]; do sleep 0.1; done"""
    )
    portal("""change web '{"sku":{"capacity":11}}'""")
    assert writes(settled(shell, "sku.capacity", "11")) == []
    change(shell, {"spec": {"tags": {"stage": "prod"}}})
    (write,) = writes(settled(shell, "tags.stage", "prod"))
    assert "capacity" not in write


def test_what_exists_is_adopted_without_a_write(portal: Callable[[str], None], shell: Shell) -> None:
    portal("""place old '{"location":"westus","sku":{"name":"Standard_B2s","capacity":4}}'""")
    shell("kubectl apply -f examples/rest/adopted.yaml; kubectl wait vmss/old --for=condition=Ready --timeout=60s")
    assert writes(shell("python examples/rest/requests.py").stdout.splitlines()) == []
    assert vmss(shell, "old")["status"]["observed"]["sku"]["capacity"] == 4


def test_import_writes_what_exists_as_yaml(managed: list[str], shell: Shell) -> None:
    said = shell(f"trimtab rest import azure {GROUP}").stdout
    assert f"resourceID: {SETS}/web" in said
    assert "provisioningState" not in said
    assert "Lab-only-1" not in said


def test_keys_are_exported_to_a_secret(managed: list[str], shell: Shell) -> None:
    shell("kubectl apply -f examples/rest/storage.yaml")
    shell("kubectl wait storageaccount/shopfiles --for=condition=Ready --timeout=60s")
    assert shell("kubectl get secret shopfiles-keys -o jsonpath='{.data.key}'").stdout
    assert ".blob." in shell("kubectl get configmap shopfiles-endpoints -o jsonpath='{.data.blob}'").stdout


def test_the_password_is_in_no_status_no_event_and_no_log(managed: list[str], shell: Shell, home: Home) -> None:
    said = shell("kubectl get vmss,rg,restservices,restdefinitions,events -o yaml").stdout
    assert "Lab-only-1" not in said + home.log()


def test_with_the_objects_all_that_they_made_is_gone(managed: list[str], shell: Shell, home: Home) -> None:
    shell("kubectl delete -f examples/rest/storage.yaml -f examples/rest/adopted.yaml --timeout=60s")
    shell("kubectl delete -f examples/rest/scaleset.yaml --timeout=60s")
    assert json.loads(shell(f"curl -sf http://127.0.0.1:{home.port}/_lab/resources").stdout) == []

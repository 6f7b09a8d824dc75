"""The example of the hub works as it is: two servers, PowerDNS, the commands of its page, and what they promise."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.kubectl import newest, programs
from tests.needs import needs
from trimtab.lab.powerdns import PowerDns
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.ports import free_ports

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "hub"
PAGE = (EXAMPLE / "README.md").read_text()
PDNS = "8081"
OWN_KIND = "A kind of your own"
FLAGS = ("--operator", "examples/hub/zones.py", "--proto", "desk/v1=examples/hub/ticket.proto")

Shell = Callable[..., subprocess.CompletedProcess[str]]


def blocks(title: str) -> list[str]:
    """The commands of one part of the page."""
    section = next(each for each in re.split(r"^## ", PAGE, flags=re.MULTILINE) if each.startswith(f"{title}\n"))
    return re.findall(r"^```console\n(.*?)^```", section, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A terminal where the example is; the hub has the kinds of the page's last parts from the start."""
    needs("pdns_server")
    folder = tmp_path_factory.mktemp("hub")
    shutil.copytree(EXAMPLE, folder / "examples" / "hub")
    ports = free_ports(2)
    (folder / "edge").mkdir()
    flags = [word.replace("examples", str(folder / "examples")) for word in FLAGS]
    with (
        pytest.MonkeyPatch.context() as patch,
        PowerDns(folder / "pdns", *ports) as dns,
        TrimtabServer(folder / "edge", flags=("--systems", "none")) as edge,
    ):
        patch.setenv("PDNS_URL", dns.url)
        patch.setenv("PDNS_KEY", dns.api_key)
        with TrimtabServer(folder, flags=("--systems", "platform", *flags)) as server:
            server.wait_until(lambda: '"workload", "event": "controller works"' in server.log(), within=30)
            (folder / ".trimtab").mkdir()
            (folder / ".trimtab" / "edge").symlink_to(edge.kubeconfig.parent)
            path = f"{programs()[newest()].parent}:{Path(sys.executable).parent}:/usr/bin:/bin"
            env = {"PATH": path, "HOME": str(folder), "KUBECONFIG": str(server.kubeconfig)}

            def run(script: str, *, code: int = 0) -> subprocess.CompletedProcess[str]:
                words = ["bash", "-euo", "pipefail", "-c", script.replace(PDNS, str(ports[0]))]
                done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=110)
                assert done.returncode == code, f"{script}\n{done.stdout}{done.stderr}\n{server.log()[-4000:]}"
                return done

            yield run


@pytest.fixture(scope="module")
def said(shell: Shell) -> dict[str, str]:
    """What the commands of each part say, run in the order of the page, up to the kinds of one's own."""
    found: dict[str, str] = {}
    for title in ("A blueprint, published to a cluster", "Versions", "A workload"):
        script = "".join(blocks(title)).replace("export KUBECONFIG=.trimtab/kubeconfig ", "export ")
        done = shell(script)
        found[title] = done.stdout + done.stderr
    return found


def test_a_cluster_gets_what_its_blueprint_has(said: dict[str, str]) -> None:
    text = said["A blueprint, published to a cluster"]
    assert re.search(r"^edge-1 +True +Ready +v\S+ +edge ", text, re.MULTILINE)
    assert re.search(r"^limits +1 ", text, re.MULTILINE)
    assert re.search(r"^rules +1 ", text, re.MULTILINE)
    assert re.search(r'"path":"rules.yaml","sensitive":false,"digest":"sha256:[0-9a-f]{64}"', text)


def test_what_is_published_does_not_change(said: dict[str, str], shell: Shell) -> None:
    text = said["Versions"]
    assert 'version "v1" of edge is published and cannot change: give the change a new version' in text
    (listed,) = re.findall(r'^(\{"kind":"VersionList".*\})', text, re.MULTILINE)
    assert [each["version"] for each in json.loads(listed)["items"]] == ["v2", "v1"]
    shell("kubectl wait cluster/edge-1 --for=condition=Ready --timeout=60s")
    shell("kubectl --kubeconfig .trimtab/edge/kubeconfig get configmap rules -n shop-system")


def test_a_workload_is_on_every_cluster_that_its_label_chooses(said: dict[str, str], shell: Shell) -> None:
    text = said["A workload"]
    assert re.search(r"^web +True +Healthy +1 +1 ", text, re.MULTILINE)
    assert "service/web" in text
    (remove,) = re.findall(r"^\| `(kubectl --kubeconfig [^`]+ delete [^`]+)`", PAGE, re.MULTILINE)
    shell(remove)
    shell("kubectl --kubeconfig .trimtab/edge/kubeconfig wait --for=create configmap/web -n web --timeout=60s")
    assert "DriftCorrected" in shell("kubectl events --for workload/web").stdout


def test_a_kind_over_powerdns_is_one_file(said: dict[str, str], shell: Shell) -> None:
    assert "fewer than 150 lines" in PAGE
    assert len((EXAMPLE / "zones.py").read_text().splitlines()) < 150
    done = shell("".join(blocks(OWN_KIND)))
    assert "192.0.2.99" in done.stdout
    assert '"ttl":60' in done.stdout


def test_a_kind_of_a_proto_file_knows_what_a_project_is(said: dict[str, str], shell: Shell) -> None:
    assert "The project that pays." in shell("kubectl explain ticket.spec").stdout
    kind = {"apiVersion": "desk.trimtab.dev/v1", "kind": "Ticket", "metadata": {"name": "a"}}

    def apply(billed: str, code: int) -> str:
        document = json.dumps({**kind, "spec": {"title": "A", "billed": {"name": billed}}})
        return shell(f"echo '{document}' | kubectl apply -f -", code=code).stderr

    assert 'there is no project "nobody"' in apply("nobody", 1)
    apply("shop", 0)


def test_the_end_waits_for_what_is_in_use(said: dict[str, str], shell: Shell) -> None:
    shell("kubectl delete ticket --all --timeout=30s; kubectl delete cluster edge-1 --timeout=60s")
    reason = "jsonpath='{.status.conditions[?(@.type==\"Ready\")].reason}'"
    left = shell("kubectl --kubeconfig .trimtab/edge/kubeconfig get configmaps -A -o name").stdout
    assert set(left.split()) == {"configmap/extension-apiserver-authentication", "configmap/kube-root-ca.crt"}
    shell("kubectl delete workload web --timeout=60s; kubectl delete project shop --wait=false")
    shell(f"kubectl wait project/shop --for={reason}=NotEmpty --timeout=30s")
    shell('kubectl patch project shop --type=merge -p \'{"spec":{"deletion":"Cascade"}}\'')
    shell("kubectl wait project/shop --for=delete --timeout=60s")

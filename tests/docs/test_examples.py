"""The operators of the examples work as they are on a fresh `trimtab up`, by the commands that their page gives."""

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kubectl import newest, programs
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.peer import ApiServer
from trimtab.testing.processes import Process

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "operator"


def home(folder: Path, file: str) -> Iterator[TrimtabServer]:
    """A fresh server with the operator beside it."""
    with TrimtabServer(folder, flags=("--operator", str(EXAMPLES / file))) as server:
        server.wait_until(lambda: "controller works" in server.log(), within=30)
        yield server


@pytest.fixture
def lighthouses(tmp_path: Path) -> Iterator[TrimtabServer]:
    yield from home(tmp_path, "lighthouses.py")


@pytest.fixture
def soundings(tmp_path: Path) -> Iterator[TrimtabServer]:
    yield from home(tmp_path, "soundings.py")


@pytest.fixture
def hydrographer(tmp_path: Path) -> Iterator[int]:
    """A web server that has the soundings; its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    command = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(EXAMPLES)]
    with Process(command, log=tmp_path / "http.log") as process:
        process.wait_until(lambda: answers(port), within=20)
        yield port


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def shell(server: ApiServer, script: str, stdin: str = "") -> str:
    path = f"{programs()[newest()].parent}:{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=ROOT,
        env={"PATH": path, "HOME": str(server.kubeconfig.parent), "KUBECONFIG": str(server.kubeconfig)},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}\n{server.logs()}"
    return done.stdout


def test_the_commands_of_the_page_succeed_in_order(lighthouses: TrimtabServer) -> None:
    page = (EXAMPLES / "README.md").read_text()
    (commands,) = re.findall(r"^```console\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    said = shell(lighthouses, commands.replace("export KUBECONFIG=.trimtab/kubeconfig\n", ""))
    assert 'channel: "12"' in said


def test_the_page_is_right_about_what_one_sees(lighthouses: TrimtabServer) -> None:
    shell(lighthouses, "kubectl apply -f examples/operator/lighthouses.yaml")
    shell(lighthouses, "kubectl wait lighthouses --all --for=condition=Ready")
    page = (EXAMPLES / "README.md").read_text()
    turn, lose, dark = (command for command in re.findall(r"^\| `(kubectl [^`]+)`", page, re.MULTILINE)[1:4])
    shell(lighthouses, turn)
    shell(lighthouses, "kubectl wait configmap/roter-sand-logbook --for=jsonpath='{.data.channel}'=14 --timeout=20s")
    shell(lighthouses, lose)
    shell(lighthouses, "kubectl wait lighthouse/roter-sand --for=condition=Ready=false --timeout=20s")
    assert "NoHarbour" in shell(lighthouses, "kubectl get lighthouses")
    assert "a light that nobody sees" in shell(lighthouses, f"{dark} 2>&1 || true")


def test_a_survey_keeps_what_it_found(soundings: TrimtabServer, hydrographer: int) -> None:
    manifest = (EXAMPLES / "soundings.yaml").read_text().replace(":8000/", f":{hydrographer}/")
    shell(soundings, "kubectl apply -f -", stdin=manifest)
    shell(soundings, "kubectl wait survey/weser --for=condition=Ready --timeout=30s")
    counts = shell(soundings, "kubectl get survey weser -o jsonpath='{.status.history[0].counts}'")
    assert counts == '{"deepest":31,"soundings":5}'
    digest = shell(soundings, "kubectl get survey weser -o jsonpath='{.status.history[0].details}'").partition(":")[2]
    (blob,) = (path for path in (soundings.kubeconfig.parent / "blobs").rglob(digest) if path.parent.name == digest[:2])
    assert blob.read_bytes() == (EXAMPLES / "soundings.json").read_bytes()
    shell(soundings, "kubectl delete survey weser --timeout=20s")
    assert "not-a-real-token" not in soundings.log()


@pytest.mark.cluster
def test_a_survey_runs_on_a_cluster_with_the_rights_that_install_prints(
    real_cluster: ApiServer, hydrographer: int, tmp_path: Path
) -> None:
    file = EXAMPLES / "soundings.py"
    shell(real_cluster, f"trimtab install --systems none --operator {file} | kubectl apply --server-side -f -")
    shell(real_cluster, "kubectl wait --for=condition=Established crd/surveys.coast.example.com --timeout=30s")
    command = [str(Path(sys.executable).with_name("trimtab")), "controllers", "--systems", "none"]
    command += ["--operator", str(file), "--kubeconfig", str(real_cluster.kubeconfig)]
    command += ["--data-dir", str(tmp_path / "data"), "--blobs", str(tmp_path / "blobs")]
    manifest = (EXAMPLES / "soundings.yaml").read_text().replace(":8000/", f":{hydrographer}/")
    with Process(command, log=tmp_path / "log") as process:
        process.wait_until(lambda: "controller works" in process.tail(), within=30)
        shell(real_cluster, "kubectl apply -f -", stdin=manifest)
        shell(real_cluster, "kubectl wait survey/weser --for=condition=Ready --timeout=30s")
        shell(real_cluster, "kubectl delete survey/weser secret/hydrographer --timeout=20s")

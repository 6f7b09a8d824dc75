"""The README and the pages beside it are true: its commands succeed as they stand, its links lead somewhere."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kubectl import newest, programs
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.processes import Process

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", *sorted((ROOT / "examples").rglob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
TOUR, TEN_LINES = "A quick tour", "Ten lines make an operator"
ENTER = "export KUBECONFIG=.trimtab/kubeconfig"


def blocks(language: str, heading: str) -> list[str]:
    """What stands in the README under a heading."""
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## )", README, re.DOTALL | re.MULTILINE)
    return re.findall(rf"^```{language}\n(.*?)^```", section, re.DOTALL | re.MULTILINE)


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Path]:
    """A folder that looks like a checkout in which `make up` runs."""
    (tmp_path / "run").mkdir()
    with TrimtabServer(tmp_path / "run") as server:
        place = tmp_path / "checkout"
        place.mkdir()
        (place / "examples").symlink_to(ROOT / "examples")
        (place / ".venv").symlink_to(Path(sys.executable).parents[1])
        (place / ".trimtab").symlink_to(server.kubeconfig.parent)
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "kubectl").symlink_to(programs()[newest()])
        listed = f"{ENTER}; kubectl get serviceaccounts -n kube-public -o name"
        server.wait_until(lambda: "default" in shell(place, listed), within=20)  # it has come to rest
        yield place


def shell(checkout: Path, script: str) -> str:
    env = {"PATH": f"{checkout.parent / 'bin'}{os.pathsep}{os.environ['PATH']}", "HOME": str(checkout)}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=checkout, env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_commands_of_the_tour_succeed_in_order(checkout: Path) -> None:
    said = shell(checkout, "\n".join(blocks("console", TOUR)))
    assert "north   cape   2" in said
    assert "deployment.apps/web created" in said


def test_ten_lines_make_an_operator(checkout: Path, tmp_path: Path) -> None:
    (program,) = blocks("python", TEN_LINES)
    (commands,) = blocks("console", TEN_LINES)
    assert len([line for line in program.splitlines() if line.strip()]) <= 10
    assert program in (ROOT / "examples" / "operator" / "greeter.py").read_text()
    file = tmp_path / "my_operator.py"
    file.write_text(program)
    with running("run", str(file), checkout=checkout, log=tmp_path / "log"):
        said = shell(checkout, f"{ENTER}\n{commands}")
        assert "condition met" in said
        shell(checkout, f"{ENTER}; kubectl patch configmap world --type=merge -p '{{\"data\": null}}'")
        shell(checkout, f"{ENTER}; {commands.splitlines()[-1]}")


def running(*words: str, checkout: Path, log: Path) -> Process:
    """A command of ours that runs controllers, when they work."""
    command = [str(Path(sys.executable).with_name("trimtab")), *words]
    kubeconfig = checkout / ".trimtab" / "kubeconfig"
    process = Process([*command, "--kubeconfig", str(kubeconfig), "--data-dir", str(log.parent / "data")], log=log)
    process.wait_until(lambda: "controller works" in process.tail(), within=30)
    return process


def test_the_example_puts_ships_to_sea(checkout: Path, tmp_path: Path) -> None:
    program = ROOT / "examples" / "client" / "ships.py"
    operator = Process([sys.executable, str(program), str(checkout / ".trimtab" / "kubeconfig")], log=tmp_path / "log")
    try:
        wait = "kubectl wait --for=condition=Established crd/ships.fleet.example.com --timeout=20s"
        operator.wait_until(lambda: "ships" in shell(checkout, f"{ENTER}; kubectl get crds -o name"), within=20)
        shell(checkout, f"{ENTER}; {wait} && kubectl apply -f examples/client/ships.yaml")
        shell(checkout, f"{ENTER}; kubectl wait --for=jsonpath='{{.status.place}}'='at sea' ships --all --timeout=20s")
    finally:
        operator.stop()


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_lead_to_files_and_headings(page: Path) -> None:
    broken = []
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        if "://" in link:
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}

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
PAGES = [ROOT / "README.md", ROOT / "examples" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


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
        yield place


def shell(checkout: Path, script: str) -> str:
    env = {"PATH": f"{checkout.parent / 'bin'}{os.pathsep}{os.environ['PATH']}", "HOME": str(checkout)}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=checkout, env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_commands_of_the_tour_succeed_in_order(checkout: Path) -> None:
    said = shell(checkout, "\n".join(blocks("console")))
    assert "north   cape   2" in said
    assert "deployment.apps/web created" in said


def test_the_python_of_the_tour_is_that_of_the_example() -> None:
    example = (ROOT / "examples" / "client" / "ships.py").read_text()
    assert blocks("python")
    assert all(block in example for block in blocks("python"))


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


ENTER = "export KUBECONFIG=.trimtab/kubeconfig"


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_lead_to_files_and_headings(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
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

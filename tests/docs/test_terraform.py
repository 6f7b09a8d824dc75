"""The example of Terraform works as its page says, command by command; the guide is true."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.terraform.binary import as_terraform, binary
from trimtab.terraform.docs.kinds import types_page
from trimtab.terraform.kinds.access import Settings, access
from trimtab.terraform.kinds.api import Api
from trimtab.terraform.kinds.catalog import definitions
from trimtab.terraform.kinds.definition import head
from trimtab.testing.embedded import TrimtabServer

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "terraform"
GUIDE = ROOT / "docs" / "terraform.md"
TYPES = ROOT / "docs" / "terraform-types.md"
SYSTEMS = {"hub", "infra", "discovery", "images", "rest", "delivery"}


class Desk:
    """A checkout with the example, and a home with nothing in it."""

    def __init__(self, folder: Path, server: TrimtabServer | None) -> None:
        self.work, home = folder / "checkout", folder / "home"
        home.mkdir()
        shutil.copytree(
            EXAMPLE, self.work / "examples" / "terraform", ignore=shutil.ignore_patterns(".terraform*", "*.tfstate*")
        )
        if server is not None:
            (self.work / ".trimtab").mkdir()
            shutil.copy(server.kubeconfig, self.work / ".trimtab" / "kubeconfig")
        path = f"{as_terraform(folder / 'bin')}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.env = {
            "PATH": path,
            "HOME": str(home),
            "CHECKPOINT_DISABLE": "1",
            "TF_IN_AUTOMATION": "1",
            "NO_COLOR": "1",
        }

    def shell(self, script: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.work,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=110,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout


def consoles(page: Path) -> list[str]:
    return re.findall(r"^```console\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def test_the_example_manages_a_kind_of_each_system() -> None:
    text = (EXAMPLE / "main.tf").read_text()
    groups = {name.split("_")[0] for name in re.findall(r'^resource "trimtab_(\w+)"', text, re.MULTILINE)}
    assert groups >= SYSTEMS
    assert {"trimtab_hub_git_sync", "trimtab_hub_project"} <= set(re.findall(r'^resource "(\w+)"', text, re.MULTILINE))


@pytest.mark.slow
def test_the_commands_of_the_example_succeed_in_order(tmp_path: Path, trimtab_server: TrimtabServer) -> None:
    first, _ = consoles(EXAMPLE / "README.md")
    said = Desk(tmp_path, trimtab_server).shell(first)
    assert "Apply complete! Resources: 11 added" in said
    assert "No changes." in said
    assert "Destroy complete! Resources: 11 destroyed" in said


@pytest.mark.row(66)
def test_a_resource_is_added_from_a_specification_as_the_page_says(tmp_path: Path) -> None:
    _, second = consoles(EXAMPLE / "README.md")
    desk = Desk(tmp_path, None)
    said = desk.shell(second)
    assert "number = 1" in said
    assert "No changes." in said
    assert "class BerthResource(Resource):" in (desk.work / "berths" / "berth.py").read_text()


def test_the_example_is_formatted_as_terraform_has_it() -> None:
    done = subprocess.run([binary(), "fmt", "-check", "-recursive", str(EXAMPLE)], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_page_of_types_is_what_a_server_with_all_systems_has(tmp_path: Path) -> None:
    with TrimtabServer(tmp_path) as server:  # of its own: others define kinds on the shared one
        api = Api(access(Settings(kubeconfig=str(server.kubeconfig)), {}))
        try:
            heads = {one.name: head(one) for one in definitions(api.get)}
        finally:
            api.close()
    assert types_page(heads) == TYPES.read_text(), "python scripts/terraform_types.py writes it anew"


def test_links_of_the_guide_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", GUIDE.read_text())
    assert links
    assert [link for link in links if not link.startswith("http") and not (GUIDE.parent / link).exists()] == []


def test_hcl_of_the_guide_is_the_example_s() -> None:
    text = (EXAMPLE / "main.tf").read_text() + "".join(path.read_text() for path in (EXAMPLE / "own").iterdir())
    quoted = re.findall(r"^```(?:hcl|python)\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(quoted) >= 4
    assert [block for block in quoted if block not in text] == []

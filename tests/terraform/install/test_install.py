"""`trimtab terraform install`, then `terraform init`: with the real programs, from an empty home."""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path

import pytest

from tests.terraform.install.machine import Machine
from trimtab.terraform.install.hashing import h1_of
from trimtab.testing.embedded import TrimtabServer

pytestmark = pytest.mark.slow

CONFIG_MAP = """
resource "trimtab_core_config_map" "one" {
  metadata = { name = "NAME", namespace = "default" }
  data     = { a = "b" }
}
"""


@pytest.fixture
def machine(tmp_path: Path, trimtab_server: TrimtabServer) -> Machine:
    return Machine(tmp_path, trimtab_server.kubeconfig)


def locked(machine: Machine) -> list[str]:
    return re.findall(r'"(h1:[^"]+|zh:[^"]+)"', (machine.work / ".terraform.lock.hcl").read_text())


@pytest.mark.row(57)
def test_install_then_init_apply_plan_and_destroy_without_any_configuration_file(machine: Machine) -> None:
    said = machine.trimtab("install")
    assert said.endswith(
        'terraform {\n  required_providers { trimtab = { source = "trimtab.dev/trimtab/trimtab" } }\n}\n'
        'provider "trimtab" {}\n\n'
    )
    machine.main(CONFIG_MAP.replace("NAME", "installed"))
    machine.terraform("init")
    before = h1_of(machine.package())
    assert locked(machine) == [before]
    assert f"hash      {before}" in said

    assert "1 added" in machine.terraform("apply", "-auto-approve")
    assert "No changes" in machine.terraform("plan")
    assert "1 destroyed" in machine.terraform("destroy", "-auto-approve")

    assert h1_of(machine.package()) == before, "nothing is written into the package"
    assert not list(machine.package().rglob("*.pyc"))
    assert not (machine.data / "pycache").exists(), "what was compiled at install is used"


def test_a_second_install_leaves_package_and_lock_file_as_they_are(machine: Machine) -> None:
    machine.trimtab("install")
    machine.main("")
    machine.terraform("init")
    lock = (machine.work / ".terraform.lock.hcl").read_bytes()
    program = next(machine.package().glob("terraform-provider-trimtab_*"))
    made = program.stat().st_ino

    assert ", as it was" in machine.trimtab("install")
    assert program.stat().st_ino == made
    shutil.rmtree(machine.work / ".terraform")
    machine.terraform("init")
    assert (machine.work / ".terraform.lock.hcl").read_bytes() == lock


def test_a_package_that_was_changed_is_made_good(machine: Machine) -> None:
    machine.trimtab("install")
    good = h1_of(machine.package())
    (machine.package() / "lib" / "stray.py").write_text("")
    assert ", as it was" not in machine.trimtab("install")
    assert h1_of(machine.package()) == good


def test_new_kinds_of_the_server_are_told_and_taken(machine: Machine) -> None:
    machine.trimtab("install")
    assert "are known" in machine.trimtab("check")
    before = h1_of(machine.package())
    (machine.work / "novelty.yaml").write_text(DEFINITION)
    machine.kubectl("apply", "-f", "novelty.yaml")
    machine.kubectl("wait", "crd/novelties.example.com", "--for", "condition=Established")

    said = machine.trimtab("check", code=1)
    assert "new  Novelty of example.com/v1" in said
    assert re.search(r"1 kind of \S+ differs from what is known", said)
    assert "`trimtab terraform install --schema-only`" in said
    assert "new       trimtab_example_novelty" in machine.trimtab("install", "--schema-only")
    assert "are known" in machine.trimtab("check")
    assert h1_of(machine.package()) == before, "lock files stay as they are"

    machine.main(NOVELTY)
    machine.terraform("init")
    assert "1 added" in machine.terraform("apply", "-auto-approve")
    assert "No changes" in machine.terraform("plan")
    machine.terraform("destroy", "-auto-approve")
    (machine.work / "novelty.yaml").write_text(DEFINITION.replace("type: integer", "type: string"))
    machine.kubectl("apply", "-f", "novelty.yaml")
    assert "changed  Novelty of example.com/v1" in machine.trimtab("check", code=1)
    assert "changed   trimtab_example_novelty" in machine.trimtab("install", "--schema-only")
    machine.kubectl("delete", "-f", "novelty.yaml")
    assert "gone  Novelty of example.com/v1" in machine.trimtab("check", code=1)
    assert "gone      trimtab_example_novelty" in machine.trimtab("install", "--schema-only")


DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: novelties.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: novelties, kind: Novelty}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
"""
NOVELTY = """
resource "trimtab_example_novelty" "one" {
  metadata = { name = "one", namespace = "default" }
  spec     = { size = 3 }
}
"""


def test_a_kind_that_comes_later_takes_no_type_from_objects_that_are_there(machine: Machine) -> None:
    older, newer = (
        DEFINITION.replace("example.com", "odd.example.com"),
        DEFINITION.replace("example.com", "odd.aaa.com"),
    )
    for group, text in (("odd.example.com", older), ("odd.aaa.com", newer)):
        (machine.work / "novelty.yaml").write_text(text)
        machine.kubectl("apply", "-f", "novelty.yaml")
        machine.kubectl("wait", f"crd/novelties.{group}", "--for", "condition=Established")
        machine.trimtab("install")
        machine.main(NOVELTY.replace("trimtab_example", "trimtab_odd"))
        machine.terraform("init")
        said = machine.terraform("apply", "-auto-approve")
    assert "No changes" in said
    assert "are known" in machine.trimtab("check")
    machine.terraform("destroy", "-auto-approve")
    machine.kubectl("delete", "crd/novelties.odd.example.com", "crd/novelties.odd.aaa.com")


def test_kinds_that_cannot_be_read_are_taken_anew_and_it_is_said_that_names_may_change(machine: Machine) -> None:
    machine.trimtab("install")
    kinds = (machine.data / "kinds").read_bytes()
    for broken in (b"of another release", kinds[:-100] + b"\0" * 100):
        (machine.data / "kinds").write_bytes(broken)
        assert "names of earlier kinds are not known" in machine.trimtab("install", "--schema-only")
        assert (machine.data / "kinds").read_bytes() == kinds


def test_without_a_server_the_provider_is_installed_and_says_what_to_do(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    assert "run it again with --kubeconfig" in machine.trimtab("install")
    assert "there is no server to ask" in machine.trimtab("install", "--schema-only", code=1)
    machine.main(CONFIG_MAP)
    machine.terraform("init")
    said = " ".join(machine.terraform("plan", code=1).replace("│", " ").split())
    assert "Run `trimtab terraform install`, or set KUBECONFIG" in said


def test_without_a_server_the_kinds_that_are_there_stay_and_a_file_that_is_not_there_is_named(machine: Machine) -> None:
    machine.trimtab("install")
    before = (machine.data / "kinds").read_bytes()
    machine.env["KUBECONFIG"] = "/nope"
    assert "KUBECONFIG names /nope, which is not there" in machine.trimtab("install", code=1)
    del machine.env["KUBECONFIG"]
    assert f"kinds     as they were, in {machine.data / 'kinds'}" in machine.trimtab("install")
    assert (machine.data / "kinds").read_bytes() == before


def test_a_server_that_is_away_changes_nothing(tmp_path: Path, trimtab_server: TrimtabServer) -> None:
    machine = Machine(tmp_path)
    document = re.sub(r"(https://127\.0\.0\.1:)\d+", r"\g<1>1", trimtab_server.kubeconfig.read_text())
    (machine.work / "kubeconfig").write_text(document)
    said = machine.trimtab("install", "--kubeconfig", "kubeconfig", code=1)
    assert "`trimtab up` starts a server" in said
    assert not (machine.home / ".terraform.d").exists()


def test_a_mirror_of_one_s_own_comes_with_the_settings_for_it(machine: Machine) -> None:
    mirror = machine.work / "mirror"
    said = machine.trimtab("install", "--mirror", "mirror")
    assert f"export TF_CLI_CONFIG_FILE={mirror}/terraform.tfrc" in said
    assert not (machine.home / ".terraform.d" / "plugins").exists()
    machine.env["TF_CLI_CONFIG_FILE"] = str(mirror / "terraform.tfrc")
    machine.main("")
    machine.terraform("init")
    assert "The configuration is valid" in machine.terraform("validate").replace("Success! ", "")


def test_a_provider_without_kinds_takes_them_from_the_server_that_the_environment_names(machine: Machine) -> None:
    machine.trimtab("install")
    (machine.data / "kinds").unlink()
    machine.main(CONFIG_MAP.replace("NAME", "taken"))
    machine.terraform("init")
    assert "1 to add" in machine.terraform("plan")
    assert (machine.data / "kinds").is_file()


def test_the_key_is_its_owner_s_alone(machine: Machine) -> None:
    machine.trimtab("install")
    assert stat.S_IMODE((machine.data / "identity").stat().st_mode) == 0o700
    keys = list((machine.data / "identity").glob("*.pem"))
    assert [stat.S_IMODE(key.stat().st_mode) for key in keys] == [0o600]
    assert not [path for path in machine.package().rglob("*") if "PRIVATE KEY" in _text(path)]


def test_what_anyone_may_write_to_is_not_run(machine: Machine) -> None:
    machine.trimtab("install")
    machine.main(CONFIG_MAP)
    machine.terraform("init")
    (machine.data / "python").unlink()
    (machine.data / "python").write_text(f"#!/bin/sh\ntouch {machine.work}/ran\n")
    (machine.data / "python").chmod(0o755)
    machine.data.chmod(0o757)
    said = " ".join(machine.terraform("plan", "-no-color", code=1).replace("│", " ").split())
    assert f"it runs what is in {machine.data}, and anyone may write there" in said
    assert not (machine.work / "ran").exists()
    assert "anyone may write there: run chmod o-w" in machine.trimtab("install", code=1)


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.is_file() else ""


@pytest.mark.parametrize(
    ("python", "said"),
    [
        (None, "needs Python 3.11 or newer: put it on the PATH"),
        (
            '#!/bin/sh\nexec "$REAL" -c "import sys; sys.version_info = (3, 8); exec(open(\'$4\').read())"\n',
            "needs Python 3.11",
        ),
    ],
    ids=["none", "an old one"],
)
def test_a_machine_without_the_right_python_is_told_so(
    machine: Machine, tmp_path: Path, python: str | None, said: str
) -> None:
    machine.trimtab("install")
    program = next(machine.package().glob("terraform-provider-trimtab_*"))
    (machine.data / "python").unlink()
    path = tmp_path / "bin"
    path.mkdir()
    if python is not None:
        (path / "python3").write_text(python)
        (path / "python3").chmod(0o755)
    real, machine.env["PATH"] = os.path.realpath("/proc/self/exe"), str(path)
    machine.env["REAL"] = real
    assert said in machine._run([str(program)], 1)

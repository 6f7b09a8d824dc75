"""The real Terraform starts our provider as a process, with its own certificate and its own shutdown."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.terraform.binary import binary
from tests.terraform.plugin.running import sentence, surroundings, terraform
from tests.terraform.plugin.test_reattach import ADDRESS, MAIN

ROOT = Path(__file__).parents[3]
SERVE = """
from tests.terraform.plugin.program import make
from trimtab.terraform.plugin.boot import serve
serve(make)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration whose provider is the one that `install` has put beside it."""
    (tmp_path / "main.tf").write_text(MAIN)
    (tmp_path / "terraform.rc").write_text(
        f'provider_installation {{\n dev_overrides {{ "{ADDRESS}" = "{tmp_path / "bin"}" }}\n}}\n'
    )
    return tmp_path


def install(folder: Path, code: str) -> dict[str, str]:
    program = folder / "bin" / "terraform-provider-small"
    program.parent.mkdir()
    program.write_text(
        f"#!/bin/sh\n''':'\nexec {sys.executable} -B \"$0\"\n'''\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n{code}\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"TRIMTAB_TERRAFORM_HOME": str(folder / "home"), "TMPDIR": str(folder)}


def test_terraform_applies_plans_nothing_and_destroys_with_our_process(folder: Path) -> None:
    environment = install(
        folder,
        "from tests.terraform.plugin.program import make\nfrom trimtab.terraform.plugin.boot import serve\nserve(make)",
    )
    assert "20 added" in terraform(folder, "apply", "-auto-approve", environment=environment)
    assert "No changes" in terraform(folder, "plan", environment=environment)
    assert "20 destroyed" in terraform(folder, "destroy", "-auto-approve", environment=environment)
    assert not list(folder.glob("trimtab-*")), "a provider left its socket behind"
    assert len(list((folder / "home" / "identity").glob("*.pem"))) == 1


def test_a_provider_that_cannot_be_made_tells_its_user_why(folder: Path) -> None:
    code = (
        "from tests.terraform.plugin.small import Small\n"
        "from trimtab.terraform.plugin.boot import serve\n"
        "from trimtab.terraform.protocol.mux import Mux\n"
        "serve(lambda: Mux([Small('small'), Small('small')]))"
    )
    said = terraform(folder, "plan", environment=install(folder, code), fails=True)
    assert "The provider could not start" in sentence(said)
    assert "small_thing is in both Small (server 1) and Small (server 2)" in sentence(said)


def test_a_terraform_without_tls_is_refused_and_told_why(folder: Path) -> None:
    environment = install(
        folder,
        "from tests.terraform.plugin.program import make\nfrom trimtab.terraform.plugin.boot import serve\nserve(make)",
    )
    said = terraform(folder, "plan", environment=environment | {"TF_DISABLE_PLUGIN_TLS": "1"}, fails=True)
    assert "unset TF_DISABLE_PLUGIN_TLS" in sentence(said)


SLOW = """
import pathlib
from tests.terraform.plugin.small import Small, pack
from trimtab.terraform.plugin.boot import serve

class Slow(Small):
    def ApplyResourceChange(self, request):
        (here / "began").mkdir(exist_ok=True)
        assert self.stopped.wait(60)
        (here / "stopped").mkdir(exist_ok=True)
        return {"diagnostics": [{"severity": 1, "summary": "Stopped in time"}]}

here = pathlib.Path(__file__).parent
serve(Slow)
"""


def test_an_interrupt_in_the_middle_of_an_apply_reaches_the_provider_as_a_stop(folder: Path) -> None:
    environment = install(folder, SLOW)
    began, out = folder / "bin" / "began", folder / "out"
    with out.open("w") as file:
        process = subprocess.Popen(
            [binary(), "apply", "-auto-approve"],
            cwd=folder,
            env=surroundings(folder) | environment,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        appears(began, process)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: Terraform and its providers get it
        assert process.wait(60) == 1
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert (folder / "bin" / "stopped").exists()
    assert "Stopped in time" in out.read_text()
    assert not list(folder.glob("trimtab-*"))


def appears(path: Path, process: subprocess.Popen[bytes]) -> None:
    """Watches the folder of the path until it is there."""
    until = time.monotonic() + 60
    while not path.exists():
        assert process.poll() is None
        assert time.monotonic() < until
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.02)

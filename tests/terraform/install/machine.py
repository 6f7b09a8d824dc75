"""A machine of its own for a test: a home with nothing in it, the real Terraform or OpenTofu, and the program `trimtab`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.terraform.binary import binary

PROGRAM = str(Path(sys.executable).with_name("trimtab"))
BEGIN = """\
terraform {
  required_providers { trimtab = { source = "trimtab.dev/trimtab/trimtab" } }
}
provider "trimtab" {}
"""


class Machine:
    def __init__(self, folder: Path, kubeconfig: Path | None = None) -> None:
        self.home = folder / "home"
        self.work = folder / "work"
        for each in (self.home, self.work):
            each.mkdir(parents=True)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "CHECKPOINT_DISABLE": "1",
            "TF_IN_AUTOMATION": "1",
            "NO_COLOR": "1",
        }
        if kubeconfig is not None:
            self.env["KUBECONFIG"] = str(kubeconfig)

    @property
    def data(self) -> Path:
        return self.home / ".local" / "share" / "trimtab" / "terraform"

    def package(self) -> Path:
        (program,) = self.home.glob(".terraform.d/plugins/trimtab.dev/trimtab/trimtab/*/*/terraform-provider-trimtab_*")
        return program.parent

    def trimtab(self, *words: str, code: int = 0) -> str:
        return self._run([PROGRAM, "terraform", *words], code)

    def kubectl(self, *words: str) -> str:
        """As `trimtab` itself does it."""
        return self._run([PROGRAM, *words], 0)

    def terraform(self, *words: str, code: int = 0) -> str:
        return self._run([binary(), *words], code)

    def _run(self, command: list[str], code: int) -> str:
        done = subprocess.run(
            command,
            cwd=self.work,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=110,
            check=False,
        )
        assert done.returncode == code, done.stdout
        assert "Traceback" not in done.stdout, done.stdout
        return done.stdout

    def main(self, text: str) -> None:
        (self.work / "main.tf").write_text(BEGIN + text)

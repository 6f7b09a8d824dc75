"""Runs the real Terraform, or OpenTofu, on a folder of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.terraform.binary import binary


def terraform(folder: Path, *arguments: str, environment: dict[str, str] | None = None, fails: bool = False) -> str:
    """Everything that it said. `fails` when it must."""
    done = subprocess.run(
        [binary(), *arguments],
        cwd=folder,
        env=surroundings(folder) | (environment or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode != 0) == fails, done.stdout
    return done.stdout


def surroundings(folder: Path) -> dict[str, str]:
    """The environment of a Terraform that knows nothing but the folder."""
    settings = folder / "terraform.rc"
    if not settings.exists():
        settings.write_text("disable_checkpoint = true\n")
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "TF_CLI_CONFIG_FILE": str(settings),
        "CHECKPOINT_DISABLE": "1",
        "TF_IN_AUTOMATION": "1",
        "TF_CLI_ARGS": "-no-color",
    }


def sentence(said: str) -> str:
    """Without the frame and the line breaks that Terraform puts into it."""
    return " ".join(said.replace("│", " ").split())

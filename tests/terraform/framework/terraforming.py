"""The real Terraform on a folder of its own, with a provider of the test attached to it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.terraform.plugin.running import terraform
from trimtab.terraform.framework.provider import Provider
from trimtab.terraform.framework.serving import FrameworkServer
from trimtab.terraform.plugin.reattach import reattached

ADDRESS = "trimtab.dev/trimtab/toy"
"""With a host: without one Terraform and OpenTofu each think of a registry of their own."""
HEAD = f"""terraform {{
  required_providers {{ toy = {{ source = "{ADDRESS}" }} }}
}}
"""


class Terraform:
    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = {**environment, "TF_CLI_ARGS": "-no-color"}

    def write(self, text: str) -> None:
        (self.folder / "main.tf").write_text(HEAD + text)

    def run(self, *arguments: str, fails: bool = False) -> str:
        """What it said; of a failure in one line, however it was wrapped."""
        output = terraform(self.folder, *arguments, environment=self.environment, fails=fails)
        return " ".join(output.split()) if fails else output

    def apply(self, text: str | None = None, *, fails: bool = False) -> str:
        if text is not None:
            self.write(text)
        return self.run("apply", "-auto-approve", fails=fails)

    def plan(self, text: str | None = None, *, fails: bool = False) -> str:
        if text is not None:
            self.write(text)
        return self.run("plan", fails=fails)

    def validate(self, text: str, *, fails: bool = False) -> str:
        self.write(text)
        return self.run("validate", fails=fails)

    def unchanged(self, text: str | None = None) -> None:
        output = self.plan(text)
        assert "No changes" in output, output

    def state(self, address: str = "toy_thing.it") -> dict[str, Any]:
        shown = json.loads(self.run("show", "-json"))
        resources = shown.get("values", {}).get("root_module", {}).get("resources", [])
        values: dict[str, Any] = next(item["values"] for item in resources if item["address"] == address)
        return values

    def addresses(self) -> list[str]:
        return self.run("state", "list").split()


@contextlib.contextmanager
def attached(folder: Path, provider: Provider) -> Iterator[Terraform]:
    with reattached(FrameworkServer(provider), ADDRESS) as environment:
        yield Terraform(folder, environment)

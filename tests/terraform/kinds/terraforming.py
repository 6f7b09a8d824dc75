"""The real Terraform on a folder of its own, with the provider of all kinds attached. Configurations are JSON."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.terraform.plugin.running import terraform
from trimtab.terraform.framework.serving import FrameworkServer
from trimtab.terraform.install.places import ADDRESS
from trimtab.terraform.kinds.provider import Source, TrimtabProvider
from trimtab.terraform.plugin.reattach import reattached

Block = dict[str, Any]


class Terraform:
    def __init__(self, folder: Path, environment: dict[str, str], provider: Block, server: FrameworkServer) -> None:
        self.folder, self.environment, self.provider, self.server = folder, environment, provider, server

    def write(self, resources: Block, **more: Block) -> None:
        """`resources` by type and name, as Terraform's JSON has them."""
        body: Block = {
            "terraform": {"required_providers": {"trimtab": {"source": ADDRESS}}},
            "provider": {"trimtab": self.provider},
            **more,
        }
        if resources:
            body["resource"] = resources
        (self.folder / "main.tf.json").write_text(json.dumps(body, indent=2))

    def run(self, *arguments: str, fails: bool = False) -> str:
        output = terraform(self.folder, *arguments, environment=self.environment, fails=fails)
        if not fails:
            return output
        plain = "".join(character for character in output if character.isprintable() or character == "\n")
        return " ".join(line.strip(" │╷╵").strip() for line in plain.splitlines())

    def apply(self, resources: Block | None = None, *, fails: bool = False, **more: Block) -> str:
        if resources is not None:
            self.write(resources, **more)
        return self.run("apply", "-auto-approve", "-no-color", fails=fails)

    def plan(self, resources: Block | None = None, *, fails: bool = False) -> str:
        if resources is not None:
            self.write(resources)
        return self.run("plan", "-no-color", fails=fails)

    def unchanged(self, resources: Block | None = None) -> None:
        output = self.plan(resources)
        assert "No changes" in output, output

    def destroy(self) -> str:
        return self.run("destroy", "-auto-approve", "-no-color")

    def state(self, address: str) -> Block:
        shown = json.loads(self.run("show", "-json"))
        resources = shown.get("values", {}).get("root_module", {}).get("resources", [])
        values: Block = next(item["values"] for item in resources if item["address"] == address)
        return values

    def addresses(self) -> list[str]:
        return self.run("state", "list").split()


@contextlib.contextmanager
def attached(folder: Path, kinds: Source, kubeconfig: Path, project: str, **provider: Any) -> Iterator[Terraform]:
    server = FrameworkServer(TrimtabProvider(kinds), kinds.schema())
    with reattached(server, ADDRESS) as environment:
        settings = {"kubeconfig": str(kubeconfig), "project": project, **provider}
        yield Terraform(folder, environment, settings, server)

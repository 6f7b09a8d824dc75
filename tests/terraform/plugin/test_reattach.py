"""The real Terraform, told where our server is."""

from __future__ import annotations

from pathlib import Path

from tests.terraform.plugin.running import terraform
from tests.terraform.plugin.small import Small
from trimtab.terraform.plugin.reattach import reattached

ADDRESS = "trimtab.dev/trimtab/small"
MAIN = """
terraform {
  required_providers {
    small = { source = "trimtab.dev/trimtab/small" }
  }
}
resource "small_thing" "one" {
  count = 20
  name  = "thing ${count.index}"
}
data "small_echo" "it" {
  text = "abc"
}
output "back" { value = data.small_echo.it.back }
output "joined" { value = provider::small::small_join("a", "b") }
output "id" { value = small_thing.one[3].id }
"""


def test_terraform_applies_plans_nothing_and_destroys_over_our_server(tmp_path: Path) -> None:
    (tmp_path / "main.tf").write_text(MAIN)
    with reattached(Small(), ADDRESS) as environment:
        terraform(tmp_path, "init", environment=environment)
        applied = terraform(tmp_path, "apply", "-auto-approve", environment=environment)
        assert "20 added" in applied
        assert 'back = "cba"' in applied
        assert 'joined = "a-b"' in applied
        assert 'id = "small/thing 3"' in applied
        assert "No changes" in terraform(tmp_path, "plan", environment=environment)
        assert "20 destroyed" in terraform(tmp_path, "destroy", "-auto-approve", environment=environment)

"""The rest of a resource's life under the real Terraform: faults, import, upgrade, moves, secrets, functions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.terraform.binary import binary, can
from tests.terraform.framework.terraforming import Terraform, attached
from tests.terraform.framework.test_planning_real import FULL
from tests.terraform.framework.toy import Toy, World
from trimtab.terraform.framework.diagnostics import Failed
from trimtab.terraform.framework.resource import Create, Update
from trimtab.terraform.framework.trees import State

SMALL = 'resource "toy_thing" "it" {\n  name = "it"\n}\n'


@pytest.mark.row(60)
def test_a_create_that_fails_after_it_saved_leaves_a_known_tainted_resource(tf: Terraform, world: World) -> None:
    def fail(op: Create, value: dict[str, Any]) -> None:
        world.objects["it"] = value
        op.context.save(State({**op.plan.value, "id": value["id"]}))  # revision and the rest are not known yet
        raise Failed("Not ready in time", "waited 3 s", "name")

    world.on_create = fail
    said = tf.apply(SMALL, fails=True)
    assert "Not ready in time" in said
    assert 'name = "it"' in said
    assert tf.addresses() == ["toy_thing.it"]
    world.on_create = None
    said = tf.plan()
    assert "is tainted, so" in said
    assert "must be replaced" in said
    tf.apply()
    assert world.calls == ["create", "delete", "create"]
    tf.unchanged()


def test_a_create_that_fails_before_anything_exists_leaves_nothing(tf: Terraform, world: World) -> None:
    world.objects["it"] = {"name": "it"}
    assert "it exists: import it." in tf.apply(SMALL, fails=True)
    assert tf.addresses() == []


def test_an_update_that_fails_keeps_the_state_as_it_was(tf: Terraform, world: World) -> None:
    tf.apply(SMALL)

    def fail(op: Update, value: dict[str, Any]) -> None:
        raise ConnectionResetError("the server went away")

    world.on_update = fail
    said = tf.apply(SMALL.replace("}", "  size = 5\n}"), fails=True)
    assert "ConnectionResetError: the server went away" in said
    assert tf.state()["size"] == 1
    world.on_update = None
    assert "1 changed" in tf.apply()


@pytest.mark.row(64)
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"size": 9}, "size was planned as 1, but is 9."),
        ({"tags": []}, "tags was planned as null, but is []."),
        ({"network": {"cidr": "10.9.0.0/16"}}, "network was planned as null, but is a value."),
        ({"password": "leaked-by-mistake"}, "password differs from the plan."),
    ],
)
def test_a_result_that_breaks_the_plan_is_told_with_its_attribute(
    tf: Terraform, world: World, change: dict[str, Any], says: str
) -> None:
    world.on_create = lambda op, value: value.update(change)
    said = tf.apply(SMALL, fails=True)
    assert "The provider produced an inconsistent result" in said
    assert says in said
    assert "leaked" not in said
    assert "This is a bug in the provider" not in said
    assert tf.addresses() == ["toy_thing.it"]


def test_a_result_of_a_wrong_type_is_told_and_the_object_is_not_forgotten(tf: Terraform, world: World) -> None:
    world.on_create = lambda op, value: value.update(nodes=[{"role": 5}])
    said = tf.apply(SMALL, fails=True)
    assert "nodes[0].role: must be a string, not int" in said
    assert tf.addresses() == ["toy_thing.it"]


@pytest.mark.row(61)
def test_import_by_command_then_an_empty_plan(tf: Terraform, world: World) -> None:
    tf.apply(FULL)
    tf.run("state", "rm", "toy_thing.it")
    tf.run("import", "toy_thing.it", "thing/first")
    tf.unchanged()
    tf.run("state", "rm", "toy_thing.it")
    assert "There is no thing nobody." in tf.run("import", "toy_thing.it", "nobody", fails=True)


@pytest.mark.row(61)
def test_import_by_block_then_an_empty_plan(tf: Terraform) -> None:
    tf.apply(FULL)
    tf.run("state", "rm", "toy_thing.it")
    block = 'import {\n  to = toy_thing.it\n  id = "first"\n}\n'
    assert "1 imported, 0 added, 0 changed" in tf.apply(FULL + block)
    tf.unchanged()


@pytest.mark.row(68)
def test_state_of_an_older_schema_is_upgraded_step_by_step(tmp_path: Path, world: World) -> None:
    with attached(tmp_path, Toy(world, version=0)) as old:
        old.apply('resource "toy_versioned" "it" {\n  title = "hello"\n}\n')
    with attached(tmp_path, Toy(world, version=2)) as new:
        new.unchanged('resource "toy_versioned" "it" {\n  metadata = { name = "hello" }\n}\n')


@pytest.mark.row(68)
def test_state_of_a_newer_schema_is_refused_and_left_alone(tmp_path: Path, world: World) -> None:
    text = 'resource "toy_versioned" "it" {\n  metadata = { name = "hello" }\n}\n'
    with attached(tmp_path, Toy(world, version=2)) as new:
        new.apply(text)
    before = (tmp_path / "terraform.tfstate").read_text()
    with attached(tmp_path, Toy(world, version=0)) as old:
        said = old.plan('resource "toy_versioned" "it" {\n  title = "hello"\n}\n', fails=True)
    assert "newer provider version" in said
    assert (tmp_path / "terraform.tfstate").read_text() == before


@pytest.mark.row(68)
def test_a_resource_moves_to_another_type(tmp_path: Path, world: World) -> None:
    with attached(tmp_path, Toy(world, version=0)) as old:
        old.apply('resource "toy_legacy" "it" {\n  title = "hello"\n}\n')
    moved = "moved {\n  from = toy_legacy.it\n  to   = toy_versioned.it\n}\n"
    with attached(tmp_path, Both(world)) as new:
        said = new.apply('resource "toy_versioned" "it" {\n  metadata = { name = "hello" }\n}\n' + moved)
        assert "0 added, 0 changed, 0 destroyed" in said
        assert new.addresses() == ["toy_versioned.it"]


class Both(Toy):
    """Has the old type still, as a provider must while states hold it."""

    def resources(self) -> Any:
        return {**super().resources(), "toy_legacy": Toy(self.world, 0).resources()["toy_legacy"]}


@pytest.mark.row(68)
def test_a_write_only_secret_from_an_ephemeral_resource_is_in_no_state(tf: Terraform, world: World) -> None:
    can("write-only attributes", "ephemeral resources")
    text = """
ephemeral "toy_token" "t" { for = "it" }
resource "toy_thing" "it" {
  name           = "it"
  secret         = ephemeral.toy_token.t.token
  secret_version = 1
}
"""
    tf.apply(text)
    assert world.seen["config"]["secret"] == "s3cret-of-it"
    assert "s3cret" not in (tf.folder / "terraform.tfstate").read_text()
    assert "close it" in world.calls
    tf.unchanged()


@pytest.mark.row(68)
def test_functions_are_called_and_name_the_wrong_argument(tf: Terraform) -> None:
    assert 'x = "a-b-c"' in tf.apply('output "x" { value = provider::toy::join("-", "a", "b", "c") }')
    said = tf.plan('output "x" {\n  value = provider::toy::join("-", "a", "b-b")\n}', fails=True)
    assert "Invalid value for \"parts\" parameter: part 'b-b' holds the separator" in said
    said = tf.plan('output "x" {\n  value = provider::toy::join("----")\n}', fails=True)
    assert 'Invalid value for "separator" parameter: separator must have at most 3 characters' in said


@pytest.mark.row(65)
def test_a_data_source_reads(tf: Terraform) -> None:
    tf.apply(FULL)
    data = 'data "toy_thing" "d" { name = "first" }\noutput "ports" { value = data.toy_thing.d.rules[*].port }\n'
    assert "443" in tf.apply(FULL + data)
    said = tf.plan(FULL + 'data "toy_thing" "d" {\n  name = "nobody"\n}', fails=True)
    assert "There is no thing nobody." in said
    assert 'name = "nobody"' in said


@pytest.mark.row(68)
def test_private_state_comes_back_and_is_not_shown(tf: Terraform, world: World) -> None:
    tf.apply(SMALL)
    tf.plan()
    assert world.seen["private"] == {"made": "here"}
    assert "here" not in tf.run("show", "-json")


@pytest.mark.row(62)
def test_the_user_s_timeouts_reach_the_operation(tf: Terraform, world: World) -> None:
    tf.apply(SMALL.replace("}", '  timeouts = { create = "1h30m" }\n}'))
    assert world.seen["timeout"] == 5400
    tf.unchanged()


@pytest.mark.row(62)
def test_an_interrupt_ends_a_wait_and_keeps_what_was_saved(tf: Terraform, world: World) -> None:
    waiting = threading.Event()

    def wait(op: Create, value: dict[str, Any]) -> None:
        op.context.save(State(value))
        waiting.set()
        assert op.context.cancelled.wait(60)
        raise Failed("Interrupted", "while waiting until it is ready")

    world.on_create = wait
    tf.write(SMALL)
    running = subprocess.Popen(
        [binary(), "apply", "-auto-approve", "-no-color"],
        cwd=tf.folder,
        env={"PATH": os.environ["PATH"], "HOME": str(tf.folder), "CHECKPOINT_DISABLE": "1", **tf.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert waiting.wait(60)
    running.send_signal(signal.SIGINT)
    said, _ = running.communicate(timeout=60)
    assert "Interrupted" in said
    assert tf.addresses() == ["toy_thing.it"]
    state = json.loads((tf.folder / "terraform.tfstate").read_text())
    assert state["resources"][0]["instances"][0]["status"] == "tainted"

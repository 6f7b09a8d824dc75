"""Plans and applies of the real Terraform: nothing changes unless something was changed."""

from __future__ import annotations

import pytest

from tests.terraform.framework.terraforming import Terraform
from tests.terraform.framework.toy import World

pytestmark = pytest.mark.slow

FULL = """
resource "toy_thing" "it" {
  name     = "first"
  ttl      = "60s"
  ratio    = 0.1
  fast     = true
  tags     = ["a", "b", "c"]
  labels   = { x = "1", y = "2" }
  steps    = ["build", "ship"]
  network  = { cidr = "10.0.0.0/16" }
  nodes    = [{ role = "head" }, { role = "worker" }]
  pools    = { a = {}, b = { size = 5 } }
  rules    = [{ port = 80 }, { port = 443, note = "tls" }, { port = 53, protocol = "udp", within = "90s" }]
  password = "correct horse"
  anything = { deep = [1, "two", null] }
  disk {
    gigabytes = 10
    mount { at = "/" }
  }
  disk {
    gigabytes = 20
    kind      = "disk"
  }
  volume "a" {}
  volume "b" { gigabytes = 4 }
  access { who = "ann" }
  access { who = "bob" }
}
"""


@pytest.mark.row(64)
def test_the_plan_after_an_apply_is_empty(tf: Terraform, world: World) -> None:
    assert "1 added" in tf.apply(FULL)
    tf.unchanged()
    assert world.calls == ["create"]


@pytest.mark.row(64)
def test_the_order_of_a_set_is_no_difference(tf: Terraform) -> None:
    tf.apply(FULL)
    turned = FULL.replace('["a", "b", "c"]', '["c", "a", "b"]').replace(
        '[{ port = 80 }, { port = 443, note = "tls" }', '[{ port = 443, note = "tls" }, { port = 80 }'
    )
    turned = turned.replace(
        'access { who = "ann" }\n  access { who = "bob" }', 'access { who = "bob" }\n  access { who = "ann" }'
    )
    assert turned.count("port = 443") == 1
    assert turned != FULL
    tf.unchanged(turned)


@pytest.mark.row(68)
def test_defaults_are_set_inside_nested_objects(tf: Terraform) -> None:
    tf.apply(FULL)
    state = tf.state()
    assert state["size"] == 1
    assert state["network"]["mtu"] == 1500
    assert {name: pool["size"] for name, pool in state["pools"].items()} == {"a": 2, "b": 5}
    assert {rule["port"]: rule["protocol"] for rule in state["rules"]} == {80: "tcp", 443: "tcp", 53: "udp"}
    assert [disk["kind"] for disk in state["disk"]] == ["ssd", "disk"]
    assert {name: volume["gigabytes"] for name, volume in state["volume"].items()} == {"a": 1, "b": 4}


@pytest.mark.row(68)
def test_what_is_computed_is_known_after_apply_inside_elements_too(tf: Terraform) -> None:
    planned = tf.plan(FULL)
    assert "(known after apply)" in planned
    tf.apply()
    state = tf.state()
    assert all(pool["handle"].startswith("made-") for pool in state["pools"].values())
    assert all(node["address"].startswith("made-") for node in state["nodes"])
    assert {rule["port"]: rule["note"][:4] for rule in state["rules"]} == {80: "made", 443: "tls", 53: "made"}


def test_an_update_keeps_what_is_kept_and_computes_the_rest_anew(tf: Terraform, world: World) -> None:
    tf.apply(FULL)
    before = tf.state()
    planned = tf.plan(FULL.replace("size = 5", "size = 6"))
    assert "1 to change" in planned
    assert "revision" in planned
    tf.apply()
    after = tf.state()
    assert world.calls == ["create", "update"]
    assert after["id"] == before["id"]
    assert after["network"] == before["network"]
    assert after["pools"]["b"] == {**before["pools"]["b"], "size": 6}
    assert after["revision"] == 2
    assert after["nodes"][0]["address"] != before["nodes"][0]["address"]
    tf.unchanged()


@pytest.mark.row(68)
@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('name     = "first"', 'name     = "second"', 'name "first" -> "second" # forces replacement'),
        ('cidr = "10.0.0.0/16"', 'cidr = "10.1.0.0/16"', 'cidr "10.0.0.0/16" -> "10.1.0.0/16" # forces replacement'),
        ("b = { size = 5 }", 'b = { size = 5, kind = "x" }', 'kind "x" # forces replacement'),
        ("fast     = true", 'fast = true\n description = "reborn"', 'description "reborn" # forces replacement'),
    ],
)
def test_a_change_that_needs_a_new_resource_is_shown_where_it_is(tf: Terraform, old: str, new: str, place: str) -> None:
    tf.apply(FULL)
    planned = tf.plan(FULL.replace(old, new))
    said = " ".join(planned.replace(" = ", " ").split())
    assert "must be replaced" in said, planned
    assert place in said, planned


@pytest.mark.row(68)
def test_adding_an_element_with_such_an_attribute_replaces_nothing(tf: Terraform) -> None:
    tf.apply(FULL)
    planned = tf.plan(FULL.replace("b = { size = 5 }", 'b = { size = 5 }, c = { kind = "x" }'))
    assert "1 to change, 0 to destroy" in planned


def test_replacing_may_hang_on_the_values(tf: Terraform) -> None:
    tf.apply('resource "toy_thing" "it" {\n name = "it"\n zone = "earth" \n}')
    assert "0 to destroy" in tf.apply('resource "toy_thing" "it" {\n name = "it"\n zone = "moon" \n}').replace(
        "destroyed", "to destroy"
    )
    assert "must be replaced" in tf.plan('resource "toy_thing" "it" {\n name = "it"\n zone = "mars" \n}')


@pytest.mark.row(64)
def test_another_spelling_of_the_same_is_no_change(tf: Terraform) -> None:
    tf.apply(FULL)
    tf.unchanged(FULL.replace('"60s"', '"1m"').replace('"90s"', '"1m30s"'))
    assert tf.state()["ttl"] == "60s"
    assert "1 to change" in tf.plan(FULL.replace('"60s"', '"61s"'))


@pytest.mark.row(64)
def test_a_server_that_respells_makes_no_difference(tf: Terraform, world: World) -> None:
    world.on_create = lambda op, value: value.update(ttl="1m")
    tf.apply(FULL)
    assert tf.state()["ttl"] == "60s"
    world.objects["first"]["ttl"] = "0h1m"
    tf.unchanged()
    world.objects["first"]["ttl"] = "a while"
    assert '"a while" -> "60s"' in tf.plan()
    world.objects["first"]["ttl"] = "2m"
    assert '"2m" -> "60s"' in tf.plan()


def test_drift_is_shown_and_put_right(tf: Terraform, world: World) -> None:
    tf.apply(FULL)
    world.objects["first"]["size"] = 7
    world.objects["first"]["labels"] = {"x": "changed", "y": "2"}
    planned = tf.plan()
    assert "7 -> 1" in planned
    assert '"changed" -> "1"' in planned
    tf.apply()
    assert world.objects["first"]["size"] == 1
    tf.unchanged()


@pytest.mark.row(60)
def test_an_object_that_has_vanished_is_made_again(tf: Terraform, world: World) -> None:
    tf.apply(FULL)
    world.objects.clear()
    assert "1 to add" in tf.plan()
    tf.apply()
    assert list(world.objects) == ["first"]


@pytest.mark.row(58)
def test_what_hangs_on_another_resource_is_unknown_in_the_plan_and_known_in_the_body(
    tf: Terraform, world: World
) -> None:
    two = """
resource "toy_thing" "one" { name = "one" }
resource "toy_thing" "two" {
  name    = "two"
  tags    = [for _ in [1] : "a"]
  network = { cidr = toy_thing.one.id }
  nodes   = [for x in ["head"] : { role = x }]
  pools   = { (toy_thing.one.name) = { kind = toy_thing.one.id } }
  rules   = [{ port = toy_thing.one.revision }]
  labels  = { x = toy_thing.one.zone }
}
"""
    assert "2 to add" in tf.plan(two)
    tf.apply()
    assert world.objects["two"]["network"]["cidr"] == world.objects["one"]["id"]
    assert world.objects["two"]["rules"][0]["port"] == 1
    tf.unchanged()


def test_unknown_collections_are_planned_as_unknown(tf: Terraform, world: World) -> None:
    two = """
resource "toy_thing" "one" { name = "one" }
resource "toy_thing" "two" {
  name  = "two"
  nodes = toy_thing.one.revision > 0 ? [{ role = "head" }] : null
  rules = toy_thing.one.revision > 0 ? [{ port = 1 }] : []
  dynamic "disk" {
    for_each = toy_thing.one.revision > 0 ? [1, 2] : []
    content { gigabytes = disk.value }
  }
}
"""
    assert "2 added" in tf.apply(two)
    assert len(world.objects["two"]["disk"]) == 2
    tf.unchanged()


def test_absent_and_empty_are_told_apart(tf: Terraform) -> None:
    tf.apply('resource "toy_thing" "it" {\n name = "it"\n tags = []\n rules = []\n pools = {}\n}')
    state = tf.state()
    assert (state["tags"], state["rules"], state["pools"], state["nodes"]) == ([], [], {}, None)
    tf.unchanged()
    assert "1 to change" in tf.plan('resource "toy_thing" "it" {\n name = "it"\n}')


def test_removing_what_was_set_is_a_change(tf: Terraform, world: World) -> None:
    tf.apply(FULL)
    tf.apply('resource "toy_thing" "it" {\n name = "first"\n}')
    assert world.calls == ["create", "update"]
    state = tf.state()
    assert state["network"] is None
    assert state["disk"] == []
    tf.unchanged()


def test_destroying_is_planned_and_done(tf: Terraform, world: World) -> None:
    tf.apply(FULL)
    assert "first is to be deleted" in tf.run("plan", "-destroy")
    assert "1 destroyed" in tf.run("destroy", "-auto-approve")
    assert world.objects == {}


def test_what_is_to_be_ignored_is_ignored_at_any_depth(tf: Terraform, world: World) -> None:
    text = """
resource "toy_thing" "it" {
  name        = "it"
  description = "mine"
  network     = { cidr = "10.0.0.0/16", mtu = 9000 }
  pools       = { a = { size = 3 } }
  lifecycle { ignore_changes = [description, network.mtu, pools["a"].size] }
}
"""
    tf.apply(text)
    world.objects["it"]["description"] = "theirs"
    world.objects["it"]["network"]["mtu"] = 1400
    world.objects["it"]["pools"]["a"]["size"] = 4
    tf.unchanged()
    tf.unchanged(text.replace("mine", "other").replace("9000", "1300"))
    assert "1 to change" in tf.plan(text.replace('name        = "it"', 'name = "it"\n  size = 2'))


def test_a_refresh_takes_drift_into_the_state_and_changes_nothing(tf: Terraform, world: World) -> None:
    tf.apply(FULL)
    world.objects["first"]["size"] = 7
    tf.run("apply", "-refresh-only", "-auto-approve")
    assert tf.state()["size"] == 7
    assert world.calls == ["create"]


def test_many_at_once_do_not_disturb_each_other(tf: Terraform, world: World) -> None:
    many = """
resource "toy_thing" "it" {
  count   = 40
  name    = "thing-${count.index}"
  network = { cidr = "10.${count.index}.0.0/16" }
  rules   = [for port in range(1, 6) : { port = port }]
}
"""
    assert "40 added" in tf.apply(many)
    tf.unchanged()
    assert all(thing["network"]["cidr"] == f"10.{name[6:]}.0.0/16" for name, thing in world.objects.items())
    assert len({thing["id"] for thing in world.objects.values()}) == 40
    assert "40 destroyed" in tf.run("destroy", "-auto-approve", "-parallelism=20")


@pytest.mark.row(68)
def test_an_object_that_is_still_unknown_says_beforehand_what_it_may_replace(tf: Terraform) -> None:
    text = """
resource "toy_thing" "one" {
  name = "one"
  size = 1
}
resource "toy_thing" "two" {
  name    = "two"
  network = toy_thing.one.revision > 1 ? { cidr = "10.2.0.0/16" } : { cidr = "10.1.0.0/16" }
}
"""
    tf.apply(text)
    changed = text.replace("size = 1", "size = 2")
    planned = tf.plan(changed)
    assert "toy_thing.two must be replaced" in planned
    assert "forces replacement" in planned
    assert "1 added, 1 changed, 1 destroyed" in tf.apply()
    assert tf.state("toy_thing.two")["network"]["cidr"] == "10.2.0.0/16"
    tf.unchanged()

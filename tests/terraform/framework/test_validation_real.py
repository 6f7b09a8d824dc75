"""What the real Terraform says of a wrong configuration: what is wrong, and on which line."""

from __future__ import annotations

import pytest

from tests.terraform.framework.terraforming import Terraform
from tests.terraform.framework.toy import World


def thing(body: str) -> str:
    return f'resource "toy_thing" "it" {{\n  name = "it"\n{body}\n}}\n'


@pytest.mark.row(59)
@pytest.mark.parametrize(
    ("body", "line", "rule"),
    [
        ("  size = 101", "6: size = 101", "size must be at most 100, not 101."),
        ('  tags = ["a", "B"]', '6: tags = ["a", "B"]', 'tags must match [a-z]+, not "B".'),
        ('  labels = {\n    x = ""\n  }', 'x = ""', 'labels["x"] must have at least 1 characters'),
        (
            '  steps = [\n    "build",\n    "fly",\n  ]',
            '"fly"',
            'steps[1] must be one of "build", "test", "ship", not "fly".',
        ),
        ('  nodes = [\n    { role = "boss" },\n  ]', 'role = "boss"', 'nodes[0].role must be one of "head", "worker"'),
        (
            "  rules = [\n    { port = 80 },\n    { port = 0 },\n  ]",
            "6: rules = [",
            "rules.port must be at least 1, not 0.",
        ),
        ('  timeouts = { create = "soon" }', "timeouts = {", 'timeouts.create must be a duration such as "30s"'),
    ],
)
def test_a_wrong_value_is_shown_on_its_line(tf: Terraform, body: str, line: str, rule: str) -> None:
    said = tf.validate(thing(body), fails=True)
    assert rule in said
    assert line in said


@pytest.mark.row(68)
def test_a_secret_is_not_told_in_an_error(tf: Terraform) -> None:
    said = tf.validate(thing('  password = "hunter2"'), fails=True)
    assert "password must have at least 8 characters." in said
    assert "hunter2" not in said.replace('password = "hunter2"', "")


@pytest.mark.row(59)
@pytest.mark.parametrize(
    ("body", "says", "line"),
    [
        ("spec = {}", "At least one of these attributes must be set: spec.credentials, spec.config.ssh.", "spec = {}"),
        (
            'spec = {\n    credentials = "x"\n    a = "1"\n    b = "2"\n  }',
            "exclude each other: spec.a, spec.b",
            '8: b = "2"',
        ),
        ('user = "me"\n  spec = { credentials = "x" }', "must be set together: user, spec.a.", 'user = "me"'),
        (
            'spec = { credentials = "x"\n    clouds = [\n      { gcp = "a" },\n      { gcp = "b", aws = {} },\n    ]\n  }',
            "Exactly one of these attributes must be set: spec.clouds[1].aws, spec.clouds[1].gcp. 2 are set.",
            "clouds = [",
        ),
        (
            'spec = { credentials = "x"\n    clouds = [\n      { },\n    ]\n  }',
            "Exactly one of these attributes must be set: spec.clouds[0].aws, spec.clouds[0].gcp. None is set.",
            "clouds = [",
        ),
    ],
)
def test_a_rule_over_several_attributes_points_at_the_source(tf: Terraform, body: str, says: str, line: str) -> None:
    said = tf.validate(f'resource "toy_choice" "it" {{\n  {body}\n}}\n', fails=True)
    assert says in said
    assert line in said


@pytest.mark.row(59)
def test_what_is_unknown_breaks_no_rule_until_it_is_known(tf: Terraform) -> None:
    text = """
resource "toy_thing" "one" { name = "one" }
resource "toy_choice" "it" {
  spec = {
    credentials = toy_thing.one.id
    clouds      = [{ aws = toy_thing.one.id == "" ? {} : null, gcp = "x" }]
  }
}
"""
    tf.plan(text)
    assert "2 added" in tf.apply()


@pytest.mark.row(68)
def test_a_deprecated_attribute_is_warned_about_where_it_is_used(tf: Terraform) -> None:
    said = tf.plan(thing('  old = "x"'))
    assert "Warning: Deprecated" in said
    assert "old: Use description." in said
    assert "Deprecated" not in tf.plan(thing(""))


@pytest.mark.row(68)
def test_a_sensitive_value_is_not_shown(tf: Terraform) -> None:
    said = tf.plan(thing('  password = "correct horse"'))
    assert "(sensitive value)" in said
    assert "correct horse" not in said


@pytest.mark.row(57)
def test_a_provider_s_own_configuration_is_checked(tf: Terraform, world: World) -> None:
    assert 'endpoint must be a URL, not "nowhere".' in tf.plan(
        'provider "toy" { endpoint = "nowhere" }\n' + thing(""), fails=True
    )
    said = tf.plan('provider "toy" {\n  endpoint = "http://down"\n}\n' + thing(""), fails=True)
    assert "Cannot connect" in said
    assert 'endpoint = "http://down"' in said
    assert world.calls == []


def test_wrong_types_and_unknown_names_are_told_by_terraform_from_our_schema(tf: Terraform) -> None:
    assert "a number is required" in tf.validate(thing('  size = "many"'), fails=True)
    assert 'An argument named "colour" is not expected here' in tf.validate(thing('  colour = "red"'), fails=True)
    assert 'attribute "cidr" is required' in tf.validate(thing("  network = {}"), fails=True)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("  network = { cidr = null }", "network.cidr"),
        ('  nodes = [\n    { role = "head" },\n    { role = null },\n  ]', "nodes[1].role"),
        ("  rules = [{ port = null }]", "rules.port"),
    ],
)
def test_null_is_no_value_for_what_is_required_inside(tf: Terraform, body: str, place: str) -> None:
    assert f"{place} is required and must not be null." in tf.validate(thing(body), fails=True)

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.terraform.kinds.naming import META_ARGUMENTS, field_names, kind_names, plural_name, snake

WIRES = st.text("aAbBsSI1_-.$/", min_size=1, max_size=8)
GROUPS = st.sampled_from(["", "a", "a.b", "a.b.c", "a.c", "a-b"])


@pytest.mark.parametrize(
    ("wire", "name"),
    [
        ("ruleRef", "rule_ref"),
        ("DiscoveryRuleIPRange", "discovery_rule_ip_range"),
        ("VEXSource", "vex_source"),
        ("SBOM", "sbom"),
        ("clusterIPs", "cluster_ips"),
        ("podCIDRs", "pod_cidrs"),
        ("uploadedYAML", "uploaded_yaml"),
        ("http2Port", "http2_port"),
        ("x-kubernetes-map-type", "x_kubernetes_map_type"),
        ("$ref", "ref"),
        ("snake_case", "snake_case"),
    ],
)
def test_names_are_snake_case_of_the_apis_names(wire: str, name: str) -> None:
    assert snake(wire) == name


@given(st.sets(WIRES, max_size=12))
def test_no_two_fields_share_a_name_and_each_is_one_that_terraform_takes(wires: set[str]) -> None:
    names = field_names(wires, META_ARGUMENTS)
    assert set(names) == wires
    assert len(set(names.values())) == len(wires)
    assert all(re.fullmatch(r"[a-z_][a-z0-9_]*", name) for name in names.values())
    assert META_ARGUMENTS.isdisjoint(names.values())


@pytest.mark.parametrize("other", ["foo_bar", "FooBar", "fooBAR", "foo-bar"])
def test_the_field_that_is_camel_case_as_apis_write_it_has_the_plain_name(other: str) -> None:
    assert field_names(["fooBar", other]) == {"fooBar": "foo_bar", other: "foo_bar_2"}


def test_a_field_keeps_the_name_that_it_was_given() -> None:
    before = field_names(["FooBar"])
    assert field_names(["FooBar", "fooBar"], kept=before) == {"FooBar": "foo_bar", "fooBar": "foo_bar_2"}


@given(st.sets(WIRES, max_size=8), st.sets(WIRES, max_size=8))
def test_no_field_that_comes_later_changes_the_name_of_another(before: set[str], later: set[str]) -> None:
    kept = field_names(before, META_ARGUMENTS)
    names = field_names(before | later, META_ARGUMENTS, kept)
    assert kept.items() <= names.items()
    assert len(set(names.values())) == len(before | later)


def test_what_terraform_means_by_a_word_is_not_taken_from_it() -> None:
    assert field_names(["count", "provider"], META_ARGUMENTS) == {"count": "count_", "provider": "provider_"}


@pytest.mark.row(63)
def test_groups_that_begin_alike_are_told_apart_by_their_next_label() -> None:
    kinds = [("apps", "Deployment"), ("apps.trimtab.dev", "Workload"), ("apps.example.com", "Workload"), ("", "Pod")]
    assert kind_names(kinds) == {
        ("", "Pod"): "core_pod",
        ("apps", "Deployment"): "apps_deployment",
        ("apps.trimtab.dev", "Workload"): "apps_trimtab_workload",
        ("apps.example.com", "Workload"): "apps_example_workload",
    }


def test_a_group_that_comes_later_renames_nothing_of_ours() -> None:
    ours = ("infra.trimtab.dev", "Cluster")
    assert kind_names([ours, ("infra.acme.io", "Cluster")])[ours] == kind_names([ours])[ours] == "infra_cluster"


@given(st.sets(st.tuples(GROUPS, WIRES), max_size=12))
def test_no_two_kinds_share_a_name(kinds: set[tuple[str, str]]) -> None:
    assert len(set(kind_names(kinds).values())) == len(kinds)


@given(st.sets(st.tuples(GROUPS, WIRES), max_size=8), st.sets(st.tuples(GROUPS, WIRES), max_size=8))
def test_no_kind_that_comes_later_changes_the_name_of_another(
    before: set[tuple[str, str]], later: set[tuple[str, str]]
) -> None:
    kept = kind_names(before)
    names = kind_names(before | later, kept=kept)
    assert kept.items() <= names.items()
    assert len(set(names.values())) == len(before | later)


def test_a_new_kind_of_a_group_is_called_as_the_others_of_it() -> None:
    kept = kind_names([("awk.example.com", "Odd")])
    names = kind_names([("awk.example.com", "Odd"), ("awk.example.com", "Even"), ("awk.aaa.com", "Even")], kept=kept)
    assert names["awk.example.com", "Even"] == "awk_even"
    assert names["awk.aaa.com", "Even"] == "awk_aaa_even"


@pytest.mark.row(65)
@pytest.mark.parametrize(
    ("name", "kind", "plural", "wanted"),
    [
        ("images_registry", "Registry", "registries", "images_registries"),
        ("discovery_discovery_rule", "DiscoveryRule", "discoveryrules", "discovery_discovery_rules"),
        ("core_endpoints", "Endpoints", "endpoints", "core_endpoints_list"),
        ("acme_person", "Person", "people", "acme_people"),
    ],
)
def test_many_are_called_by_the_plural_that_the_kind_declares(name: str, kind: str, plural: str, wanted: str) -> None:
    assert plural_name(name, kind, plural, {name}) == wanted

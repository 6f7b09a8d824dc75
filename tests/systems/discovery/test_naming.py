from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.model.names import dns_subdomain_problems, label_value_problems
from trimtab.systems.discovery.targets.naming import address_name, label_value, target_name, unique

ADDRESS = "10.1.0.5"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("leaf1", "leaf1"),
        ("Leaf1.Example.COM", "leaf1.example.com"),
        (" leaf1\n", "leaf1"),
        ("a--b", "a--b"),
        ("", "10.1.0.5"),
        ("  ", "10.1.0.5"),
        ("10.1.0.9", "10.1.0.9"),
    ],
)
def test_a_valid_name_stays(text: str, name: str) -> None:
    assert target_name(text, ADDRESS) == name


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("core_sw1", "core-sw1"),
        ("Sw 1", "sw-1"),
        ("rtr/1", "rtr-1"),
        ("::1", "1"),
        ("-leaf-", "leaf"),
        ("a..b", "a.b"),
        ("a.-b", "a.b"),
        ("leaf.", "leaf"),
        ("___", "device"),
        ("é", "device"),
        ("Zürich", "z-rich"),
        ("x" * 300, "x" * 243),
        ("leaf--0123abcd", "leaf--0123abcd"),
    ],
)
def test_any_other_text_keeps_its_valid_part_and_gets_a_hash(text: str, begins: str) -> None:
    assert re.fullmatch(re.escape(begins) + "--[0-9a-f]{8}", target_name(text, ADDRESS))


def test_names_do_not_change_from_release_to_release() -> None:
    assert target_name("core_sw1", ADDRESS) == "core-sw1--d8e1df15"
    assert unique("leaf1", {"leaf1"}, "serial:A") == "leaf1--679ddaab"


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("10.1.0.5", "10.1.0.5"),
        ("2001:db8::1", "2001-db8--1"),
        ("2001:DB8:0::1", "2001-db8--1"),
        ("::1", "0--1"),
        ("2001:db8::", "2001-db8--0"),
        ("fe80::1%eth0", "fe80--1"),
        ("leaf1.example.com", "leaf1.example.com"),
        ("", "device"),
    ],
)
def test_an_address_makes_a_name(address: str, name: str) -> None:
    assert target_name("", address) == address_name(address) == name


texts = st.text(max_size=300) | st.text("abAB01.-_ ", max_size=12)


@given(texts, st.ip_addresses().map(str) | texts)
def test_every_text_and_address_makes_a_valid_name(text: str, address: str) -> None:
    assert dns_subdomain_problems(target_name(text, address)) == []


@given(texts, texts)
def test_two_texts_have_one_name_only_when_they_differ_by_case(one: str, other: str) -> None:
    same = target_name(one, ADDRESS) == target_name(other, ADDRESS)
    if one.strip() and other.strip():
        assert same is (one.strip().lower() == other.strip().lower())


@given(texts)
def test_a_name_that_was_made_is_not_that_of_another_text(text: str) -> None:
    made = target_name(text, ADDRESS)
    if made != text.strip().lower() and text.strip():
        assert target_name(made, ADDRESS) != made


@given(st.ip_addresses(), st.ip_addresses())
def test_two_addresses_have_two_names(one: object, other: object) -> None:
    assert (address_name(str(one)) == address_name(str(other))) is (one == other)


def test_a_free_name_is_kept() -> None:
    assert unique("leaf1", {"leaf2"}, "serial:A") == "leaf1"


@given(st.lists(st.text(max_size=5), max_size=8), st.sampled_from(["leaf1", "x" * 253]))
def test_devices_that_say_the_same_get_names_of_their_own(identities: list[str], name: str) -> None:
    taken: set[str] = set()
    for identity in identities:
        made = unique(name, taken, identity)
        assert made not in taken
        assert dns_subdomain_problems(made) == []
        taken.add(made)


@given(texts)
def test_every_text_makes_a_valid_label_value(text: str) -> None:
    assert label_value_problems(label_value(text)) == []


def test_a_label_value_keeps_what_may_be_in_it() -> None:
    assert label_value("7220 IXR-D2L (rev_B)") == "7220-IXR-D2L-rev_B"

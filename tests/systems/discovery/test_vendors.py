"""Which vendor profile fits a device, and what `extends` gives it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from trimtab.model.objectmeta import ObjectMeta
from trimtab.systems.discovery.kinds import (
    DiscoveryVendorProfile,
    DiscoveryVendorProfileSpec,
    GnmiPath,
    GnmiVendor,
    NetconfPath,
    NetconfVendor,
    SnmpOid,
    SnmpVendor,
    SshCommand,
    SshVendor,
)
from trimtab.systems.discovery.vendors.choice import Choice, Model, Vendors


def profile(name: str, **blocks: Any) -> DiscoveryVendorProfile:
    return DiscoveryVendorProfile(metadata=ObjectMeta(name=name), spec=DiscoveryVendorProfileSpec(**blocks))


def gnmi(name: str, extends: Any = UNSET, **fields: Any) -> DiscoveryVendorProfile:
    return profile(name, extends=extends, gnmi=GnmiVendor(**fields))


def netconf(name: str, match: str) -> DiscoveryVendorProfile:
    return profile(name, netconf=NetconfVendor(capability_match=match))


def ssh(name: str, **fields: Any) -> DiscoveryVendorProfile:
    return profile(name, ssh=SshVendor(**fields))


def snmp(name: str, extends: Any = UNSET, **fields: Any) -> DiscoveryVendorProfile:
    return profile(name, extends=extends, snmp=SnmpVendor(**fields))


MODELS = (
    Model("urn:nokia.com:srlinux:aaa", "Nokia"),
    Model("openconfig-interfaces", "OpenConfig working group", "2.4.3"),
)


class TestGnmi:
    @pytest.mark.parametrize(
        ("better", "worse"),
        [
            ({"organization": "Nokia", "model_match": "srl"}, {"organization": "Nokia"}),
            ({"organization": "Nokia"}, {"model_match": "urn:nokia.com:srlinux"}),
            ({"model_match": "nokia.com:srlinux"}, {"model_match": "srlinux"}),
            (
                {"organization": "Nokia", "model_match": "srlinux"},
                {"organization": "OpenConfig working group", "model_match": "openc"},
            ),
        ],
    )
    def test_the_more_specific_profile_wins_in_any_order(self, better: dict[str, str], worse: dict[str, str]) -> None:
        profiles = [gnmi("z-better", **better), gnmi("a-worse", **worse)]
        for order in (profiles, profiles[::-1]):
            choice = Vendors(order).gnmi(MODELS)
            assert (choice.profile, choice.tied) == ("z-better", ())

    def test_organization_and_model_must_hold_for_one_model(self) -> None:
        crossed = gnmi("crossed", organization="Nokia", model_match="openconfig-interfaces")
        assert Vendors([crossed]).gnmi(MODELS) == Choice("", None)

    def test_an_organization_is_matched_whole(self) -> None:
        assert Vendors([gnmi("part", organization="Nok")]).gnmi(MODELS).profile == ""

    def test_what_is_matched_does_not_reach_over_two_names(self) -> None:
        models = [Model("one", "Nokia"), Model("two", "Nokia")]
        assert Vendors([gnmi("both", model_match="one\ntwo")]).gnmi(models).profile == ""

    def test_a_tie_is_told_and_goes_to_the_first_by_name(self) -> None:
        choice = Vendors([gnmi("b", organization="Nokia"), gnmi("a", organization="Nokia")]).gnmi(MODELS)
        assert (choice.profile, choice.tied) == ("a", ("a", "b"))
        assert choice.spec is not None

    def test_a_block_that_tells_no_device_matches_none(self) -> None:
        assert Vendors([gnmi("paths-only", paths=(GnmiPath(key="version", path="a"),))]).gnmi(MODELS).profile == ""

    def test_a_device_without_models_matches_none(self) -> None:
        assert Vendors([gnmi("a", organization="Nokia"), gnmi("b", model_match="x")]).gnmi([]).profile == ""


class TestNetconf:
    CAPABILITIES = (
        "urn:ietf:params:netconf:base:1.1",
        "http://cisco.com/ns/yang/Cisco-IOS-XR-um-hostname-cfg?module=Cisco-IOS-XR-um-hostname-cfg",
    )

    def test_what_matches_more_of_a_capability_wins(self) -> None:
        vendors = Vendors([netconf("cisco", "cisco\\.com/ns"), netconf("xr", "cisco\\.com/ns/yang/Cisco-IOS-XR")])
        assert vendors.netconf(self.CAPABILITIES).profile == "xr"

    def test_a_pattern_that_matches_everything_says_little(self) -> None:
        vendors = Vendors([netconf("any", ".*"), netconf("cisco", "cisco")])
        assert vendors.netconf(self.CAPABILITIES).profile == "cisco"

    def test_no_capability_no_match(self) -> None:
        assert Vendors([netconf("cisco", "cisco")]).netconf(["urn:ietf:params:netconf:base:1.0"]).profile == ""

    def test_a_capability_that_is_no_text_is_no_trouble(self) -> None:
        assert Vendors([netconf("cisco", "cisco")]).netconf(["\udcffcisco", "x" * 1_000_000]).profile == "cisco"


class TestSsh:
    IOS = "Cisco IOS Software, Version 15.2"
    XE = "Cisco IOS XE Software, Version 17.9.4"

    def vendors(self) -> Vendors:
        return Vendors(
            [
                ssh("ios", banner_match="Cisco-1", probe_command="show version", probe_match="IOS Software"),
                ssh("xe", banner_match="Cisco-1", probe_command="show version", probe_match="IOS XE Software"),
                ssh("linux", probe_command="uname -s", probe_match="^Linux"),
                ssh("debian", banner_match="OpenSSH_\\S+ Debian"),
            ]
        )

    def test_a_banner_alone_may_leave_a_tie(self) -> None:
        assert self.vendors().ssh("SSH-2.0-Cisco-1.25").tied == ("ios", "xe")

    @pytest.mark.parametrize(("output", "name"), [(IOS, "ios"), (XE, "xe")])
    def test_the_output_of_the_probe_decides(self, output: str, name: str) -> None:
        choice = self.vendors().ssh("SSH-2.0-Cisco-1.25", {"show version": output})
        assert (choice.profile, choice.tied) == (name, ())

    def test_a_probe_that_printed_something_else_speaks_against_the_profile(self) -> None:
        assert self.vendors().ssh("SSH-2.0-Cisco-1.25", {"show version": "NX-OS"}).profile == ""

    def test_a_probe_that_printed_nothing_says_nothing(self) -> None:
        assert self.vendors().ssh("SSH-2.0-Cisco-1.25", {"show version": " \n"}).tied == ("ios", "xe")

    def test_what_a_command_printed_goes_before_a_banner(self) -> None:
        banner = "SSH-2.0-OpenSSH_9.2p1 Debian-2"
        assert self.vendors().ssh(banner).profile == "debian"
        assert self.vendors().ssh(banner, {"uname -s": "Linux\n"}).profile == "linux"

    def test_each_probe_is_listed_once(self) -> None:
        assert self.vendors().ssh_probes() == ("show version", "uname -s")


class TestSnmp:
    @pytest.mark.parametrize(
        ("better", "worse"),
        [
            ({"object_id": "1.3.6.1.4.1.9.1"}, {"object_id": "1.3.6.1.4.1.9"}),
            ({"object_id": "1.3.6.1.4.1.9.1"}, {"object_id": "1.3.6.1.4.1.9", "description_match": "IOS.*Version"}),
            ({"object_id": "1.3.6.1.4.1.9", "description_match": "IOS"}, {"object_id": "1.3.6.1.4.1.9"}),
            ({"object_id": "1.3.6"}, {"description_match": "Cisco IOS Software"}),
            ({"description_match": "Cisco IOS"}, {"description_match": "Cisco"}),
        ],
    )
    def test_the_more_specific_profile_wins_in_any_order(self, better: dict[str, str], worse: dict[str, str]) -> None:
        profiles = [snmp("z-better", **better), snmp("a-worse", **worse)]
        for order in (profiles, profiles[::-1]):
            choice = Vendors(order).snmp("1.3.6.1.4.1.9.1.1208", "Cisco IOS Software, Version 15.2")
            assert (choice.profile, choice.tied) == ("z-better", ())

    def test_an_object_id_is_compared_part_by_part(self) -> None:
        vendors = Vendors([snmp("nine", object_id="1.3.6.1.4.1.9")])
        assert vendors.snmp("1.3.6.1.4.1.99.1", "").profile == ""
        assert vendors.snmp("1.3.6.1.4.1.9", "").profile == "nine"
        assert vendors.snmp(".1.3.6.1.4.1.9.1", "").profile == "nine"

    def test_both_fields_must_hold(self) -> None:
        vendors = Vendors([snmp("ios", object_id="1.3.6.1.4.1.9", description_match="IOS")])
        assert vendors.snmp("1.3.6.1.4.1.9.1", "NX-OS").profile == ""
        assert vendors.snmp("1.3.6.1.4.1.10.1", "IOS").profile == ""


class TestExtends:
    BASE = profile(
        "base",
        gnmi=GnmiVendor(
            organization="Nokia",
            model_match="srl",
            encoding="ASCII",
            paths=(
                GnmiPath(key="version", path="v1"),
                GnmiPath(key="version", path="v2"),
                GnmiPath(key="hostname", path="h"),
            ),
        ),
        netconf=NetconfVendor(
            capability_match="nokia", filter="<system/>", paths=(NetconfPath(key="version", path="system/version"),)
        ),
        ssh=SshVendor(banner_match="Nokia", commands=(SshCommand(key="version", command="show version"),)),
        snmp=SnmpVendor(object_id="1.3.6.1.4.1.6527", oids=(SnmpOid(key="version", oid="1.3.6.1"),)),
    )

    def resolved(self, *profiles: DiscoveryVendorProfile) -> DiscoveryVendorProfileSpec:
        vendors = Vendors([self.BASE, *profiles])
        assert vendors.problems == {}
        return vendors.profiles["child"]

    def test_a_protocol_that_the_child_lacks_is_the_parent_s(self) -> None:
        child = self.resolved(profile("child", extends="base"))
        assert (child.gnmi, child.snmp) == (self.BASE.spec.gnmi, self.BASE.spec.snmp)

    def test_entries_of_a_key_that_the_child_names_replace_the_parent_s(self) -> None:
        child = self.resolved(gnmi("child", "base", paths=(GnmiPath(key="version", path="mine"),)))
        assert isinstance(child.gnmi, GnmiVendor)
        assert [(path.key, path.path) for path in child.gnmi.paths] == [("version", "mine"), ("hostname", "h")]

    def test_what_the_child_matches_replaces_all_that_the_parent_matches(self) -> None:
        child = self.resolved(gnmi("child", "base", organization="Other"))
        assert isinstance(child.gnmi, GnmiVendor)
        assert (child.gnmi.organization, child.gnmi.model_match) == ("Other", UNSET)

    def test_a_child_that_matches_nothing_of_its_own_matches_as_the_parent(self) -> None:
        child = self.resolved(gnmi("child", "base", paths=(GnmiPath(key="serialNumber", path="s"),)))
        assert isinstance(child.gnmi, GnmiVendor)
        assert (child.gnmi.organization, child.gnmi.model_match) == ("Nokia", "srl")

    def test_an_encoding_that_nobody_gives_is_left_to_the_connection_profile(self) -> None:
        child = self.resolved(gnmi("child", "base"))
        assert isinstance(child.gnmi, GnmiVendor)
        assert child.gnmi.encoding is UNSET

    def test_the_parent_s_filter_holds_where_the_child_has_none(self) -> None:
        child = self.resolved(
            profile("child", extends="base", netconf=NetconfVendor(paths=(NetconfPath(key="platform", path="p"),)))
        )
        assert isinstance(child.netconf, NetconfVendor)
        assert child.netconf.filter == "<system/>"
        assert child.netconf.capability_match == "nokia"

    def test_it_goes_through_several_profiles_in_any_order(self) -> None:
        middle = gnmi("middle", "base", organization="Middle")
        child = gnmi("child", "middle", paths=(GnmiPath(key="macAddress", path="m"),))
        found = self.resolved(child, middle).gnmi
        assert isinstance(found, GnmiVendor)
        assert found.organization == "Middle"
        assert {path.key for path in found.paths} == {"version", "hostname", "macAddress"}

    def test_a_child_that_changes_how_a_device_is_read_goes_before_its_parent(self) -> None:
        child = snmp("child", "base", oids=(SnmpOid(key="version", oid="1.3.6.2"),))
        choice = Vendors([self.BASE, child]).snmp("1.3.6.1.4.1.6527.1", "")
        assert (choice.profile, choice.tied) == ("child", ())

    def test_a_child_that_says_nothing_of_the_protocol_goes_after_its_parent(self) -> None:
        choice = Vendors([self.BASE, profile("a-child", extends="base")]).snmp("1.3.6.1.4.1.6527.1", "")
        assert (choice.profile, choice.tied) == ("base", ())

    def test_two_children_that_read_a_device_differently_tie(self) -> None:
        oids = (SnmpOid(key="version", oid="1.3.6.2"),)
        vendors = Vendors([self.BASE, snmp("one", "base", oids=oids), snmp("two", "base", oids=oids)])
        assert vendors.snmp("1.3.6.1.4.1.6527.1", "").tied == ("one", "two")

    def test_a_missing_parent_makes_a_profile_and_its_children_invalid(self) -> None:
        vendors = Vendors([profile("child", extends="gone"), profile("grandchild", extends="child"), self.BASE])
        assert set(vendors.problems) == {"child", "grandchild"}
        assert "child extends gone, which does not exist" in vendors.problems["grandchild"]
        assert set(vendors.profiles) == {"base"}

    def test_a_circle_makes_all_in_it_and_under_it_invalid(self) -> None:
        vendors = Vendors([profile("a", extends="b"), profile("b", extends="a"), profile("c", extends="a"), self.BASE])
        assert set(vendors.problems) == {"a", "b", "c"}
        assert "a → b → a" in vendors.problems["a"]

    def test_a_chain_that_is_too_long_is_refused(self) -> None:
        chain = [profile(f"p{n}", extends=f"p{n - 1}") for n in range(1, 40)]
        vendors = Vendors([profile("p0"), *chain])
        assert "more than 16" in vendors.problems["p39"]
        assert "p15" in vendors.profiles

    def test_a_profile_that_is_wrong_in_itself_is_left_out_and_named(self) -> None:
        vendors = Vendors([netconf("wrong", "("), netconf("right", "x")])
        assert set(vendors.problems) == {"wrong"}
        assert "spec.netconf.capabilityMatch" in vendors.problems["wrong"]
        assert vendors.netconf(["x"]).profile == "right"


names = st.sampled_from(["a", "b", "c", "d"])
some_profiles = st.lists(
    st.builds(
        lambda name, parent, oid, match: snmp(name, parent, object_id=oid, description_match=match),
        names,
        st.one_of(st.just(UNSET), names),
        st.sampled_from([UNSET, "1.3.6.1.4.1.9", "1.3.6.1.4.1.9.1", "1.3.6.1"]),
        st.sampled_from([UNSET, "IOS", "Cisco", ".*"]),
    ),
    unique_by=lambda each: each.name,
)


@settings(max_examples=150)
@given(some_profiles, st.randoms(use_true_random=False))
def test_the_choice_never_depends_on_the_order_of_profiles(profiles: list[DiscoveryVendorProfile], chance: Any) -> None:
    def chosen(given: Iterable[DiscoveryVendorProfile]) -> object:
        vendors = Vendors(given)
        return vendors.snmp("1.3.6.1.4.1.9.1.5", "Cisco IOS"), dict(vendors.problems)

    shuffled = list(profiles)
    chance.shuffle(shuffled)
    assert chosen(profiles) == chosen(shuffled)


@settings(max_examples=150)
@given(some_profiles)
def test_every_profile_is_used_or_named_as_a_problem(profiles: list[DiscoveryVendorProfile]) -> None:
    vendors = Vendors(profiles)
    assert set(vendors.profiles) | set(vendors.problems) == {each.name for each in profiles}
    assert not set(vendors.profiles) & set(vendors.problems)

"""What is read from what a device said, and which profiles are refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.model import logs
from trimtab.model.objectmeta import ObjectMeta
from trimtab.systems.discovery.kinds import (
    DiscoveryVendorProfile,
    DiscoveryVendorProfileSpec,
    GnmiPath,
    GnmiVendor,
    NetconfVendor,
    SnmpOid,
    SnmpVendor,
    SshCommand,
    SshVendor,
)
from trimtab.systems.discovery.vendors.choice import Vendors, check

NOBODY = Vendors([])


def entry(**fields: Any) -> GnmiPath:
    return GnmiPath(key="version", path="p", **fields)


@pytest.mark.parametrize(
    ("fields", "text", "value"),
    [
        ({}, "v1.2.3", "v1.2.3"),
        ({"regex": r"^v?(\d+\.\d+)"}, "v1.2.3", "1.2"),
        ({"regex": r"\d+\.\d+"}, "v1.2.3", "1.2"),
        ({"regex": r"Release (\S+)"}, "v1.2.3", "v1.2.3"),
        ({"regex": r"Version (\S+)|Release (\S+)"}, "Release 7", "7"),
        ({"regex": r"v(x)?"}, "v1", ""),
        ({"regex": r"Release (\S+)|\z"}, "v1.2.3", ""),
        ({"regex": r"Release (\S+)|\z"}, "a Release 7", "7"),
        ({"transform": "value.upperAscii()"}, "abc", "ABC"),
        ({"regex": r"v(\S+)", "transform": "value.split('.')[0]"}, "v1.2.3", "1"),
        ({"transform": "value.startsWith('v') ? value.substring(1) : value"}, "v9", "9"),
        ({}, "  two\r\nlines\t\x00\x1b[0m ", "two  lines [0m"),
        ({}, "x" * 5000, "x" * 512),
        ({}, "\udcff\u202eok", "?ok"),
        ({"regex": "ø(.)"}, "blåbærgrøt", "t"),
    ],
)
def test_the_regex_cuts_then_cel_transforms_then_it_is_made_safe(fields: dict[str, str], text: str, value: str) -> None:
    assert NOBODY.read(entry(**fields), text) == value


class Recorder:
    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def warning(self, event: str, **values: Any) -> None:
        self.events.append({"event": event, **values})


def test_a_transform_that_fails_gives_nothing_and_is_logged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    monkeypatch.setattr(logs.log, "_logger", recorder)
    failing = entry(transform="value.split('.')[7]")
    vendors = Vendors([_profile(gnmi=GnmiVendor(organization="x", paths=(failing,)))])
    assert [vendors.read(failing, "secret.1.2") for _ in range(3)] == ["", "", ""]
    assert [(event["profile"], event["key"]) for event in recorder.events] == [("it", "version")]
    assert "secret" not in str(recorder.events)


def test_what_fails_is_kept_by_profile_until_it_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs.log, "_logger", Recorder())
    failing = entry(transform="string(1/0)")
    vendors = Vendors([_profile(gnmi=GnmiVendor(organization="x", paths=(failing,)))])
    for _ in range(2):
        vendors.read(failing, "secret")
        assert vendors.failures == {"it": "the transform of version failed: division by zero"}
        vendors.failures.clear()


def test_a_transform_that_costs_too_much_gives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs.log, "_logger", Recorder())
    endless = "[1,2,3,4,5,6,7,8,9].map(a, " * 5 + "value" + ")" * 5 + ".size() > 0 ? value : ''"
    assert NOBODY.read(entry(transform=endless), "x" * 4000) == ""


def test_a_regex_that_would_explode_elsewhere_takes_no_time() -> None:
    assert NOBODY.read(entry(regex="(a+)+$"), "a" * 60000 + "!") == "a" * 512


@given(st.text(max_size=200))
def test_a_value_is_always_one_printable_line(text: str) -> None:
    value = NOBODY.read(entry(), text)
    assert value.isprintable()
    assert value == value.strip()
    value.encode()


def test_entries_of_one_key_are_alternatives_and_the_first_value_wins() -> None:
    first, second, third = (GnmiPath(key="serialNumber", path=path) for path in "abc")
    other = GnmiPath(key="platform", path="d")
    texts = [(first, ""), (second, " \x00"), (third, "S1"), (other, "P")]
    assert NOBODY.values(texts) == {"serialNumber": "S1", "platform": "P"}
    assert NOBODY.values([(first, "S0"), (third, "S1")]) == {"serialNumber": "S0"}


def test_an_entry_whose_regex_matches_goes_before_one_whose_text_stays() -> None:
    model, name = entry(regex=r"Model: (\S+)"), entry(regex=r"cisco (\S+)")
    assert NOBODY.values([(model, "cisco 7206"), (name, "cisco 7206")]) == {"version": "7206"}
    assert NOBODY.values([(model, "7206"), (name, "7206")]) == {"version": "7206"}


def _profile(**blocks: Any) -> DiscoveryVendorProfile:
    return DiscoveryVendorProfile(metadata=ObjectMeta(name="it"), spec=DiscoveryVendorProfileSpec(**blocks))


@pytest.mark.parametrize(
    ("blocks", "path", "detail"),
    [
        ({"extends": "it"}, "spec.extends", "cannot extend itself"),
        ({"gnmi": GnmiVendor(paths=(entry(), entry(regex="(")))}, "spec.gnmi.paths[1].regex", "RE2 refuses it"),
        ({"gnmi": GnmiVendor(paths=(entry(regex="(?<=a)b"),))}, "spec.gnmi.paths[0].regex", "RE2 refuses it"),
        ({"gnmi": GnmiVendor(paths=(entry(transform="value +"),))}, "spec.gnmi.paths[0].transform", "CEL"),
        ({"gnmi": GnmiVendor(paths=(entry(transform="size(value)"),))}, "spec.gnmi.paths[0].transform", "string"),
        ({"gnmi": GnmiVendor(paths=(entry(transform="other"),))}, "spec.gnmi.paths[0].transform", "undeclared"),
        ({"gnmi": GnmiVendor(paths=(GnmiPath(key="version", path="a[b]/c"),))}, "spec.gnmi.paths[0].path", "gNMI path"),
        ({"netconf": NetconfVendor(capability_match="[")}, "spec.netconf.capabilityMatch", "RE2 refuses it"),
        ({"netconf": NetconfVendor(filter="<a>")}, "spec.netconf.filter", "not well-formed"),
        ({"netconf": NetconfVendor(filter="<!DOCTYPE a><a/>")}, "spec.netconf.filter", "no declarations"),
        ({"ssh": SshVendor(banner_match="*")}, "spec.ssh.bannerMatch", "RE2 refuses it"),
        ({"ssh": SshVendor(probe_command="x", probe_match="*")}, "spec.ssh.probeMatch", "RE2 refuses it"),
        ({"ssh": SshVendor(probe_command="x")}, "spec.ssh.probeMatch", "need each other"),
        ({"ssh": SshVendor(probe_match="x")}, "spec.ssh.probeCommand", "need each other"),
        (
            {"ssh": SshVendor(commands=(SshCommand(key="version", command="x", regex="*"),))},
            "spec.ssh.commands[0].regex",
            "RE2 refuses it",
        ),
        ({"snmp": SnmpVendor(object_id="1.3" + ".1" * 127)}, "spec.snmp.objectId", "128 parts at most"),
        ({"snmp": SnmpVendor(object_id="1.40.1")}, "spec.snmp.objectId", "39 at most"),
        (
            {"snmp": SnmpVendor(oids=(SnmpOid(key="version", oid="1.3.4294967296"),))},
            "spec.snmp.oids[0].oid",
            "4294967295 at most",
        ),
        ({"snmp": SnmpVendor(description_match="(")}, "spec.snmp.descriptionMatch", "RE2 refuses it"),
    ],
)
def test_a_mistake_is_found_with_its_path(blocks: dict[str, Any], path: str, detail: str) -> None:
    (error,) = check(_profile(**blocks))
    assert error.path == path
    assert detail in error.detail


def test_every_mistake_is_found_at_once() -> None:
    assert len(check(_profile(gnmi=GnmiVendor(paths=(entry(regex="(", transform="("),)), ssh=SshVendor()))) == 2


def test_the_same_key_twice_is_no_mistake() -> None:
    assert check(_profile(gnmi=GnmiVendor(organization="x", paths=(entry(), entry())))) == []

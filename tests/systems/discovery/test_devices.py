"""From findings to devices."""

from hypothesis import given
from hypothesis import strategies as st

from trimtab.systems.discovery.findings import Identified
from trimtab.systems.discovery.kinds import DiscoveryInfo, Evidence
from trimtab.systems.discovery.targets.devices import Finding, by_address, group

KEYS = ["SHA256:" + letter * 43 for letter in "abc"]


def found(address: str, profile: str = "gnmi", **evidence: str) -> Finding:
    identified = Identified(info=DiscoveryInfo(), evidence=Evidence(**evidence))
    return Finding(address=address, profile=profile, secret="admin", identified=identified)


def test_one_device_at_many_addresses_is_one_device() -> None:
    (device,) = group([found("10.0.0.2", serial_number="FOC1"), found("10.0.0.1", serial_number="foc1")])
    assert device.addresses == ("10.0.0.1", "10.0.0.2")


def test_addresses_are_in_the_order_of_numbers() -> None:
    addresses = ["10.0.0.10", "10.0.0.9", "2001:db8::10", "2001:db8::9", "9.0.0.1"]
    (device,) = group([found(address, serial_number="FOC1") for address in addresses])
    assert device.addresses == ("9.0.0.1", "10.0.0.9", "10.0.0.10", "2001:db8::9", "2001:db8::10")


def test_devices_with_one_host_name_and_other_serial_numbers_are_two() -> None:
    findings = [
        found("10.0.0.1", serial_number="FOC1", hostname="h"),
        found("10.0.0.2", serial_number="FOC2", hostname="h"),
    ]
    assert [device.addresses for device in group(findings)] == [("10.0.0.1",), ("10.0.0.2",)]


def test_devices_with_placeholder_serial_numbers_are_not_merged() -> None:
    findings = [found("10.0.0.1", serial_number="UNKNOWN"), found("10.0.0.2", serial_number="UNKNOWN")]
    assert len(group(findings)) == 2


def test_evidence_of_all_findings_is_the_devices() -> None:
    findings = [
        found("10.0.0.1", "ssh", ssh_host_key=KEYS[0], hostname="leaf1"),
        found("10.0.0.2", "gnmi", serial_number="FOC1", ssh_host_key=KEYS[0]),
    ]
    (device,) = group(findings)
    assert device.evidence == Evidence(serial_number="FOC1", ssh_host_key=KEYS[0], hostname="leaf1")


def test_findings_without_common_evidence_meet_through_a_third() -> None:
    findings = [
        found("10.0.0.1", serial_number="FOC1"),
        found("10.0.0.2", ssh_host_key=KEYS[0]),
        found("10.0.0.3", serial_number="FOC1", ssh_host_key=KEYS[0]),
    ]
    assert len(group(findings)) == 1


def test_the_primary_finding_is_by_the_first_profile_then_by_the_lowest_address() -> None:
    findings = [
        found("10.0.0.1", "snmp", serial_number="FOC1"),
        found("10.0.0.10", "gnmi", serial_number="FOC1"),
        found("10.0.0.9", "gnmi", serial_number="FOC1"),
    ]
    (device,) = group(findings, ["gnmi", "snmp"])
    assert device.primary.address == "10.0.0.9"


def test_clones_stay_apart_and_name_each_other() -> None:
    findings = [
        found("10.0.0.1", serial_number="FOC1", mac_address="1a:b1:05:ff:00:00"),
        found("10.0.0.2", serial_number="FOC1", mac_address="1a:b1:05:ff:00:01"),
    ]
    one, other = group(findings)
    assert (one.conflicts, other.conflicts) == (("10.0.0.2",), ("10.0.0.1",))
    assert one.key != other.key


def test_devices_without_evidence_are_one_an_address() -> None:
    assert [device.key for device in group([found("10.0.0.1"), found("10.0.0.2")])] == ["10.0.0.1", "10.0.0.2"]


def test_an_address_that_was_found_twice_counts_once() -> None:
    (device,) = group([found("10.0.0.1", "snmp"), found("10.0.0.1", "gnmi")], ["gnmi", "snmp"])
    assert device.addresses == ("10.0.0.1",)
    assert device.primary.profile == "gnmi"


def test_nothing_found_is_no_device() -> None:
    assert group([]) == ()


def test_names_come_after_addresses() -> None:
    assert sorted(["a.example", "::1", "10.0.0.1"], key=by_address) == ["10.0.0.1", "::1", "a.example"]


findings = st.lists(
    st.builds(
        found,
        address=st.integers(0, 30).map(lambda n: f"10.0.0.{n}"),
        profile=st.sampled_from(["gnmi", "ssh", "snmp", "other"]),
        serial_number=st.sampled_from(["FOC1", "FOC2", "FOC3", ""]),
        ssh_host_key=st.sampled_from([*KEYS, ""]),
        mac_address=st.sampled_from(["1a:b1:05:ff:00:00", "1a:b1:05:ff:00:01", ""]),
        hostname=st.sampled_from(["leaf1", "leaf2", "router", ""]),
    ),
    max_size=20,
)


@given(findings, st.randoms(use_true_random=False))
def test_the_order_of_findings_does_not_matter(some: list[Finding], chance: object) -> None:
    shuffled = list(some)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert group(some, ["gnmi", "ssh"]) == group(shuffled, ["gnmi", "ssh"])


@given(findings)
def test_every_address_belongs_to_one_device(some: list[Finding]) -> None:
    addresses = [address for device in group(some) for address in device.addresses]
    assert sorted(addresses) == sorted({finding.address for finding in some})


@given(findings)
def test_keys_tell_devices_apart(some: list[Finding]) -> None:
    devices = group(some)
    assert len({device.key for device in devices}) == len(devices)


def test_four_thousand_clones_are_judged_in_bounded_time() -> None:
    keys = [f"SHA256:{number:043}" for number in range(4096)]
    clones = [found(f"10.0.{n // 256}.{n % 256}", serial_number="FOC1", ssh_host_key=key) for n, key in enumerate(keys)]
    assert len(group(clones)) == 4096

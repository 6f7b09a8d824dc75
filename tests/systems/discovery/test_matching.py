"""Which Target each device is."""

from msgspec import UNSET

from trimtab.model.objectmeta import ObjectMeta
from trimtab.systems.discovery.findings import Identified
from trimtab.systems.discovery.kinds import DiscoveryInfo, Evidence, Target, TargetSpec, TargetStatus
from trimtab.systems.discovery.kinds.target import IDENTITY_LABEL
from trimtab.systems.discovery.targets.devices import Finding, group
from trimtab.systems.discovery.targets.matching import How, match

KEYS = ["SHA256:" + letter * 43 for letter in "abc"]


def found(address: str, **evidence: str) -> Finding:
    info = DiscoveryInfo(hostname=evidence.get("hostname", UNSET))
    return Finding(address, "gnmi", "admin", Identified(info=info, evidence=Evidence(**evidence)))


def target(name: str, address: str, label: str = "", **evidence: str) -> Target:
    metadata = ObjectMeta(name=name, labels={IDENTITY_LABEL: label} if label else UNSET)
    info = DiscoveryInfo(hostname=evidence.get("hostname", UNSET))
    status = (
        TargetStatus(identity=Evidence(**evidence), addresses=(address,), discovery_info=info) if evidence else UNSET
    )
    return Target(metadata=metadata, spec=TargetSpec(provider="x", address=address), status=status)


def matched(
    findings: list[Finding], targets: list[Target], *, complete: bool = True, repinned: tuple[str, ...] = ()
) -> list[tuple[str, How]]:
    return [
        (each.target.name if each.target else "", each.how)
        for each in match(group(findings), targets, complete=complete, repinned=repinned.__contains__)
    ]


def test_evidence_goes_before_the_address() -> None:
    targets = [target("a", "10.0.0.1", serial_number="FOC1"), target("b", "10.0.0.2", serial_number="FOC2")]
    assert matched([found("10.0.0.1", serial_number="FOC2")], targets) == [("b", How.SAME)]


def test_stronger_evidence_goes_before_weaker() -> None:
    targets = [target("a", "10.0.0.1", hostname="leaf"), target("b", "10.0.0.2", serial_number="FOC1")]
    assert matched([found("10.0.0.1", serial_number="FOC1", hostname="leaf")], targets) == [("b", How.SAME)]


def test_of_two_devices_that_may_be_one_target_it_is_the_one_at_its_address() -> None:
    findings = [
        found("10.0.0.1", serial_number="FOC1", hostname="leaf"),
        found("10.0.0.2", serial_number="FOC2", hostname="leaf"),
    ]
    assert matched(findings, [target("a", "10.0.0.2", hostname="leaf")]) == [("", How.NEW), ("a", How.SAME)]


def test_a_target_without_identity_is_found_by_its_label_before_its_address() -> None:
    (device,) = group([found("10.0.0.1", serial_number="FOC1")])
    targets = [target("a", "10.0.0.1"), target("b", "10.0.0.9", device.key)]
    assert matched([found("10.0.0.1", serial_number="FOC1")], targets) == [("b", How.UNFINISHED)]


def test_an_address_is_enough_where_nothing_speaks_against_it() -> None:
    assert matched([found("10.0.0.1", serial_number="FOC1")], [target("a", "10.0.0.1", hostname="leaf")]) == [
        ("a", How.ADDRESS)
    ]


def test_a_new_key_at_the_same_address_is_the_same_device() -> None:
    findings = [found("10.0.0.1", serial_number="FOC1", ssh_host_key=KEYS[1])]
    targets = [target("a", "10.0.0.1", serial_number="FOC1", ssh_host_key=KEYS[0])]
    assert matched(findings, targets) == [("a", How.REKEYED)]
    assert matched(findings, targets, complete=False) == [("a", How.WAIT)]


def test_a_new_key_at_another_address_is_a_clone() -> None:
    findings = [found("10.0.0.9", serial_number="FOC1", ssh_host_key=KEYS[1])]
    targets = [target("a", "10.0.0.1", serial_number="FOC1", ssh_host_key=KEYS[0])]
    assert matched(findings, targets) == [("", How.NEW)]


def test_a_key_that_is_accepted_makes_no_other_device_where_the_key_is_all_that_is_known() -> None:
    findings = [found("10.0.0.1", ssh_host_key=KEYS[1])]
    targets = [target("a", "10.0.0.1", ssh_host_key=KEYS[0])]
    assert matched(findings, targets) == [("", How.NEW)]
    assert matched(findings, targets, repinned=("10.0.0.9",)) == [("", How.NEW)]
    assert matched(findings, targets, repinned=("10.0.0.1",)) == [("a", How.REKEYED)]
    assert matched(findings, targets, repinned=("10.0.0.1",), complete=False) == [("a", How.WAIT)]


def test_a_key_that_is_accepted_does_not_make_one_of_two_serial_numbers() -> None:
    findings = [found("10.0.0.1", serial_number="FOC2", ssh_host_key=KEYS[1])]
    targets = [target("a", "10.0.0.1", serial_number="FOC1", ssh_host_key=KEYS[0])]
    assert matched(findings, targets, repinned=("10.0.0.1",)) == [("", How.NEW)]


def test_devices_that_swap_addresses_are_known_by_their_keys_whatever_is_accepted() -> None:
    findings = [found("10.0.0.1", ssh_host_key=KEYS[1]), found("10.0.0.2", ssh_host_key=KEYS[0])]
    targets = [target("a", "10.0.0.1", ssh_host_key=KEYS[0]), target("b", "10.0.0.2", ssh_host_key=KEYS[1])]
    assert matched(findings, targets, repinned=("10.0.0.1", "10.0.0.2")) == [("b", How.SAME), ("a", How.SAME)]


def test_other_hardware_with_the_same_name_and_address_is_judged_at_the_end() -> None:
    findings = [found("10.0.0.1", serial_number="FOC2", hostname="leaf")]
    targets = [target("a", "10.0.0.1", serial_number="FOC1", hostname="leaf")]
    assert matched(findings, targets) == [("a", How.REPLACED)]
    assert matched(findings, targets, complete=False) == [("a", How.WAIT)]


def test_other_hardware_with_another_name_is_new() -> None:
    findings = [found("10.0.0.1", serial_number="FOC2", hostname="spine")]
    assert matched(findings, [target("a", "10.0.0.1", serial_number="FOC1", hostname="leaf")]) == [("", How.NEW)]


def test_a_device_known_by_name_alone_is_renamed_only_when_the_old_name_is_nowhere() -> None:
    targets = [target("a", "10.0.0.1", hostname="leaf")]
    assert matched([found("10.0.0.1", hostname="spine")], targets) == [("a", How.RENAMED)]
    moved = [found("10.0.0.1", hostname="spine"), found("10.0.0.2", hostname="leaf")]
    assert matched(moved, targets) == [("", How.NEW), ("a", How.SAME)]

from __future__ import annotations

from typing import Any

import pytest

from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.resource import Resource
from trimtab.model.scheme import SUFFIX
from trimtab.model.selectors import LabelSelector
from trimtab.systems.discovery.kinds import (
    AddressEntry,
    DefaultSchema,
    DiscoveryRuleIPRange,
    DiscoveryRuleIPRangeSpec,
    PrefixEntry,
    RuleRef,
)
from trimtab.systems.discovery.kinds.range import Requirement, Selector
from trimtab.systems.discovery.problems import source_problems
from trimtab.systems.discovery.scope import implementations
from trimtab.systems.discovery.scope.addresses import Addresses, parse
from trimtab.systems.discovery.scope.implementations import (
    DnsName,
    Entry,
    Implementation,
    IPRanges,
    Pods,
    Services,
    Static,
    find,
    register,
    supported,
)

RANGES = IPRanges()


def ranges(**spec: Any) -> DiscoveryRuleIPRange:
    return DiscoveryRuleIPRange(metadata=ObjectMeta(name="range"), spec=DiscoveryRuleIPRangeSpec(**spec))


def addresses(*texts: str) -> DiscoveryRuleIPRange:
    return ranges(addresses=tuple(AddressEntry(address=text) for text in texts))


def prefixes(*texts: str, excludes: tuple[str, ...] = ()) -> DiscoveryRuleIPRange:
    return ranges(prefixes=tuple(PrefixEntry(prefix=text, excludes=excludes) for text in texts))


def paths(obj: DiscoveryRuleIPRange) -> list[str]:
    return [problem.path for problem in RANGES.problems(obj)]


def test_a_reference_finds_its_implementation() -> None:
    ref = RuleRef(group=f"discovery.{SUFFIX}", version="v1alpha1", kind="DiscoveryRuleIPRange", name="a")
    assert isinstance(find(ref), IPRanges)
    assert find(ref.replace(version="v2")) is None
    assert find(ref.replace(kind="Other")) is None
    assert find(ref.replace(group="discovery.example.com")) is None


def test_a_white_label_has_its_own_group() -> None:
    ref = RuleRef(group="discovery.example.com", version="v1alpha1", kind="DiscoveryRuleIPRange", name="a")
    assert isinstance(find(ref, "example.com"), IPRanges)
    assert supported("example.com") == ("DiscoveryRuleIPRange of discovery.example.com/v1alpha1",)


def test_a_kind_has_one_implementation() -> None:
    with pytest.raises(ValueError, match="DiscoveryRuleIPRange has an implementation already"):
        register(IPRanges())
    assert len(implementations.known()) == 1


class Everywhere(Resource, group="discovery", version="v1alpha1", namespaced=False):
    spec: DiscoveryRuleIPRangeSpec


class Bare(Resource, group="discovery", version="v1alpha1"):
    text: str = ""


class Sites(Implementation[Any]):
    """As little as there can be: its entries are what the test says."""

    def __init__(self, kind: type[Resource] = DiscoveryRuleIPRange, *names: str) -> None:
        self.kind, self._names = kind, names

    def entries(self, obj: Any) -> tuple[Entry, ...]:
        if not self._names:
            raise ValueError("there is no such site")
        return tuple(Entry(name=name, source=DnsName("site.example.com")) for name in self._names)


@pytest.mark.parametrize("kind", [Everywhere, Bare])
def test_a_kind_is_namespaced_and_has_a_spec(kind: type[Resource]) -> None:
    with pytest.raises(ValueError, match=f"{kind.__name__} must be namespaced and have a spec"):
        register(Sites(kind))


def test_an_implementation_needs_no_more_than_entries() -> None:
    sites = Sites(DiscoveryRuleIPRange, "north", "south")
    assert (sites.problems(ranges()), sites.warnings(ranges()), sites.static(ranges())) == ([], (), None)


def test_why_an_object_has_no_entries_is_what_is_wrong_with_it() -> None:
    (problem,) = source_problems(Sites(), ranges())
    assert (problem.path, problem.detail) == ("spec", "there is no such site")


def test_entries_of_one_name_are_refused_for_every_implementation() -> None:
    (problem,) = source_problems(Sites(DiscoveryRuleIPRange, "north", "south", "north"), ranges())
    assert "two entries are called north" in problem.detail


def test_a_name_that_no_status_holds_is_refused_for_every_implementation() -> None:
    (problem,) = source_problems(Sites(DiscoveryRuleIPRange, "x" * 257), ranges())
    assert "has a name of 257 characters, and 256 is the most" in problem.detail


def test_entries_are_what_users_wrote() -> None:
    obj = ranges(
        prefixes=(PrefixEntry(prefix="10.1.0.0/29", excludes=("10.1.0.3",)),),
        addresses=(AddressEntry(address="10.2.0.1", host_name="core"), AddressEntry(address="leaf1.example.com")),
        pod_selector=Selector(match_labels={"app": "router"}),
        service_selector=Selector(match_expressions=(Requirement(key="gnmi", operator="Exists"),)),
        service_domain="cluster.example",
    )
    assert RANGES.problems(obj) == []
    assert RANGES.entries(obj) == (
        Entry(name="10.1.0.0/29", source=Addresses.of(obj.spec.prefixes)),
        Entry(name="10.2.0.1", source=Addresses(parse("10.2.0.1")), host_name="core"),
        Entry(name="leaf1.example.com", source=DnsName("leaf1.example.com")),
        Entry(name="podSelector", source=Pods(LabelSelector.parse("app=router"))),
        Entry(name="serviceSelector", source=Services(LabelSelector.parse("gnmi"), "cluster.example")),
    )


def test_no_two_entries_have_one_name() -> None:
    obj = ranges(prefixes=(PrefixEntry(prefix="10.1.0.5"),), addresses=(AddressEntry(address="10.1.0.5"),))
    assert [entry.name for entry in RANGES.entries(obj)] == ["10.1.0.5", "addresses: 10.1.0.5"]


def test_a_default_schema_means_that_nothing_is_probed() -> None:
    assert RANGES.static(addresses("10.1.0.5")) is None
    static = ranges(
        addresses=(AddressEntry(address="10.1.0.5"),), default_schema=DefaultSchema(provider="srl", version="24.10")
    )
    assert RANGES.static(static) == Static("srl", "24.10")


def test_every_bad_prefix_and_exclude_is_named_by_its_path() -> None:
    obj = ranges(
        prefixes=(
            PrefixEntry(prefix="10.1.0.0/24", excludes=("10.1.0.1", "10.1.0.7/30")),
            PrefixEntry(prefix="10.0.0.0/8"),
            PrefixEntry(prefix="10.1.0.5/24", excludes=("x",)),
        )
    )
    assert paths(obj) == [
        "spec.prefixes[0].excludes[1]",
        "spec.prefixes[1].prefix",
        "spec.prefixes[2].prefix",
        "spec.prefixes[2].excludes[0]",
    ]


def test_a_huge_prefix_is_refused_without_being_listed() -> None:
    (problem,) = RANGES.problems(prefixes("2001:db8::/32"))
    assert "has more than 2^95 hosts, and 1048576 is the most" in problem.detail


def test_all_prefixes_together_are_bounded() -> None:
    assert source_problems(RANGES, prefixes("10.0.0.0/12", "10.16.0.0/12")) == []
    (problem,) = source_problems(RANGES, prefixes("10.0.0.0/12", "10.16.0.0/12", "10.32.0.0/24"))
    assert problem.path == "spec"
    assert problem.detail == "it has 2097402 addresses, and 2097152 is the most: make several rules of them"


def test_what_is_named_twice_counts_once() -> None:
    twice = prefixes("10.0.0.0/12", "10.0.0.0/13", "10.0.0.0-10.15.255.255", "10.16.0.0/13")
    assert source_problems(RANGES, twice) == []


@pytest.mark.parametrize(
    "text", ["10.1.0.5", "2001:db8::5", "leaf1", "leaf1.example.com", "Leaf1.Example.com.", "_gnmi.leaf-1", "1and1.com"]
)
def test_addresses_and_dns_names_are_taken(text: str) -> None:
    assert RANGES.problems(addresses(text)) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("10.1.0.0/24", "give it as a prefix"),
        ("10.1.0.5/32", "give it as a prefix"),
        ("10.1.0.1-10.1.0.3", "give it as a prefix"),
        ("10.1.0.256", "is not an address"),
        ("10.1.0", "is not an address"),
        ("fe80::1%eth0", "has a zone"),
        ("ff02::1", "multicast"),
        ("leaf 1", "neither an address nor a DNS name"),
        ("leaf1..example.com", "neither an address nor a DNS name"),
        ("-leaf1", "neither an address nor a DNS name"),
        ("x" * 64, "neither an address nor a DNS name"),
        ("leaf1:57400", "is not an address"),
    ],
)
def test_any_other_address_is_refused(text: str, says: str) -> None:
    (problem,) = RANGES.problems(addresses(text))
    assert problem.path == "spec.addresses[0].address"
    assert says in problem.detail


def test_a_selector_that_is_none_is_refused() -> None:
    bad = Selector(match_expressions=(Requirement(key="a b", operator="In"),))
    assert paths(ranges(pod_selector=bad, service_selector=bad)) == ["spec.podSelector", "spec.serviceSelector"]


def test_a_service_domain_is_a_domain() -> None:
    assert paths(ranges(service_selector=Selector(), service_domain="a_b")) == ["spec.serviceDomain"]


def test_what_is_hardly_meant_is_warned_of() -> None:
    assert RANGES.warnings(prefixes("10.1.0.0/24", excludes=("10.2.0.1", "10.1.0.0", "2001:db8::1"))) == (
        "spec.prefixes[0].excludes[0]: 10.2.0.1 is not in 10.1.0.0/24, so it excludes nothing",
        "spec.prefixes[0].excludes[2]: 2001:db8::1 is not in 10.1.0.0/24, so it excludes nothing",
    )
    assert RANGES.warnings(ranges(pod_selector=Selector(), service_selector=Selector(match_labels={"a": "b"}))) == (
        "spec.podSelector is empty: every Pod of the namespace is meant",
    )

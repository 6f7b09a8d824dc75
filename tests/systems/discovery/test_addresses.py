from __future__ import annotations

import ipaddress
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.systems.discovery.kinds import PrefixEntry
from trimtab.systems.discovery.scope.addresses import MAX_HOSTS, Addresses, Interval, parse, span


def hosts(*prefixes: str, excludes: tuple[str, ...] = ()) -> list[str]:
    return list(Addresses.of(PrefixEntry(prefix=prefix, excludes=excludes) for prefix in prefixes))


@pytest.mark.parametrize(
    ("text", "first", "last", "count"),
    [
        ("10.1.0.0/24", "10.1.0.1", "10.1.0.254", 254),
        ("10.1.0.0/30", "10.1.0.1", "10.1.0.2", 2),
        ("10.1.0.0/31", "10.1.0.0", "10.1.0.1", 2),
        ("10.1.0.7/32", "10.1.0.7", "10.1.0.7", 1),
        ("10.1.0.7", "10.1.0.7", "10.1.0.7", 1),
        ("10.1.0.0-10.1.0.255", "10.1.0.0", "10.1.0.255", 256),
        ("10.0.0.0/12", "10.0.0.1", "10.15.255.254", 2**20 - 2),
        ("2001:db8::/112", "2001:db8::1", "2001:db8::ffff", 2**16 - 1),
        ("2001:db8::/127", "2001:db8::", "2001:db8::1", 2),
        ("2001:db8::5/128", "2001:db8::5", "2001:db8::5", 1),
        ("2001:db8::9-2001:db8::a", "2001:db8::9", "2001:db8::a", 2),
        ("2001:DB8:0:0::1", "2001:db8::1", "2001:db8::1", 1),
        ("::1", "::1", "::1", 1),
    ],
)
def test_what_is_probed_of_a_text(text: str, first: str, last: str, count: int) -> None:
    addresses = Addresses(parse(text))
    assert (addresses.at(0), addresses.at(len(addresses) - 1), len(addresses)) == (first, last, count)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "write it as 10.1.0.0/24"),
        ("core-sw1", "write it as 10.1.0.0/24"),
        ("10.1.0", "write it as 10.1.0.0/24"),
        ("010.1.0.1", "write it as 10.1.0.0/24"),
        (" 10.1.0.1", "write it as 10.1.0.0/24"),
        ("10.1.0.1-", "write it as 10.1.0.0/24"),
        ("10.1.0.1-10.1.0.2-10.1.0.3", "write it as 10.1.0.0/24"),
        ("10.1.0.5/24", "write 10.1.0.0/24 for the whole prefix, or 10.1.0.5 for that one address"),
        ("2001:db8::5/112", "write 2001:db8::/112 for the whole prefix, or 2001:db8::5 for that one address"),
        ("10.1.0.0/33", "a length from /0 to /32, as 10.1.0.0/24"),
        ("10.1.0.0/255.255.255.0", "a length from /0 to /32"),
        ("10.1.0.0/", "a length from /0 to /32"),
        ("10.1.0.0/+8", "a length from /0 to /32"),
        ("10.1.0.0/٨", "a length from /0 to /32"),
        ("2001:db8::/129", "a length from /0 to /128, as 2001:db8::/112"),
        ("10.1.0.9-10.1.0.5", "write 10.1.0.5-10.1.0.9"),
        ("10.1.0.9-2001:db8::", "from one IPv4 address to another"),
        ("fe80::1%eth0", "has a zone"),
        ("fe80::1", "link-local"),
        ("::ffff:10.1.0.1", "write 10.1.0.1"),
        ("10.0.0.0/11", "has 2097150 hosts, and 1048576 is the most"),
        ("2001:db8::/64", "has more than 2^63 hosts, and 1048576 is the most"),
        ("0.0.0.0/0", "and 1048576 is the most"),
        ("10.0.0.0-10.16.0.0", "has 1048577 hosts"),
        ("0.0.0.0", "mean no device"),
        ("224.0.0.0/24", "multicast"),
        ("255.255.255.255", "broadcast"),
        ("ff02::1", "multicast"),
        ("::", "unspecified"),
    ],
)
def test_a_refusal_says_what_would_be_right(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        parse(text)


def test_a_prefix_may_have_as_many_hosts_as_the_bound() -> None:
    assert Addresses(parse("10.0.0.0-10.15.255.255")).size == MAX_HOSTS
    assert Addresses(parse("2001:db8::/108")).size == MAX_HOSTS - 1


def test_an_exclude_means_all_of_its_addresses() -> None:
    assert hosts("10.1.0.0/28", excludes=("10.1.0.4/30", "10.1.0.9-10.1.0.12", "10.1.0.1")) == [
        "10.1.0.2",
        "10.1.0.3",
        "10.1.0.8",
        "10.1.0.13",
        "10.1.0.14",
    ]


def test_a_huge_exclude_costs_nothing() -> None:
    assert hosts("2001:db8::/120", excludes=("2001:db8::/32",)) == []
    assert len(hosts("10.0.0.0/12", excludes=("10.0.0.0/9",))) == 0


def test_an_exclude_counts_for_its_own_prefix_only() -> None:
    entries = (PrefixEntry(prefix="10.1.0.0/29", excludes=("10.1.0.2",)), PrefixEntry(prefix="10.1.0.2"))
    assert "10.1.0.2" in Addresses.of(entries)


def test_overlaps_and_duplicates_are_probed_once() -> None:
    assert hosts("10.1.0.0/30", "10.1.0.2-10.1.0.4", "10.1.0.2", "10.1.0.0/30") == [
        "10.1.0.1",
        "10.1.0.2",
        "10.1.0.3",
        "10.1.0.4",
    ]


def test_both_families_are_in_one_set_with_ipv4_first() -> None:
    both = Addresses.of((PrefixEntry(prefix="2001:db8::1"), PrefixEntry(prefix="10.1.0.1")))
    assert list(both) == ["10.1.0.1", "2001:db8::1"]
    assert [both.position(text) for text in ("10.1.0.1", "2001:0db8::1", "10.1.0.2")] == [0, 1, None]


@pytest.mark.parametrize("text", ["", "core", "10.1.0", "10.1.0.1\0", "fe80::1%lo", "ü", "1" * 1000])
def test_what_is_no_address_has_no_position(text: str) -> None:
    assert Addresses(parse("10.1.0.0/24")).position(text) is None
    assert text not in Addresses(parse("10.1.0.0/24"))


def test_a_position_beyond_the_set_is_refused() -> None:
    addresses = Addresses(parse("10.1.0.0/30"))
    for position in (-1, 2):
        with pytest.raises(IndexError):
            addresses.at(position)


def test_the_digest_is_that_of_the_addresses_and_not_of_the_text() -> None:
    one = Addresses.of((PrefixEntry(prefix="10.1.0.0-10.1.0.3"), PrefixEntry(prefix="10.1.0.4-10.1.0.7")))
    other = Addresses(parse("10.1.0.0-10.1.0.7"))
    assert (one, one.digest, hash(one)) == (other, other.digest, hash(other))
    assert one.digest != Addresses(parse("10.1.0.0-10.1.0.6")).digest


def test_low_ipv6_addresses_are_written_in_the_usual_form() -> None:
    assert list(Addresses(parse("::1:2-::1:3"))) == ["::1:2", "::1:3"]


def test_finding_the_address_of_a_position_is_fast() -> None:
    addresses = Addresses.of(
        PrefixEntry(prefix=f"10.{i}.0.0/16", excludes=tuple(f"10.{i}.{j}.0/24" for j in range(0, 200, 2)))
        for i in range(8)
    )
    at, positions = addresses.at, range(0, len(addresses), 20)

    def once() -> float:
        began = time.perf_counter()
        for position in positions:
            at(position)
        return (time.perf_counter() - began) / len(positions)

    assert min(once() for _ in range(5)) < 4e-6  # 0.4 µs on a quiet machine


small = st.builds(
    lambda first, size, version: Interval(0x0A000000 + first, 0x0A000000 + first + size, version),
    st.integers(0, 60),
    st.integers(0, 20),
    st.sampled_from([4, 6]),
)
sets = st.lists(small, max_size=6)


def enumerated(intervals: list[Interval]) -> set[str]:
    kinds = {4: ipaddress.IPv4Address, 6: ipaddress.IPv6Address}
    return {str(kinds[i.version](n)) for i in intervals for n in range(i.first, i.last + 1)}


@given(sets, sets)
def test_union_and_difference_are_those_of_sets(left: list[Interval], right: list[Interval]) -> None:
    one, other = Addresses(left), Addresses(right)
    assert set(one | other) == enumerated(left) | enumerated(right)
    assert set(one - other) == enumerated(left) - enumerated(right)


@given(sets)
def test_every_address_has_one_position_and_intervals_do_not_touch(intervals: list[Interval]) -> None:
    addresses = Addresses(intervals)
    listed = list(addresses)
    assert len(listed) == len(set(listed)) == len(addresses)
    assert [addresses.position(text) for text in listed] == list(range(len(addresses)))
    for before, after in zip(addresses.intervals, addresses.intervals[1:], strict=False):
        assert before.version < after.version or before.last + 1 < after.first


@given(sets)
def test_an_interval_reads_as_it_is_written(intervals: list[Interval]) -> None:
    assert all(span(str(interval)) == interval for interval in intervals)


@given(st.ip_addresses().map(str) | st.from_regex(r"\A[0-9]{1,3}(\.[0-9]{1,3}){2,4}\Z|\A[0-9a-f:.]{1,24}\Z"))
def test_an_address_is_what_the_standard_library_takes_for_one(text: str) -> None:
    try:
        known = ipaddress.ip_address(text)
    except ValueError:
        with pytest.raises(ValueError, match="is not an address"):
            span(text)
        return
    if known.version == 6 and known.ipv4_mapped is not None:
        with pytest.raises(ValueError, match="in the form of IPv6"):
            span(text)
        return
    assert span(text) == Interval(int(known), int(known), 4 if known.version == 4 else 6)


@given(st.text(max_size=60) | st.from_regex(r"\A[0-9a-f:./%-]{1,40}\Z"))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = parse(text)
    except ValueError:
        return
    assert all(0 < interval.size <= MAX_HOSTS for interval in found)

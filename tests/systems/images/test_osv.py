"""Ranges of OSV advisories, judged as the schema says; and where each package is looked up."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.systems.images.packages.package import Distro, Package
from trimtab.systems.images.vulnerabilities.ecosystems import Lookup, NoEcosystemError, lookups, stored
from trimtab.systems.images.vulnerabilities.ranges import Event, EventKind, Outcome, Range, judge

KINDS: dict[str, EventKind] = {">=": "introduced", "<": "fixed", "<=": "last_affected", "^": "limit"}


def spans(text: str, kind: str = "ECOSYSTEM") -> Range:
    """`>=0 <1.2` as a range."""
    events = []
    for word in text.split():
        mark = next(mark for mark in (">=", "<=", "<", "^") if word.startswith(mark))
        events.append(Event(KINDS[mark], word[len(mark) :]))
    return Range(kind, tuple(events))


TABLE = [
    # events, version, affected, fixed in
    (">=0 <1.2", "1.1", True, "1.2"),
    (">=0 <1.2", "1.2", False, ""),
    (">=0 <1.2", "0", True, "1.2"),
    (">=0", "99", True, ""),
    (">=1.0 <1.2", "0.9", False, ""),
    (">=1.0 <1.2", "1.0", True, "1.2"),
    (">=1.0 <=1.2", "1.2", True, ""),
    (">=1.0 <=1.2", "1.2.post1", False, ""),
    (">=1.0 <1.2 >=2.0 <2.1", "1.5", False, ""),
    (">=1.0 <1.2 >=2.0 <2.1", "2.0.5", True, "2.1"),
    (">=2.0 <2.1 >=1.0 <1.2", "1.1", True, "1.2"),  # events are sorted, whatever order they are in
    ("<2.1 >=2.0", "2.0", True, "2.1"),
    (">=1.0 <1.2 >=2.0", "3", True, ""),
    (">=1.0 <=1.2 >=2.0 <2.1", "1.1", True, "2.1"),
    (">=1.0 ^1.5", "1.4", True, ""),
    (">=1.0 ^1.5", "1.5", False, ""),
    (">=1.0 ^*", "9", True, ""),
    (">=1.0 ^1.5 ^3", "2", True, ""),
    (">=1.0 <1.0", "1.0", False, ""),
    (">=1.0 <=1.0", "1.0", True, ""),
    ("<1.0", "0.5", False, ""),  # nothing was introduced
]


@pytest.mark.parametrize(("events", "version", "affected", "fixed"), TABLE)
def test_a_range_holds_what_lies_between_its_events(events: str, version: str, affected: bool, fixed: str) -> None:
    verdict = judge("pypi", version, (spans(events),))
    assert verdict.outcome is (Outcome.AFFECTED if affected else Outcome.NOT_AFFECTED)
    assert verdict.fixed == ((fixed,) if fixed else ())


def test_any_range_and_any_listed_version_is_enough() -> None:
    ranges = (spans(">=1.0 <1.2"), spans(">=2.0 <2.5"))
    assert judge("pypi", "2.1", ranges).fixed == ("2.5",)
    assert judge("pypi", "1.7", ranges, ("1.7",)) == (Outcome.AFFECTED, ("2.5",), "")
    assert judge("pypi", "1.8", ranges, ("1.7",)).outcome is Outcome.NOT_AFFECTED


def test_semantic_ranges_are_semantic_whatever_the_ecosystem() -> None:
    assert judge("pypi", "1.0.0-1", (spans(">=0 <1.0.0", "SEMVER"),)).outcome is Outcome.AFFECTED
    assert judge("pypi", "1.0.0-1", (spans(">=0 <1.0.0"),)).outcome is Outcome.NOT_AFFECTED


@pytest.mark.parametrize(
    ("version", "each"),
    [
        ("who knows", spans(">=0 <1.2")),
        ("1.0", spans(">=0 <banana")),
        ("1.0", spans(">=0 <abc123", "GIT")),
        ("1" * 5000, spans(">=0 <1.2")),
    ],
)
def test_what_cannot_be_compared_is_said(version: str, each: Range) -> None:
    verdict = judge("pypi", version, (each,))
    assert verdict.outcome is Outcome.CANNOT_COMPARE
    assert verdict.why


def test_a_version_that_is_listed_is_affected_though_its_range_cannot_be_judged() -> None:
    assert judge("pypi", "custom", (spans(">=0 <1.2"),), ("custom",)).outcome is Outcome.AFFECTED


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=8, unique=True), st.integers(0, 41), st.booleans(), st.randoms()
)
def test_a_range_is_the_union_of_its_parts(marks: list[int], version: int, closed: bool, rnd: object) -> None:
    """Events in turns: introduced, fixed, introduced … over whole numbers, against a count of how many were passed."""
    marks = sorted(marks)
    events: list[Event] = []
    for number, mark in enumerate(marks):
        end: EventKind = "last_affected" if closed else "fixed"
        events.append(Event("introduced" if number % 2 == 0 else end, str(mark)))
    rnd.shuffle(events)  # type: ignore[attr-defined]
    passed = sum(mark < version if closed and number % 2 else mark <= version for number, mark in enumerate(marks))
    outcome = judge("semver", str(version), (Range("SEMVER", tuple(events)),)).outcome
    assert outcome is (Outcome.AFFECTED if passed % 2 else Outcome.NOT_AFFECTED)


def deb(**more: str) -> Package:
    return Package(**({"type": "deb", "name": "libssl3", "version": "3.0.11-1~deb12u2"} | more))


LOOKUPS = [
    (
        deb(source="openssl"),
        Distro("debian", "12"),
        [Lookup("Debian:12", "openssl", "3.0.11-1~deb12u2")],
    ),
    (
        deb(name="libgcc-s1", version="12.2.0-14", source="gcc-12", source_version="12.2.0-14+x"),
        Distro("debian", "12.5"),
        [Lookup("Debian:12", "gcc-12", "12.2.0-14+x")],
    ),
    (
        deb(name="bash", version="5.1-6ubuntu1"),
        Distro("ubuntu", "22.04"),
        [Lookup("Ubuntu:22.04", "bash", "5.1-6ubuntu1")],
    ),
    (
        deb(name="zlib1g", version="1:1.2.11+esm1", source="zlib"),
        Distro("ubuntu", "16.04"),
        [Lookup("Ubuntu:Pro:16.04", "zlib", "1:1.2.11+esm1")],
    ),
    (
        Package(type="apk", name="libcrypto3", version="3.1.4-r1", source="openssl"),
        Distro("alpine", "3.19.1"),
        [Lookup("Alpine:v3.19", "openssl", "3.1.4-r1")],
    ),
    (
        Package(type="apk", name="glibc", version="2.38-r1"),
        Distro("wolfi", "20230201"),
        [Lookup("Wolfi", "glibc", "2.38-r1")],
    ),
    (
        Package(type="rpm", name="openssl-libs", version="1:3.0.7-24.el9", source="openssl-3.0.7-24.el9.src.rpm"),
        Distro("rocky", "9.3"),
        [
            Lookup("Rocky Linux:9", "openssl-libs", "1:3.0.7-24.el9"),
            Lookup("Rocky Linux:9", "openssl", "1:3.0.7-24.el9"),
        ],
    ),
    (
        Package(type="rpm", name="bash", version="5.1.8-6.el9", source="bash"),
        Distro("almalinux", "9.3"),
        [Lookup("AlmaLinux:9", "bash", "5.1.8-6.el9")],
    ),
    (Package(type="rpm", name="bash", version="5-1"), Distro("rhel", "9.4"), [Lookup("Red Hat:9", "bash", "5-1")]),
    (Package(type="rpm", name="bash", version="5-1"), Distro("sles", "15.5"), [Lookup("SUSE:15.5", "bash", "5-1")]),
    (
        Package(type="rpm", name="bash", version="5-1"),
        Distro("opensuse-leap", "15.5"),
        [Lookup("openSUSE:15.5", "bash", "5-1")],
    ),
    (Package(type="pypi", name="Foo.Bar_baz", version="1"), Distro(), [Lookup("PyPI", "foo-bar-baz", "1")]),
    (
        Package(type="npm", name="core", namespace="@babel", version="7.0.0"),
        Distro(),
        [Lookup("npm", "@babel/core", "7.0.0")],
    ),
    (
        Package(type="npm", name="@babel/core", namespace="@babel", version="7"),
        Distro(),
        [Lookup("npm", "@babel/core", "7")],
    ),
    (
        Package(type="golang", name="golang.org/x/net", version="v0.1.0"),
        Distro(),
        [Lookup("Go", "golang.org/x/net", "v0.1.0")],
    ),
    (Package(type="golang", name="stdlib", version="go1.21.5"), Distro(), [Lookup("Go", "stdlib", "go1.21.5")]),
    (
        Package(type="maven", name="log4j-core", namespace="org.apache.logging.log4j", version="2.14.1"),
        Distro(),
        [Lookup("Maven", "org.apache.logging.log4j:log4j-core", "2.14.1")],
    ),
    (Package(type="gem", name="rails", version="7.0.0"), Distro(), [Lookup("RubyGems", "rails", "7.0.0")]),
    (Package(type="cargo", name="time", version="0.1.0"), Distro(), [Lookup("crates.io", "time", "0.1.0")]),
]


@pytest.mark.parametrize(("package", "distro", "want"), LOOKUPS)
def test_a_package_is_looked_up_by_the_name_that_advisories_use(
    package: Package, distro: Distro, want: list[Lookup]
) -> None:
    assert list(lookups(package, distro)) == want


@pytest.mark.parametrize(
    ("package", "distro"),
    [
        (deb(), Distro()),
        (deb(), Distro("debian", "")),
        (deb(), Distro("amzn", "2023")),
        (Package(type="nuget", name="x", version="1"), Distro()),
    ],
)
def test_what_osv_does_not_cover_is_said(package: Package, distro: Distro) -> None:
    with pytest.raises(NoEcosystemError):
        lookups(package, distro)


@pytest.mark.parametrize(
    ("ecosystem", "want"),
    [
        ("Debian:12", "Debian:12"),
        ("Ubuntu:22.04:LTS", "Ubuntu:22.04"),
        ("Ubuntu:Pro:16.04:LTS", "Ubuntu:Pro:16.04"),
        ("Ubuntu:24.10", "Ubuntu:24.10"),
        ("Alpine:v3.19", "Alpine:v3.19"),
        ("Rocky Linux:9", "Rocky Linux:9"),
        ("AlmaLinux:9", "AlmaLinux:9"),
        ("Red Hat:enterprise_linux:9::baseos", "Red Hat:9"),
        ("Red Hat:rhel_eus:9.2::appstream", "Red Hat:rhel_eus:9.2::appstream"),
        ("SUSE:Linux Enterprise Server 15 SP5", "SUSE:15.5"),
        ("SUSE:Linux Enterprise Server 15 SP3-LTSS", "SUSE:15.3"),
        ("SUSE:Linux Enterprise Module for Basesystem 15 SP5", "SUSE:15.5"),
        ("openSUSE:Leap 15.5", "openSUSE:15.5"),
        ("openSUSE:Tumbleweed", "openSUSE:Tumbleweed"),
        ("Maven:https://repo1.maven.org/maven2", "Maven"),
        ("PyPI", "PyPI"),
    ],
)
def test_names_of_products_become_the_release_that_they_share(ecosystem: str, want: str) -> None:
    assert stored(ecosystem) == want

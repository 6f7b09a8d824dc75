"""What a scan finds, joins and admits not to know."""

from __future__ import annotations

import json
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trimtab.systems.images.packages.package import Distro, Package
from trimtab.systems.images.vulnerabilities.importing import import_osv
from trimtab.systems.images.vulnerabilities.matching import SHOWN, scan_file
from trimtab.systems.images.vulnerabilities.report import Finding, Report, Summary, Uncovered

DEBIAN = Distro("debian", "12", "Debian GNU/Linux 12")
LIBSSL = Package(
    type="deb", name="libssl3", version="3.0.11-1~deb12u1", namespace="debian", arch="amd64", source="openssl"
)
Scan = Callable[..., Report]


def osv(name: str, ecosystem: str, package: str, *events: dict[str, str], **more: Any) -> dict[str, Any]:
    affected = {
        "package": {"ecosystem": ecosystem, "name": package},
        "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, *events]}],
    } | more.pop("affected", {})
    return {"id": name, "modified": "2024-01-01T00:00:00Z", "affected": [affected]} | more


@pytest.fixture
def scan(tmp_path: Path) -> Scan:
    """Scans packages with a database of the documents that are given."""

    def run(documents: list[dict[str, Any]], *packages: Package, distro: Distro = DEBIAN) -> Report:
        folder = tmp_path / "osv"
        folder.mkdir()
        for number, document in enumerate(documents):
            (folder / f"{number}.json").write_text(json.dumps(document))
        import_osv(folder, tmp_path / "db")
        return scan_file(packages, distro, tmp_path / "db")

    return run


def findings(report: Report) -> list[Finding]:
    return [finding for result in report.results for finding in result.findings]


def test_a_finding_says_all_that_is_known(scan: Scan) -> None:
    document = osv(
        "DEBIAN-CVE-2023-5678",
        "Debian:12",
        "openssl",
        {"fixed": "3.0.13-1~deb12u1"},
        upstream=["CVE-2023-5678"],
        details="Slow checks.\nMore of it.",
        published="2023-11-06T16:15:00Z",
        references=[{"type": "ADVISORY", "url": "https://example.org/a"}],
        affected={"ecosystem_specific": {"urgency": "low"}},
    )
    package = msgspec.structs.replace(LIBSSL, path="var/lib/dpkg/status", layer="sha256:abc")
    report = scan([document], package)
    assert findings(report) == [
        Finding(
            id="CVE-2023-5678",
            advisories=("DEBIAN-CVE-2023-5678",),
            aliases=("DEBIAN-CVE-2023-5678",),
            title="Slow checks.",
            description="Slow checks.\nMore of it.",
            severity="Low",
            severity_source="Debian urgency",
            package="libssl3",
            purl="pkg:deb/debian/libssl3@3.0.11-1~deb12u1?arch=amd64&distro=debian-12&upstream=openssl",
            path="var/lib/dpkg/status",
            layer="sha256:abc",
            installed_version="3.0.11-1~deb12u1",
            fixed_versions=("3.0.13-1~deb12u1",),
            references=("https://example.org/a",),
            published="2023-11-06T16:15:00Z",
        )
    ]
    assert report.summary == Summary(low=1)
    assert [(result.target, result.kind, result.packages) for result in report.results] == [("debian 12", "os-pkgs", 1)]


CASES = [
    ("Debian:12", "openssl", "3.0.13-1~deb12u1", LIBSSL, DEBIAN),
    (
        "Ubuntu:22.04:LTS",
        "openssl",
        "3.0.2-0ubuntu1.10",
        Package(type="deb", name="libssl3", version="3.0.2-0ubuntu1.9", source="openssl"),
        Distro("ubuntu", "22.04"),
    ),
    (
        "Alpine:v3.19",
        "openssl",
        "3.1.4-r3",
        Package(type="apk", name="libcrypto3", version="3.1.4-r2", source="openssl"),
        Distro("alpine", "3.19.1"),
    ),
    (
        "Rocky Linux:9",
        "openssl",
        "1:3.0.7-25.el9_3",
        Package(type="rpm", name="openssl-libs", version="1:3.0.7-24.el9", source="openssl"),
        Distro("rocky", "9.3"),
    ),
    (
        "AlmaLinux:9",
        "openssl-libs",
        "1:3.0.7-25.el9_3",
        Package(type="rpm", name="openssl-libs", version="1:3.0.7-24.el9", source="openssl"),
        Distro("almalinux", "9.3"),
    ),
    (
        "Red Hat:enterprise_linux:9::baseos",
        "openssl-libs",
        "1:3.0.7-25.el9_3",
        Package(type="rpm", name="openssl-libs", version="1:3.0.7-24.el9"),
        Distro("rhel", "9.3"),
    ),
    (
        "SUSE:Linux Enterprise Module for Basesystem 15 SP5",
        "openssl-1_1",
        "1.1.1l-150500.17.22.1",
        Package(type="rpm", name="libopenssl1_1", version="1.1.1l-150500.17.9.1", source="openssl-1_1"),
        Distro("sles", "15.5"),
    ),
    ("PyPI", "jinja2", "3.1.3", Package(type="pypi", name="Jinja2", version="3.1.2"), Distro()),
    (
        "npm",
        "@babel/traverse",
        "7.23.2",
        Package(type="npm", name="traverse", namespace="@babel", version="7.23.1"),
        Distro(),
    ),
    ("Go", "stdlib", "1.21.5", Package(type="golang", name="stdlib", version="go1.21.4"), Distro()),
    ("Go", "golang.org/x/net", "0.17.0", Package(type="golang", name="golang.org/x/net", version="v0.16.0"), Distro()),
    (
        "Maven",
        "org.apache.logging.log4j:log4j-core",
        "2.15.0",
        Package(type="maven", name="log4j-core", namespace="org.apache.logging.log4j", version="2.14.1"),
        Distro(),
    ),
    ("RubyGems", "rack", "2.2.8.1", Package(type="gem", name="rack", version="2.2.8"), Distro()),
    ("crates.io", "h2", "0.3.24", Package(type="cargo", name="h2", version="0.3.23"), Distro()),
]


@pytest.mark.parametrize(("ecosystem", "name", "fixed", "package", "distro"), CASES)
def test_a_package_is_affected_before_the_fix_and_not_with_it(
    scan: Scan, ecosystem: str, name: str, fixed: str, package: Package, distro: Distro
) -> None:
    mended = msgspec.structs.replace(package, version=fixed)
    report = scan([osv("A-1", ecosystem, name, {"fixed": fixed})], package, mended, distro=distro)
    assert [(finding.installed_version, finding.fixed_versions) for finding in findings(report)] == [
        (package.version, (fixed,))
    ]
    assert report.uncovered == ()


def test_advisories_about_one_cve_are_one_finding(scan: Scan) -> None:
    jinja = Package(type="pypi", name="Jinja2", version="3.1.2")
    report = scan(
        [
            osv(
                "PYSEC-2024-1", "PyPI", "jinja2", {"fixed": "3.1.3"}, aliases=["CVE-2024-22195", "GHSA-h5c8-rqwp-cp95"]
            ),
            osv(
                "GHSA-h5c8-rqwp-cp95",
                "PyPI",
                "Jinja2",
                {"fixed": "3.1.3"},
                aliases=["CVE-2024-22195"],
                summary="Cross-site scripting",
                database_specific={"severity": "MODERATE"},
            ),
        ],
        jinja,
    )
    (finding,) = findings(report)
    assert (finding.id, finding.severity, finding.title) == ("CVE-2024-22195", "Medium", "Cross-site scripting")
    assert finding.advisories == ("GHSA-h5c8-rqwp-cp95", "PYSEC-2024-1")


def test_advisories_without_a_cve_are_joined_by_their_other_names(scan: Scan) -> None:
    report = scan(
        [
            osv("GO-2024-1", "Go", "example.org/x", {"fixed": "1.1.0"}, aliases=["GHSA-1"]),
            osv("GHSA-1", "Go", "example.org/x", {"fixed": "1.1.0"}),
            osv("GHSA-2", "Go", "example.org/x", {"fixed": "1.1.0"}),
        ],
        Package(type="golang", name="example.org/x", version="v1.0.0"),
    )
    assert sorted(finding.advisories for finding in findings(report)) == [("GHSA-1", "GO-2024-1"), ("GHSA-2",)]


def test_an_advisory_of_many_cves_is_a_finding_for_each(scan: Scan) -> None:
    fixed = {"fixed": "3.0.13-1~deb12u1"}
    high = {"severity": "HIGH"}
    report = scan(
        [
            osv(
                "DSA-1-1",
                "Debian:12",
                "openssl",
                fixed,
                upstream=["CVE-2023-0001", "CVE-2023-0002"],
                database_specific=high,
            ),
            osv("DEBIAN-CVE-2023-0001", "Debian:12", "openssl", fixed, upstream=["CVE-2023-0001"]),
            osv("DSA-2-1", "Debian:12", "openssl", fixed, upstream=["CVE-2023-0002", "CVE-2023-0003"]),
        ],
        LIBSSL,
    )
    assert [(finding.id, finding.severity, finding.aliases) for finding in findings(report)] == [
        ("CVE-2023-0001", "High", ("DEBIAN-CVE-2023-0001", "DSA-1-1")),
        ("CVE-2023-0002", "High", ("DSA-1-1", "DSA-2-1")),
        ("CVE-2023-0003", "Unknown", ("DSA-2-1",)),
    ]


def test_findings_are_sorted_with_the_worst_first_and_counted(scan: Scan) -> None:
    words = ("LOW", "CRITICAL", "HIGH", "", "MODERATE", "HIGH")
    documents = [
        osv(f"GHSA-{n}", "npm", "x", {"fixed": "2.0.0"}, database_specific={"severity": word})
        for n, word in enumerate(words)
    ]
    report = scan(documents, Package(type="npm", name="x", version="1.0.0"))
    assert [finding.id for finding in findings(report)] == ["GHSA-1", "GHSA-2", "GHSA-5", "GHSA-4", "GHSA-0", "GHSA-3"]
    assert report.summary == Summary(critical=1, high=2, medium=1, low=1, unknown=1)


def test_a_package_at_two_paths_has_a_finding_at_each(scan: Scan) -> None:
    places = [Package(type="npm", name="x", version="1.0.0", path=f"app/{n}/package.json") for n in "ab"]
    report = scan([osv("GHSA-1", "npm", "x", {"fixed": "2.0.0"})], *places)
    assert [finding.path for finding in findings(report)] == ["app/a/package.json", "app/b/package.json"]


def test_a_version_that_cannot_be_compared_is_reported_and_not_called_safe(scan: Scan) -> None:
    report = scan(
        [osv("GHSA-1", "npm", "x", {"fixed": "2.0.0"}), osv("GHSA-2", "npm", "y", {"fixed": "2.0.0"})],
        Package(type="npm", name="x", version="workspace"),
        Package(type="npm", name="y", version="3.0.0"),
    )
    assert findings(report) == []
    (doubt,) = report.not_comparable
    assert (doubt.package, doubt.version, doubt.advisory) == ("x", "workspace", "GHSA-1")
    assert report.not_comparable_count == 1


def test_all_doubts_are_counted_and_the_first_are_named(scan: Scan) -> None:
    documents = [osv(f"GHSA-{n}", "npm", "x", {"fixed": "2.0.0"}) for n in range(SHOWN)]
    report = scan(
        documents, Package(type="npm", name="x", version="one"), Package(type="npm", name="x", version="two", path="b")
    )
    assert (len(report.not_comparable), report.not_comparable_count) == (SHOWN, 2 * SHOWN)


def test_what_the_database_does_not_cover_is_said(scan: Scan) -> None:
    report = scan(
        [osv("GHSA-1", "npm", "x", {"fixed": "2.0.0"})],
        LIBSSL,
        msgspec.structs.replace(LIBSSL, name="libcrypto3"),
        Package(type="npm", name="z", version="1.0.0"),
    )
    assert report.uncovered == (Uncovered(type="deb", packages=2, why="the database has no advisories for Debian:12"),)


def test_an_image_that_does_not_say_its_release_is_not_called_safe(scan: Scan) -> None:
    report = scan([osv("A", "Debian:12", "openssl")], LIBSSL, distro=Distro("debian"))
    assert [each.packages for each in report.uncovered] == [1]


def test_a_scan_can_be_given_to_another_process(scan: Scan, tmp_path: Path) -> None:
    here = scan([osv("A", "Debian:12", "openssl")], LIBSSL)
    assert pickle.loads(pickle.dumps(here)) == here
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        there = pool.submit(scan_file, [LIBSSL], DEBIAN, tmp_path / "db").result()
    assert there == here


def test_the_same_scan_gives_the_same_bytes(scan: Scan, tmp_path: Path) -> None:
    report = scan([osv("A", "Debian:12", "openssl"), osv("B", "Debian:12", "openssl")], LIBSSL)
    again = scan_file([LIBSSL], DEBIAN, tmp_path / "db")
    assert msgspec.json.encode(report) == msgspec.json.encode(again)
    assert msgspec.json.decode(msgspec.json.encode(report), type=Report) == report

"""OpenVEX: which statements suppress which findings, and which documents are refused."""

from __future__ import annotations

import contextlib
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.systems.images.packages.package import Package
from trimtab.systems.images.vulnerabilities.report import Finding, Report, Result, Summary, summarize
from trimtab.systems.images.vulnerabilities.vex import VexError, apply, means, parse, purl_parts, read_repository

NET = "pkg:golang/golang.org/x/net@v0.16.0"
IMAGE = "pkg:oci/app@sha256%3Aabc?repository_url=registry.example.org/team/app"


def vex(*statements: dict[str, Any], **more: Any) -> bytes:
    document = {
        "@context": "https://openvex.dev/ns/v0.2.0",
        "@id": "https://example.org/vex-1",
        "author": "The vendor",
        "timestamp": "2024-01-01T00:00:00Z",
        "version": 1,
        "statements": list(statements),
    }
    return json.dumps(document | more).encode()


def says(
    status: str = "not_affected", product: str = NET, *parts: str, name: str = "CVE-2024-0001", **more: Any
) -> dict[str, Any]:
    statement: dict[str, Any] = {
        "vulnerability": {"name": name},
        "products": [{"@id": product, "subcomponents": [{"@id": part} for part in parts]}],
        "status": status,
    }
    if status == "not_affected":
        statement["justification"] = "vulnerable_code_not_in_execute_path"
    return statement | more


def report_of(*findings: Finding) -> Report:
    result = Result(target="Go", kind="lang-pkgs", type="golang", packages=len(findings), findings=findings)
    return Report(results=(result,), summary=summarize(findings))


def finding(purl: str = NET, name: str = "CVE-2024-0001", path: str = "app", **more: Any) -> Finding:
    defaults: dict[str, Any] = {"aliases": ("GHSA-1", "GO-2024-1"), "severity": "High", "package": "x"}
    return Finding(
        id=name, advisories=("GO-2024-1",), purl=purl, path=path, installed_version="v0.16.0", **defaults | more
    )


def is_suppressed(*documents: bytes, purl: str = NET, **more: Any) -> bool:
    report = apply(report_of(finding(purl)), [parse(document) for document in documents], **more)
    return report.results[0].findings[0].suppressed


def test_a_suppressed_finding_stays_with_who_said_so() -> None:
    statement = says(impact_statement="never called", timestamp="2024-02-01T00:00:00Z")
    report = apply(report_of(finding(), finding(name="CVE-2024-0002", aliases=())), [parse(vex(statement))])
    first, second = report.results[0].findings
    assert report.summary == Summary(high=1, suppressed=1)
    assert first.vex is not None
    assert msgspec.to_builtins(first.vex) == {
        "status": "not_affected",
        "justification": "vulnerable_code_not_in_execute_path",
        "statement": "never called",
        "author": "The vendor",
        "document": "https://example.org/vex-1",
        "timestamp": "2024-02-01T00:00:00.000000Z",
    }
    assert (second.suppressed, second.vex) == (False, None)


@pytest.mark.parametrize(
    ("status", "suppressed"),
    [("not_affected", True), ("fixed", True), ("affected", False), ("under_investigation", False)],
)
def test_only_not_affected_and_fixed_suppress(status: str, suppressed: bool) -> None:
    report = apply(report_of(finding()), [parse(vex(says(status)))])
    (one,) = report.results[0].findings
    assert one.suppressed is suppressed
    assert one.vex is not None
    assert one.vex.status == status


@pytest.mark.parametrize("name", ["CVE-2024-0001", "GHSA-1", "GO-2024-1"])
def test_a_vulnerability_is_known_by_any_of_its_names(name: str) -> None:
    assert is_suppressed(vex(says(name=name)))
    assert is_suppressed(vex(says(name="X-1") | {"vulnerability": {"name": "X-1", "aliases": [name]}}))
    assert is_suppressed(vex(says() | {"vulnerability": {"@id": f"https://example.org/vuln/{name}"}}))
    assert is_suppressed(vex(says() | {"vulnerability": name}))


PRODUCTS = [
    ("pkg:golang/golang.org/x/net", True),
    ("pkg:golang/golang.org/x/net@v0.16.0", True),
    ("pkg:golang/golang.org/x/net@0.16.0", True),
    ("pkg:golang/golang.org/x/net@v0.17.0", False),
    ("pkg:golang/golang.org/x/crypto", False),
    ("pkg:golang/golang.org/x", False),
    ("pkg:golang/golang.org/x/net?os=linux", False),
    ("pkg:npm/net", False),
    (IMAGE, True),
    ("pkg:oci/app", True),
    ("pkg:oci/app?repository_url=registry.example.org/team/app", True),
    ("pkg:oci/app?repository_url=elsewhere.example.org/app", False),
    ("pkg:oci/app@sha256%3Adef", False),
    ("https://example.org/product", False),
]


@pytest.mark.parametrize(("product", "suppressed"), PRODUCTS)
def test_a_product_is_the_package_or_the_image(product: str, suppressed: bool) -> None:
    assert is_suppressed(vex(says("not_affected", product)), image=[IMAGE]) is suppressed


@pytest.mark.parametrize(
    ("parts", "suppressed"),
    [((NET,), True), (("pkg:golang/golang.org/x/net", "pkg:npm/a"), True), (("pkg:golang/golang.org/x/text",), False)],
)
def test_subcomponents_say_which_packages_of_the_image_are_meant(parts: tuple[str, ...], suppressed: bool) -> None:
    assert is_suppressed(vex(says("not_affected", "pkg:oci/app", *parts)), image=[IMAGE]) is suppressed


def test_a_package_may_be_part_of_another_one_at_the_same_path_only() -> None:
    document = vex(says("not_affected", "pkg:golang/example.org/tool", NET))
    tool = Package(type="golang", name="example.org/tool", version="(devel)", path="app")
    assert is_suppressed(document, packages=[tool])
    assert not is_suppressed(document, packages=[msgspec.structs.replace(tool, path="other")])
    assert not is_suppressed(document)


def test_qualifiers_that_are_stated_must_be_so() -> None:
    own = "pkg:deb/debian/libssl3@3.0.11-1?arch=amd64&distro=debian-12"
    for stated, want in [
        ("pkg:deb/debian/libssl3?distro=debian-12", True),
        ("pkg:deb/debian/libssl3?arch=arm64", False),
        ("pkg:deb/Debian/libssl3", True),
        ("pkg:deb/ubuntu/libssl3", False),
    ]:
        assert is_suppressed(vex(says("not_affected", stated)), purl=own) is want


def test_the_go_release_may_be_written_as_a_module_version() -> None:
    own = "pkg:golang/stdlib@go1.21.4"
    assert is_suppressed(vex(says("not_affected", "pkg:golang/stdlib@v1.21.4")), purl=own)
    assert not is_suppressed(vex(says("not_affected", "pkg:golang/stdlib@v1.21.5")), purl=own)


def test_the_latest_statement_counts_whatever_the_order() -> None:
    first = vex(says(timestamp="2024-01-01T00:00:00Z"))
    later = vex(says("affected", timestamp="2024-01-01T02:00:00+01:00"), **{"@id": "https://example.org/2"})
    last = vex(says("fixed", timestamp="2024-01-01T00:30:00Z"), **{"@id": "https://example.org/3"})
    assert not is_suppressed(first, later, last)
    assert not is_suppressed(last, later, first)
    assert is_suppressed(first, last)


def test_a_later_version_of_a_document_takes_the_place_of_the_earlier() -> None:
    assert not is_suppressed(vex(says()), vex(version=2))
    assert not is_suppressed(vex(version=2), vex(says()))
    assert is_suppressed(vex(says()), vex(version=2, **{"@id": "https://example.org/other"}))


def test_at_the_same_time_the_higher_version_counts() -> None:
    higher = vex(says("affected"), version=2, **{"@id": "https://example.org/0"})
    assert not is_suppressed(vex(says()), higher)
    assert not is_suppressed(higher, vex(says()))


def test_applying_again_forgets_what_was_said_before() -> None:
    document = parse(vex(says()))
    plain = report_of(finding())
    once = apply(plain, [document])
    assert apply(once, [document]) == once
    assert apply(once, []) == plain


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (says() | {"status": "harmless"}, "status"),
        (says() | {"justification": None}, "without a justification"),
        (says() | {"products": []}, "no product"),
        (says() | {"vulnerability": {}}, "no vulnerability"),
    ],
)
def test_a_statement_that_breaks_the_rules_is_named_and_suppresses_nothing(statement: dict[str, Any], why: str) -> None:
    document = parse(vex(statement, says(name="CVE-2024-0002")))
    assert len(document.statements) == 1
    assert why in document.problems[0]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"@context": "https://example.org"}',
        b"\xff\xfe",
        b'{"a":' * 100_000,
        b" " * ((16 << 20) + 1),
    ],
)
def test_what_is_no_openvex_document_is_refused(content: bytes) -> None:
    with pytest.raises(VexError):
        parse(content)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 1 << 30))
def test_no_damage_breaks_the_parser(seed: int) -> None:
    rnd = random.Random(seed)
    content = bytearray(vex(says(), says("fixed", "pkg:oci/app", NET)))
    for _ in range(rnd.randrange(1, 8)):
        at = rnd.randrange(len(content))
        content[at : at + rnd.randrange(4)] = bytes(rnd.choices(b'"{}[]:,019ax\\\xff', k=rnd.randrange(4)))
    with contextlib.suppress(VexError):
        apply(report_of(finding()), [parse(bytes(content))], image=[IMAGE])


@settings(max_examples=100, deadline=None)
@given(st.text("pkg:/@?&=#%40anx.", max_size=30))
def test_a_package_url_means_itself(text: str) -> None:
    purl = purl_parts("pkg:" + text)
    assert purl is None or means(purl, purl)


def _repository(folder: Path) -> Path:
    files = {
        "vex-repository.json": json.dumps({"name": "Hub", "versions": [{"spec_version": "0.1"}]}).encode(),
        "index.json": json.dumps(
            {
                "updated_at": "2024-01-01T00:00:00Z",
                "packages": [
                    {"id": "pkg:golang/a", "location": "pkg/golang/a/vex.json"},
                    {"id": "pkg:golang/b", "location": "pkg/golang/b/csaf.json", "format": "csaf"},
                    {"id": "pkg:golang/c", "location": "../../secret.json", "format": "openvex"},
                    {"id": "pkg:golang/d", "location": "pkg/golang/d/broken.json"},
                ],
            }
        ).encode(),
        "pkg/golang/a/vex.json": vex(says()),
        "pkg/golang/b/csaf.json": b"{}",
        "pkg/golang/d/broken.json": b"{",
        "pkg/golang/e/unlisted.json": vex(says()),
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def test_a_repository_gives_the_documents_of_its_index(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_bytes(vex(says()))
    folder = _repository(tmp_path / "x" / "hub")
    repository = read_repository(folder)
    assert (repository.name, len(repository.documents)) == ("Hub", 1)
    assert [text.partition(":")[0] for text in repository.skipped] == [
        "pkg/golang/b/csaf.json",
        "pkg/golang/d/broken.json",
        "../../secret.json",
    ]


def test_a_repository_may_be_the_zip_file_of_a_branch(tmp_path: Path) -> None:
    folder = _repository(tmp_path / "hub")
    with zipfile.ZipFile(tmp_path / "main.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in folder.rglob("*.json"):
            archive.write(path, f"hub-main/{path.relative_to(folder)}")
    assert read_repository(tmp_path / "main.zip") == read_repository(folder)


def test_without_an_index_every_document_counts(tmp_path: Path) -> None:
    folder = _repository(tmp_path / "hub")
    (folder / "index.json").unlink()
    assert len(read_repository(folder).documents) == 2


def test_a_single_file_is_a_repository_too(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_bytes(vex(says()))
    assert len(read_repository(tmp_path / "one.json").documents) == 1


def test_a_broken_index_is_an_error(tmp_path: Path) -> None:
    folder = _repository(tmp_path / "hub")
    (folder / "index.json").write_bytes(b"[]")
    with pytest.raises(VexError, match=r"index\.json"):
        read_repository(folder)


def test_a_time_that_is_none_is_named_and_the_statement_counts() -> None:
    statements = says(timestamp="yesterday"), says(last_updated="2024-02-30T00:00:00Z")
    document = parse(vex(*statements, timestamp="nonsense"))
    assert [each.split(" is no time")[0] for each in document.problems] == [
        "its timestamp 'nonsense'",
        "statement 0: its timestamp 'yesterday'",
        "statement 1: its last_updated '2024-02-30T00:00:00Z'",
    ]
    assert [each.timestamp for each in document.statements] == ["", ""]

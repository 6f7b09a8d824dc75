"""`trimtab images sbom` and `report`: from the name that a person knows to the document behind it."""

from __future__ import annotations

import json
import os
import pty

import pytest

from tests.cli.conftest import Program
from tests.cli.images_kit import NOON, Shelf, condition
from trimtab.client.api import ApiClient
from trimtab.systems.images.kinds import ImageStatus
from trimtab.systems.images.vulnerabilities.report import (
    Finding,
    NotComparable,
    Report,
    Result,
    Uncovered,
    Vex,
    summarize,
)


@pytest.fixture
def shelf(images_client: ApiClient, images: Program) -> Shelf:
    return Shelf(images_client, images.namespace, images.folder / "blobs")


# an SBOM


async def test_an_sbom_is_printed_by_the_name_of_the_image_and_by_its_tag(images: Program, shelf: Shelf) -> None:
    image = await shelf.image()
    await shelf.sbom(image)
    for name in (image.name, "team/app:1.0", "lab.example.com/team/app:1.0", f"team/app@{image.spec.digest}"):
        ran = images("images", "sbom", name)
        assert (ran.code, ran.out, ran.err) == (0, '{"spdxVersion":"SPDX-2.3"}', "")


async def test_the_other_format_is_cyclonedx(images: Program, shelf: Shelf) -> None:
    await shelf.sbom(await shelf.image())
    ran = images("images", "sbom", "team/app:1.0", "--format", "cyclonedx")
    assert ran.out == '{"bomFormat":"CycloneDX"}'


async def test_an_sbom_goes_into_a_file_byte_for_byte(images: Program, shelf: Shelf) -> None:
    document = '{"name":"größe"}'.encode()
    await shelf.sbom(await shelf.image(), spdx=document)
    ran = images("images", "sbom", "team/app:1.0", "-o", "app.spdx.json")
    assert (ran.code, ran.out) == (0, "")
    assert (images.folder / "app.spdx.json").read_bytes() == document
    assert "3 packages" in ran.err


async def test_of_several_platforms_one_must_be_chosen(images: Program, shelf: Shelf) -> None:
    await shelf.sbom(await shelf.image(number=1, platform="linux/amd64"), spdx=b"amd")
    await shelf.sbom(await shelf.image(number=2, platform="linux/arm64/v8"), spdx=b"arm")
    ran = images("images", "sbom", "team/app:1.0")
    assert ran.code == 2
    assert "team/app:1.0 is several images, choose with --platform: linux/amd64 of registry lab" in ran.err
    assert "linux/arm64/v8 of registry lab" in ran.err
    assert images("images", "sbom", "team/app:1.0", "--platform", "linux/arm64").out == "arm"
    ran = images("images", "sbom", "team/app:1.0", "--platform", "linux/arm")
    assert ran.code == 3
    assert "is there, but not so" in ran.err


async def test_of_several_registries_one_must_be_chosen(images: Program, shelf: Shelf) -> None:
    await shelf.sbom(await shelf.image(registry="lab"), spdx=b"lab")
    await shelf.sbom(await shelf.image(registry="mirror"), spdx=b"mirror")
    ran = images("images", "sbom", "team/app:1.0")
    assert ran.code == 2
    assert "choose with --registry" in ran.err
    assert images("images", "sbom", "team/app:1.0", "--registry", "mirror").out == "mirror"
    assert images("images", "sbom", "mirror.example.com/team/app:1.0").out == "mirror"


async def test_a_tag_that_moved_is_what_it_points_to_now(images: Program, shelf: Shelf) -> None:
    await shelf.sbom(await shelf.image(number=1, status=ImageStatus(missing_since=NOON)), spdx=b"before")
    await shelf.sbom(await shelf.image(number=2), spdx=b"now")
    assert images("images", "sbom", "team/app:1.0").out == "now"


async def test_an_image_that_is_not_there_has_its_exit_code(images: Program, shelf: Shelf) -> None:
    for name in ("team/app:1.0", "nobody"):
        ran = images("images", "sbom", name)
        assert ran.code == 3
        assert "`trimtab get images` lists those that are" in ran.err


async def test_a_repository_without_a_tag_is_no_image(images: Program) -> None:
    ran = images("images", "sbom", "team/app")
    assert ran.code == 2
    assert "team/app names no tag: write team/app:TAG" in ran.err


async def test_an_image_without_an_sbom_says_why(images: Program, shelf: Shelf) -> None:
    failed = condition("Ready", "False", "DigestMismatch", "a layer is damaged")
    await shelf.image("bad", number=1, status=ImageStatus(conditions=(failed,)))
    ran = images("images", "sbom", "team/app:bad")
    assert ran.code == 3
    assert "team/app:bad has no SBOM: DigestMismatch: a layer is damaged" in ran.err
    await shelf.image("new", number=2)
    assert "it is not made yet" in images("images", "sbom", "team/app:new").err


async def test_a_document_that_is_elsewhere_says_so(images: Program, shelf: Shelf) -> None:
    await shelf.sbom(await shelf.image())
    ran = images("images", "sbom", "team/app:1.0", "--blobs", "elsewhere")
    assert ran.code == 1
    assert "the SBOM of team/app:1.0 cannot be read: it is not there: are these the blobs of this server?" in ran.err


# a report


def finding(number: str, severity: str, package: str, **more: object) -> Finding:
    return Finding(
        id=f"CVE-2026-{number}",
        advisories=(f"DEBIAN-CVE-2026-{number}",),
        severity=severity,
        package=package,
        purl=f"pkg:deb/debian/{package}@1",
        installed_version="1",
        **more,  # type: ignore[arg-type]
    )


VEX = Vex(status="not_affected", justification="component_not_present", author="Vendor", document="https://v.example/1")
FINDINGS = (
    finding("0003", "Low", "zlib", path="var/lib/dpkg/status"),
    finding("0001", "Critical", "openssl", fixed_versions=("2", "3", "4", "5"), path="var/lib/dpkg/status"),
    finding("0002", "High", "bash", fixed_versions=("1.1",)),
    finding("0004", "High", "curl", suppressed=True, vex=VEX),
)
REPORT = Report(
    results=(Result(target="debian 12", kind="os-pkgs", type="deb", packages=4, findings=FINDINGS),),
    summary=summarize(FINDINGS),
    not_comparable=(
        NotComparable(package="odd", version="?", purl="pkg:pypi/odd", advisory="PYSEC-1", why="it is no version"),
    ),
    not_comparable_count=2,
    uncovered=(Uncovered(type="golang", packages=12, why="the database has nothing of Go"),),
)


@pytest.fixture
async def reported(images: Program, shelf: Shelf) -> Program:
    image = await shelf.image()
    await shelf.sbom(image)
    await shelf.report(image, REPORT)
    return images


async def test_a_report_has_the_worst_first_then_its_summary_and_what_was_not_checked(reported: Program) -> None:
    ran = reported("images", "report", "team/app:1.0")
    assert ran.code == 0
    assert ran.lines == [
        "SEVERITY   ID              PACKAGE   INSTALLED   FIXED        PATH",
        "Critical   CVE-2026-0001   openssl   1           2, 3, 4, …   var/lib/dpkg/status",
        "High       CVE-2026-0002   bash      1           1.1",
        "Low        CVE-2026-0003   zlib      1                        var/lib/dpkg/status",
        "1 Critical, 1 High, 0 Medium, 1 Low, 0 Unknown, 1 suppressed; --all shows them",
        f"scanned at {NOON} with the database sha256:dddddddddddd",
        "not checked: 12 packages of type golang: the database has nothing of Go",
        "not comparable: odd ? with PYSEC-1: it is no version",
        "and 1 more versions cannot be compared: -o json has the first 1",
    ]


async def test_only_findings_as_bad_as_asked_for_are_listed_and_all_are_counted(reported: Program) -> None:
    ran = reported("images", "report", "team/app:1.0", "--severity", "high")
    assert [line.split()[0] for line in ran.lines[1:4]] == ["Critical", "High", "1"]
    assert "1 Low" in ran.out


async def test_suppressed_findings_come_last_with_who_said_so(reported: Program) -> None:
    ran = reported("images", "report", "team/app:1.0", "--all")
    assert ran.lines[4].startswith("High       CVE-2026-0004   curl")
    assert ran.lines[4].endswith("not_affected (component_not_present) by Vendor in https://v.example/1")


async def test_a_report_in_json_is_the_document_with_the_findings_that_are_asked_for(reported: Program) -> None:
    ran = reported("images", "report", "team/app:1.0", "-o", "json", "--severity", "critical")
    document = json.loads(ran.out)
    assert [one["id"] for one in document["results"][0]["findings"]] == ["CVE-2026-0001"]
    assert document["summary"]["suppressed"] == 1
    whole = json.loads(reported("images", "report", "team/app:1.0", "-o", "json", "--all").out)
    assert len(whole["results"][0]["findings"]) == 4


async def test_a_terminal_has_colours_by_severity(reported: Program) -> None:
    ours, its = pty.openpty()
    process = reported.installed("images", "report", "team/app:1.0", stdout=its, env={**reported.env, "TERM": "xterm"})
    os.close(its)
    seen = b""
    while b"Unknown" not in seen:
        seen += os.read(ours, 65536)
    assert b"\x1b[1;31mCritical\x1b[0m" in seen
    assert b"\x1b[31mHigh    \x1b[0m" in seen
    assert process.wait(timeout=30) == 0
    os.close(ours)


async def test_an_image_without_a_report_says_why(images: Program, shelf: Shelf) -> None:
    image = await shelf.image("new", number=1)
    ran = images("images", "report", "team/app:new")
    assert ran.code == 3
    assert "team/app:new has no report: it has no SBOM yet" in ran.err
    await shelf.sbom(image)
    assert "`trimtab images import-db --show` says whether" in images("images", "report", "team/app:new").err
    other = await shelf.image("other", number=2)
    await shelf.sbom(other, conditions=(condition("Scanned", "False", "NoDatabase", "import one"),))
    assert "has no report: NoDatabase: import one" in images("images", "report", "team/app:other").err


async def test_a_report_without_findings_says_that_too(images: Program, shelf: Shelf) -> None:
    image = await shelf.image()
    await shelf.report(image, Report(results=(), summary=summarize(())))
    ran = images("images", "report", "team/app:1.0")
    assert ran.lines[0] == "0 Critical, 0 High, 0 Medium, 0 Low, 0 Unknown"


async def test_what_a_document_says_cannot_steer_a_terminal(images: Program, shelf: Shelf) -> None:
    image = await shelf.image()
    evil = (finding("0001", "High", "a\x1b[2J", path="x\ny"),)
    await shelf.report(
        image,
        Report(results=(Result(target="", kind="", type="", packages=1, findings=evil),), summary=summarize(evil)),
    )
    ran = images("images", "report", "team/app:1.0")
    assert "\x1b" not in ran.out
    assert len(ran.lines) == 4


def test_a_severity_that_nobody_knows_is_refused(bare: Program) -> None:
    ran = bare("images", "report", "team/app:1.0", "--severity", "dire")
    assert ran.code == 2

"""An inventory, a database and VEX statements in; a report out. For a worker process, which takes and gives bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from trimtab.systems.images import vex_store
from trimtab.systems.images.kinds.image import Severities, TopFinding
from trimtab.systems.images.layers.image import Inventory
from trimtab.systems.images.vulnerabilities import severity, vex
from trimtab.systems.images.vulnerabilities.matching import scan_file
from trimtab.systems.images.vulnerabilities.report import Finding, Report

MOST_TOP = 20


class Unreadable(ValueError):  # noqa: N818 - it reads as what happened
    """The inventory is of another version, or none at all."""


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """The report as a document, and what its resource says of it. `database` is the digest of what was read, and
    `left_out` counts the sources of VEX statements that say too much of what was found."""

    document: bytes
    database: str
    summary: Severities
    top: tuple[TopFinding, ...]
    not_checked: int
    not_comparable: int
    left_out: int = 0


def examine(inventory: bytes, database: Path, statements: tuple[Path, ...], image: tuple[str, ...]) -> Examined:
    """`statements` are files of `vex_store`, `image` are package URLs that mean it. Unreadable, DatabaseError."""
    try:
        found = msgspec.msgpack.decode(inventory, type=Inventory)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Unreadable("the inventory of the SBOM cannot be read by this version") from None
    report = scan_file(found.packages, found.distro, database)
    names = {name for finding in _findings(report) for name in (finding.id, *finding.aliases)}
    left_out: tuple[Path, ...] = ()
    if statements and names:
        documents, left_out = vex_store.load(statements, names)
        report = vex.apply(report, documents, image=image, packages=found.packages)
    return Examined(
        document=msgspec.json.encode(report),
        database=report.database,
        summary=Severities(**msgspec.structs.asdict(report.summary)),
        top=top_of(report),
        not_checked=sum(each.packages for each in report.uncovered),
        not_comparable=report.not_comparable_count,
        left_out=len(left_out),
    )


def top_of(report: Report) -> tuple[TopFinding, ...]:
    """The worst that are not suppressed, each package once."""
    findings = sorted((finding for finding in _findings(report) if not finding.suppressed), key=_worst_first)
    return tuple(dict.fromkeys(map(_brief, findings)))[:MOST_TOP]


def _findings(report: Report) -> Iterator[Finding]:
    return (finding for result in report.results for finding in result.findings)


def _worst_first(finding: Finding) -> tuple[int, float, str, str, str]:
    rank = severity.rank(finding.severity)
    return rank, -(finding.score or 0.0), finding.id, finding.package, finding.installed_version


def _brief(finding: Finding) -> TopFinding:
    brief = TopFinding(
        id=finding.id[:128],
        severity=finding.severity,
        package=finding.package[:255],
        installed_version=finding.installed_version[:255],
    )
    return brief.replace(fixed_version=finding.fixed_versions[0][:255]) if finding.fixed_versions else brief

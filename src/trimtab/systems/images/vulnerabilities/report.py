"""A vulnerability report: what was found in an image, by target. Plain data, camelCase on the wire.

Findings are sorted, so the same packages and the same database give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from trimtab.systems.images.vulnerabilities import severity


class Vex(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a vendor says of a finding, and where."""

    status: str
    justification: str = ""
    statement: str = ""
    author: str = ""
    document: str = ""
    timestamp: str = ""


class Finding(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One vulnerability of one package. `id` is the CVE when there is just one; `advisories` are the OSV ids behind it."""

    id: str
    advisories: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    title: str = ""
    description: str = ""
    severity: str = "Unknown"
    severity_source: str = ""
    score: float | None = None
    vector: str = ""
    package: str
    purl: str
    path: str = ""
    layer: str = ""
    installed_version: str
    fixed_versions: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    published: str = ""
    suppressed: bool = False
    vex: Vex | None = None


class Result(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The findings of one kind of package. `target` is a text for people: `debian 12`, `Python`."""

    target: str
    kind: str  # os-pkgs or lang-pkgs
    type: str  # as in purls
    packages: int
    findings: tuple[Finding, ...]


class Summary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How many findings there are; those that are suppressed count only as such."""

    critical: int = 0
    high: int = 0
    medium: int = 0
    low: int = 0
    unknown: int = 0
    suppressed: int = 0


class NotComparable(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An advisory names the package, but nobody can tell whether this version is affected."""

    package: str
    version: str
    purl: str
    advisory: str
    why: str


class Uncovered(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Packages that were not checked at all, because the database has nothing of their ecosystem."""

    type: str
    packages: int
    why: str


class Report(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`not_comparable` and `uncovered` say what the absence of findings does not mean."""

    results: tuple[Result, ...]
    summary: Summary
    not_comparable: tuple[NotComparable, ...] = ()
    not_comparable_count: int = 0
    uncovered: tuple[Uncovered, ...] = ()
    database: str = ""  # digest


def summarize(findings: Iterable[Finding]) -> Summary:
    counts = dict.fromkeys((*severity.LABELS, "suppressed"), 0)
    for finding in findings:
        counts["suppressed" if finding.suppressed else finding.severity] += 1
    return Summary(**{label.lower(): count for label, count in counts.items()})

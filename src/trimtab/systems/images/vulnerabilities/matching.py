"""Match packages against a database: pure over the reader, and the same answer every time.

Each distinct (ecosystem, name, version) is asked once. What several databases or advisories say of one vulnerability in
one package becomes one finding: advisories about the same CVE are joined, and a distribution's advisory about many CVEs is
a finding for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from trimtab.systems.images.packages.package import OS_TYPES, Distro, Package, purl_of
from trimtab.systems.images.vulnerabilities import severity
from trimtab.systems.images.vulnerabilities.advisory import REFERENCES, Advisory
from trimtab.systems.images.vulnerabilities.database import Database, open_database
from trimtab.systems.images.vulnerabilities.ecosystems import Lookup, NoEcosystemError, lookups
from trimtab.systems.images.vulnerabilities.ranges import Outcome, judge
from trimtab.systems.images.vulnerabilities.report import (
    Finding,
    NotComparable,
    Report,
    Result,
    Uncovered,
    summarize,
)
from trimtab.systems.images.vulnerabilities.severity import Severity
from trimtab.systems.images.vulnerabilities.versions import scheme_of

SHOWN = 100
"""Versions that cannot be compared are all counted, and so many are named."""


def scan(packages: Iterable[Package], distro: Distro, database: Database) -> Report:
    """Which known vulnerabilities the packages have. DatabaseError."""
    matcher = _Matcher(database)
    by_type: dict[str, list[Package]] = {}
    for package in packages:
        by_type.setdefault(package.type, []).append(package)
    results = []
    for kind in sorted(by_type, key=lambda kind: (kind not in OS_TYPES, kind)):
        findings = [finding for package in by_type[kind] for finding in matcher.findings(package, distro)]
        findings.sort(key=lambda f: (severity.rank(f.severity), f.id, f.package, f.installed_version, f.path))
        results.append(
            Result(
                target=f"{distro.id} {distro.version}".strip() if kind in OS_TYPES else _TARGETS.get(kind, kind),
                kind="os-pkgs" if kind in OS_TYPES else "lang-pkgs",
                type=kind,
                packages=len(by_type[kind]),
                findings=tuple(findings),
            )
        )
    return Report(
        results=tuple(results),
        summary=summarize(finding for result in results for finding in result.findings),
        not_comparable=tuple(matcher.not_comparable),
        not_comparable_count=matcher.not_comparable_count,
        uncovered=matcher.uncovered(),
        database=database.digest,
    )


def scan_file(packages: Sequence[Package], distro: Distro, path: Path) -> Report:
    """The same with a database's path, for a worker process."""
    with open_database(path) as database:
        return scan(packages, distro, database)


class _Match(NamedTuple):
    """An advisory that a package's version is affected by."""

    advisory: Advisory
    severity: Severity
    fixed: tuple[str, ...]


class _Doubt(NamedTuple):
    advisory: str
    why: str


class _Matcher:
    """What was asked of one database during one scan."""

    def __init__(self, database: Database) -> None:
        self.not_comparable: list[NotComparable] = []
        self.not_comparable_count = 0
        self._database = database
        self._covered = database.ecosystems
        self._uncovered: Counter[tuple[str, str]] = Counter()
        self._answers: dict[tuple[Lookup, ...], tuple[list[_Match], list[_Doubt]]] = {}
        self._advisories: dict[int, Advisory] = {}

    def findings(self, package: Package, distro: Distro) -> list[Finding]:
        try:
            asked = lookups(package, distro)
        except NoEcosystemError as error:
            self._uncovered[package.type, str(error)] += 1
            return []
        if asked[0].ecosystem not in self._covered:
            self._uncovered[package.type, f"the database has no advisories for {asked[0].ecosystem}"] += 1
            return []
        if asked not in self._answers:
            self._answers[asked] = self._ask(asked)
        matches, doubts = self._answers[asked]
        if not matches and not doubts:
            return []
        purl = purl_of(package, distro)
        self.not_comparable_count += len(doubts)
        for doubt in doubts[: SHOWN - len(self.not_comparable)]:
            self.not_comparable.append(
                NotComparable(
                    package=package.name, version=package.version, purl=purl, advisory=doubt.advisory, why=doubt.why
                )
            )
        return [_finding(name, group, package, purl) for name, group in _joined(matches).items()]

    def uncovered(self) -> tuple[Uncovered, ...]:
        return tuple(
            Uncovered(type=kind, packages=count, why=why) for (kind, why), count in sorted(self._uncovered.items())
        )

    def _ask(self, asked: tuple[Lookup, ...]) -> tuple[list[_Match], list[_Doubt]]:
        matches: dict[int, _Match] = {}
        doubts: dict[int, _Doubt] = {}
        for ecosystem, name, version in asked:
            scheme = scheme_of(ecosystem) or ""
            for number, affected in self._database.lookup(ecosystem, name):
                if number in matches:
                    continue
                for each in affected:
                    verdict = judge(scheme, version, each.ranges, each.versions)
                    if verdict.outcome is Outcome.AFFECTED:
                        advisory = self._advisory(number)
                        matches[number] = _Match(advisory, each.severity or advisory.severity, verdict.fixed)
                        break
                    if verdict.outcome is Outcome.CANNOT_COMPARE:
                        doubts[number] = _Doubt(self._advisory(number).id, verdict.why)
        return list(matches.values()), [doubt for number, doubt in doubts.items() if number not in matches]

    def _advisory(self, number: int) -> Advisory:
        if number not in self._advisories:
            self._advisories[number] = self._database.advisory(number)
        return self._advisories[number]


def _joined(matches: list[_Match]) -> dict[str, list[_Match]]:
    """Groups that are one vulnerability each, by its name: the CVE, or the first advisory's id where there is none.

    An advisory about many CVEs is in the group of each: a statement about one of them must not speak for the others.
    """
    groups: dict[str, list[_Match]] = {}
    known: dict[str, str] = {}  # the group of every name
    for match in sorted(matches, key=lambda match: not match.advisory.cves):
        advisory = match.advisory
        for cve in advisory.cves:
            groups.setdefault(cve, []).append(match)
        names = (advisory.id, *advisory.aliases)
        if len(advisory.cves) == 1:
            known.update(dict.fromkeys(names, advisory.cves[0]))
        elif not advisory.cves:
            group = next((known[name] for name in names if name in known), advisory.id)
            groups.setdefault(group, []).append(match)
            known.update({name: group for name in names if name not in known})
    return groups


def _finding(name: str, group: list[_Match], package: Package, purl: str) -> Finding:
    """What is about this vulnerability alone comes first, and what has a severity; fixes and names are those of all."""
    group = sorted(group, key=_by_worth)
    worst = group[0].severity
    names = {match.advisory.id for match in group}
    for match in group:
        if len(match.advisory.cves) <= 1:
            names.update(match.advisory.aliases)
    return Finding(
        id=name,
        advisories=tuple(sorted({match.advisory.id for match in group})),
        aliases=tuple(sorted(names - {name})),
        title=next((match.advisory.title for match in group if match.advisory.title), ""),
        description=next((match.advisory.details for match in group if match.advisory.details), ""),
        severity=worst.label,
        severity_source=worst.source,
        score=worst.score,
        vector=worst.vector,
        package=package.name,
        purl=purl,
        path=package.path,
        layer=package.layer,
        installed_version=package.version,
        fixed_versions=tuple(dict.fromkeys(version for match in group for version in match.fixed)),
        references=tuple(dict.fromkeys(url for match in group for url in match.advisory.references))[:REFERENCES],
        published=min((match.advisory.published for match in group if match.advisory.published), default=""),
    )


def _by_worth(match: _Match) -> tuple[bool, bool, str]:
    return match.severity.label == "Unknown", len(match.advisory.cves) > 1, match.advisory.id


_TARGETS = {
    "pypi": "Python",
    "npm": "Node.js",
    "golang": "Go",
    "maven": "Java",
    "gem": "Ruby",
    "cargo": "Rust",
}

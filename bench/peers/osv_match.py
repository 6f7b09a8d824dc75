"""Vulnerability data in figures: import, lookup and match, the order of versions beside univers, and VEX.

The data are made up, with the shape of real ones: a few packages have thousands of advisories (a kernel), most have a few;
each advisory has a text of some hundred bytes, and Debian's list every affected version. A scan is measured with a file that
was just opened, as a worker does it. Rounds alternate, the best counts; times are of the CPU.

    python bench/peers/osv_match.py [--advisories 100000] [--packages 1000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table
from univers import versions as univers

from trimtab.systems.images.packages.package import Distro, Package
from trimtab.systems.images.vulnerabilities import versions
from trimtab.systems.images.vulnerabilities.importing import import_osv
from trimtab.systems.images.vulnerabilities.matching import scan_file
from trimtab.systems.images.vulnerabilities.report import Report
from trimtab.systems.images.vulnerabilities.vex import apply, parse

DEBIAN = Distro("debian", "12")
SHARES = {"Debian:12": 0.4, "npm": 0.2, "PyPI": 0.15, "Maven": 0.15, "Go": 0.1}
TYPES = {"Debian:12": "deb", "npm": "npm", "PyPI": "pypi", "Maven": "maven", "Go": "golang"}
PEERS = {
    "deb": univers.DebianVersion,
    "rpm": univers.RpmVersion,
    "apk": univers.AlpineLinuxVersion,
    "semver": univers.SemverVersion,
    "maven": univers.MavenVersion,
    "gem": univers.RubygemsVersion,
    "pypi": univers.PypiVersion,
}


def version(rnd: random.Random, ecosystem: str) -> str:
    number = f"{rnd.randrange(5)}.{rnd.randrange(20)}.{rnd.randrange(30)}"
    return f"{number}-{rnd.randrange(1, 9)}+deb12u{rnd.randrange(1, 5)}" if ecosystem == "Debian:12" else number


def name(rnd: random.Random, ecosystem: str) -> str:
    """Few names are in many advisories."""
    number = min(int(rnd.paretovariate(0.6)), 20_000)
    return f"group:artifact-{number}" if ecosystem == "Maven" else f"package-{number}"


def advisory(rnd: random.Random, number: int) -> dict[str, Any]:
    (ecosystem,) = rnd.choices(list(SHARES), list(SHARES.values()))
    fixed = version(rnd, ecosystem)
    return {
        "id": f"BENCH-{number}",
        "modified": "2024-01-01T00:00:00Z",
        "published": "2024-01-01T00:00:00Z",
        "aliases": [f"CVE-2024-{number:06}"],
        "summary": "A vulnerability of some kind in some function",
        "details": " ".join(
            rnd.choices(("a", "buffer", "overflow", "in", "the", "parser", "allows", "attackers"), k=80)
        ),
        "severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:N/A:N"}],
        "references": [{"type": "WEB", "url": f"https://example.org/{number}/{link}"} for link in range(4)],
        "affected": [
            {
                "package": {"ecosystem": ecosystem, "name": name(rnd, ecosystem)},
                "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": fixed}]}],
                "versions": [version(rnd, ecosystem) for _ in range(10)] if ecosystem == "Debian:12" else [],
            }
        ],
    }


def packages(rnd: random.Random, numbers: Sequence[int]) -> list[Package]:
    made = []
    for number in numbers:
        (ecosystem,) = rnd.choices(list(SHARES), list(SHARES.values()))
        title = f"artifact-{number}" if ecosystem == "Maven" else f"package-{number}"
        made.append(
            Package(
                type=TYPES[ecosystem],
                name=title,
                namespace="group" if ecosystem == "Maven" else "",
                version=version(rnd, ecosystem),
                path=f"app/{number}",
            )
        )
    return made


def cpu(work: Callable[[], Any], rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return best


def scan(wanted: list[Package], database: Path) -> Callable[[], None]:
    def run() -> None:
        versions.key.cache_clear()
        scan_file(wanted, DEBIAN, database)

    return run


def summed(report: Report) -> int:
    return sum(len(result.findings) for result in report.results)


def ours(scheme: str, pairs: list[tuple[str, str]], *, known: bool = False) -> Callable[[], None]:
    def run() -> None:
        if not known:
            versions.key.cache_clear()
        for left, right in pairs:
            _ = versions.key(scheme, left) < versions.key(scheme, right)

    return run


def theirs(scheme: str, pairs: list[tuple[str, str]]) -> Callable[[], None]:
    peer = PEERS[scheme]

    def run() -> None:
        for left, right in pairs:
            _ = peer(left) < peer(right)

    return run


class Figures(NamedTuple):
    """Seconds of CPU, and how many of each. `schemes` has pairs of versions a second: ours, univers', ours again."""

    advisories: int
    packages: int
    imported: float
    database_bytes: int
    findings: int
    scan: float
    worst_findings: int
    worst_scan: float
    statements: int
    vex: float
    schemes: dict[str, tuple[float, float, float]]


def measure(advisories: int, packages_each: int, rounds: int) -> Figures:
    rnd = random.Random(5)
    with tempfile.TemporaryDirectory() as folder:
        source, database = Path(folder, "all.zip"), Path(folder, "osv.db")
        with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for number in range(advisories):
                archive.writestr(f"BENCH-{number}.json", json.dumps(advisory(rnd, number)))
        imported = cpu(lambda: import_osv(source, database, replace=True), 1)
        some = packages(rnd, rnd.sample(range(1, 20_000), packages_each))
        worst = packages(rnd, range(1, packages_each + 1))
        reports = [scan_file(wanted, DEBIAN, database) for wanted in (some, worst)]
        scans = [cpu(scan(wanted, database), rounds) for wanted in (some, worst)]
        statements = said_of(reports[1])
        vex = json.dumps({"@context": "https://openvex.dev/ns/v0.2.0", "statements": statements}).encode()
        return Figures(
            advisories=advisories,
            packages=packages_each,
            imported=imported,
            database_bytes=database.stat().st_size,
            findings=summed(reports[0]),
            scan=scans[0],
            worst_findings=summed(reports[1]),
            worst_scan=scans[1],
            statements=len(statements),
            vex=cpu(lambda: apply(reports[1], [parse(vex)]), rounds),
            schemes={scheme: compared(rnd, scheme, rounds) for scheme in PEERS},
        )


def said_of(report: Report) -> list[dict[str, Any]]:
    """A statement for each finding, up to 5,000."""
    findings = [finding for result in report.results for finding in result.findings]
    return [
        {"vulnerability": {"name": finding.id}, "products": [{"@id": finding.purl}], "status": "fixed"}
        for finding in findings[:5000]
    ]


def compared(rnd: random.Random, scheme: str, rounds: int) -> tuple[float, float, float]:
    """Pairs of versions a second: ours, univers', and ours when they were seen before."""
    texts = [f"{rnd.randrange(9)}.{rnd.randrange(50)}.{rnd.randrange(500)}" for _ in range(4000)]
    if scheme in ("deb", "rpm"):
        texts = [f"{text}-{rnd.randrange(9)}.el9" for text in texts]
    pairs = list(zip(texts[::2], texts[1::2], strict=True))
    mine, other = cpu(ours(scheme, pairs), rounds), cpu(theirs(scheme, pairs), rounds)
    again = cpu(ours(scheme, pairs, known=True), rounds)
    return len(pairs) / mine, len(pairs) / other, len(pairs) / again


def show(figures: Figures) -> None:
    console = Console()
    table = Table("what", "figure", title="vulnerability data")
    table.add_row("import, advisories a second of CPU", f"{figures.advisories / figures.imported:,.0f}")
    table.add_row("database, bytes an advisory", f"{figures.database_bytes / figures.advisories:,.0f}")
    for title, findings, spent in (
        ("drawn by lot", figures.findings, figures.scan),
        ("those with most advisories", figures.worst_findings, figures.worst_scan),
    ):
        table.add_section()
        table.add_row(f"{figures.packages:,} packages, {title}: findings", f"{findings:,}")
        table.add_row("a scan, ms", f"{spent * 1000:,.0f}")
    table.add_section()
    table.add_row(f"VEX of {figures.statements:,} statements, read and applied, ms", f"{figures.vex * 1000:,.0f}")
    console.print(table)
    table = Table("versions", "trimtab, pairs/s", "univers, pairs/s", "times", "seen before", title="parse and compare")
    for scheme, (mine, other, again) in figures.schemes.items():
        table.add_row(scheme, f"{mine:,.0f}", f"{other:,.0f}", f"{mine / other:.1f}", f"{again:,.0f}")
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])  # type: ignore[union-attr]
    parser.add_argument("--advisories", type=int, default=100_000)
    parser.add_argument("--packages", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    show(measure(options.advisories, options.packages, options.rounds))


if __name__ == "__main__":
    main()

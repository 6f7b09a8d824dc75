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
from typing import Any

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


def scan(wanted: list[Package], database: Path, *, known: bool) -> Callable[[], None]:
    def run() -> None:
        if not known:
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])  # type: ignore[union-attr]
    parser.add_argument("--advisories", type=int, default=100_000)
    parser.add_argument("--packages", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    console = Console()
    rnd = random.Random(5)
    with tempfile.TemporaryDirectory() as folder:
        source, database = Path(folder, "all.zip"), Path(folder, "osv.db")
        with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for number in range(options.advisories):
                archive.writestr(f"BENCH-{number}.json", json.dumps(advisory(rnd, number)))
        table = Table("what", "figure", title="vulnerability data")
        spent = cpu(lambda: import_osv(source, database, replace=True), 1)
        table.add_row("import, advisories a second of CPU", f"{options.advisories / spent:,.0f}")
        table.add_row("database, bytes an advisory", f"{database.stat().st_size / options.advisories:,.0f}")
        some = packages(rnd, rnd.sample(range(1, 20_000), options.packages))
        worst = packages(rnd, range(1, options.packages + 1))
        for title, wanted in (("drawn by lot", some), ("those with most advisories", worst)):
            report = scan_file(wanted, DEBIAN, database)
            table.add_section()
            table.add_row(f"{options.packages:,} packages, {title}: findings", f"{summed(report):,}")
            for known in (False, True):
                spent = cpu(scan(wanted, database, known=known), options.rounds)
                table.add_row(f"a scan{', versions known' if known else ''}, ms", f"{spent * 1000:,.0f}")
        table.add_section()
        statements = [
            {
                "vulnerability": {"name": finding.id},
                "products": [{"@id": finding.purl}],
                "status": "fixed",
            }
            for result in report.results
            for finding in result.findings
        ][:5000]
        vex = json.dumps({"@context": "https://openvex.dev/ns/v0.2.0", "statements": statements}).encode()
        spent = cpu(lambda: apply(report, [parse(vex)]), options.rounds)
        table.add_row(f"VEX of {len(statements):,} statements, read and applied, ms", f"{spent * 1000:,.0f}")
        console.print(table)
    table = Table(
        "versions", "trimtab, pairs/s", "univers, pairs/s", "times", "seen before, pairs/s", title="parse and compare"
    )
    for scheme in PEERS:
        texts = [f"{rnd.randrange(9)}.{rnd.randrange(50)}.{rnd.randrange(500)}" for _ in range(4000)]
        if scheme in ("deb", "rpm"):
            texts = [f"{text}-{rnd.randrange(9)}.el9" for text in texts]
        pairs = list(zip(texts[::2], texts[1::2], strict=True))
        mine, other = cpu(ours(scheme, pairs), options.rounds), cpu(theirs(scheme, pairs), options.rounds)
        again = cpu(ours(scheme, pairs, known=True), options.rounds)
        rates = [f"{len(pairs) / spent:,.0f}" for spent in (mine, other, again)]
        table.add_row(scheme, *rates[:2], f"{other / mine:.1f}", rates[2])
    console.print(table)


if __name__ == "__main__":
    main()

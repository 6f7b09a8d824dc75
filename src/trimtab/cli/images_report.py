"""`trimtab images report`: what is wrong with an image, the worst first, and what nobody could tell."""

from __future__ import annotations

import shutil
import sys
import textwrap

import msgspec

from trimtab.cli.access import Access, Session, session
from trimtab.cli.blobs import Place, opened, read
from trimtab.cli.codes import NOT_FOUND, OK, Problem, run
from trimtab.cli.images_find import Wanted, image_of
from trimtab.cli.tables import Printer, shown
from trimtab.model.conditions import get_condition
from trimtab.model.errors import StatusError
from trimtab.systems.images.kinds import SBOM, Image, VulnerabilityReport
from trimtab.systems.images.vulnerabilities.report import Finding, NotComparable, Report, Vex
from trimtab.systems.images.vulnerabilities.severity import LABELS, rank

MAX_BYTES = 512 << 20
FIXES = 3
"""Versions that fix a finding, in a table."""
NOT_COMPARABLE = 5
"""Shown in full."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """`least` is the severity from which on findings are shown; empty for all."""

    least: str = ""
    everything: bool = False
    json: bool = False


def report(access: Access, wanted: Wanted, options: Options, place: Place) -> int:
    return run(_report(access, wanted, options, place))


async def _report(access: Access, wanted: Wanted, options: Options, place: Place) -> int:
    async with session(access) as server:
        image = await image_of(server, wanted)
        found = await _found(server, image, wanted)
    what = f"the report of {wanted.text}"
    async with opened(access, place) as blobs:
        content = await read(blobs, found.spec.document, of=what, max_bytes=MAX_BYTES)
    try:
        whole = msgspec.json.decode(content, type=Report)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Problem(f"{what} is of another shape than this program knows, are both of one version? {error}") from None
    chosen = _chosen(whole, options)
    if options.json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(chosen), indent=2) + b"\n")
        sys.stdout.buffer.flush()
        return OK
    _show(chosen, whole, found, options)
    return OK


async def _found(server: Session, image: Image, wanted: Wanted) -> VulnerabilityReport:
    try:
        return await server.client.get(VulnerabilityReport, image.name, image.namespace)
    except StatusError as error:
        if error.code != 404:
            raise
    raise Problem(f"{wanted.text} has no report: {await _why(server, image)}", NOT_FOUND)


async def _why(server: Session, image: Image) -> str:
    try:
        sbom = await server.client.get(SBOM, image.name, image.namespace)
    except StatusError as error:
        if error.code != 404:
            raise
        return "it has no SBOM yet, and that comes first"
    scanned = get_condition(sbom.status.conditions, "Scanned") if sbom.status else None
    if scanned is None or scanned.status == "Unknown":
        return "its SBOM is not scanned yet; `trimtab images import-db --show` says whether there is a database"
    return f"{scanned.reason}: {scanned.message}"


def _chosen(whole: Report, options: Options) -> Report:
    """Only the findings that are asked for."""
    worst = rank(options.least) if options.least else len(LABELS)
    results = tuple(
        msgspec.structs.replace(
            result,
            findings=tuple(
                finding
                for finding in result.findings
                if rank(finding.severity) <= worst and (options.everything or not finding.suppressed)
            ),
        )
        for result in whole.results
    )
    return msgspec.structs.replace(whole, results=results)


def _show(chosen: Report, whole: Report, found: VulnerabilityReport, options: Options) -> None:
    findings = sorted(
        (finding for result in chosen.results for finding in result.findings),
        key=lambda one: (one.suppressed, rank(one.severity), one.package, one.id, one.path),
    )
    headers = ("severity", "id", "package", "installed", "fixed", "path", *(("said",) if options.everything else ()))
    if findings:
        Printer(headers).add([_row(finding, options.everything) for finding in findings])
    counts = whole.summary
    listed = ((label, getattr(counts, label.lower())) for label in LABELS)
    suppressed = f", {counts.suppressed} suppressed" if counts.suppressed else ""
    hint = "; --all shows them" if counts.suppressed and not options.everything else ""
    print(f"{', '.join(f'{count} {label}' for label, count in listed)}{suppressed}{hint}")
    print(f"scanned at {found.spec.scanned_at} with the database {_short(found.spec.database)}")
    _show_unchecked(whole)


def _row(finding: Finding, everything: bool) -> list[str]:
    fixes = finding.fixed_versions
    fixed = ", ".join(fixes[:FIXES]) + (", …" if len(fixes) > FIXES else "")
    cells = (finding.severity, finding.id, finding.package, finding.installed_version, fixed, finding.path)
    row = [shown(cell) for cell in cells]
    return [*row, shown(_said(finding.vex))] if everything else row


def _said(vex: Vex | None) -> str:
    """`not_affected (component_not_present) by Vendor in https://…`."""
    if vex is None:
        return ""
    why = f" ({vex.justification})" if vex.justification else ""
    author = f" by {vex.author}" if vex.author else ""
    return f"{vex.status}{why}{author}{f' in {vex.document}' if vex.document else ''}"


def _show_unchecked(whole: Report) -> None:
    """What the absence of findings does not mean."""
    for part in whole.uncovered:
        _line(f"not checked: {part.packages} packages of type {part.type}: {part.why}")
    for each in whole.not_comparable[:NOT_COMPARABLE]:
        _line(_incomparable(each))
    more = whole.not_comparable_count - min(len(whole.not_comparable), NOT_COMPARABLE)
    if more > 0:
        print(f"and {more} more versions cannot be compared: -o json has the first {len(whole.not_comparable)}")


def _incomparable(each: NotComparable) -> str:
    return f"not comparable: {each.package} {each.version} with {each.advisory}: {each.why}"


def _line(text: str) -> None:
    width = shutil.get_terminal_size().columns
    print(textwrap.fill(shown(text), max(width, 40), subsequent_indent="  ") if sys.stdout.isatty() else shown(text))


def _short(digest: str) -> str:
    algorithm, _, value = digest.partition(":")
    return f"{algorithm}:{value[:12]}" if value else digest

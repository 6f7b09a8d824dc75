"""Let VEX statements speak about the findings of a report.

A statement is about a finding when it names its vulnerability, by any of its names, and its package. The package is named
itself; or as a subcomponent of the image; or as a subcomponent of another package that was found at the same path, as the
main module of a Go binary is. A package URL without version or qualifiers means all of them; what it states must be so.

Of all statements about a finding the latest counts, by its time, then by its document's version. `not_affected` and `fixed`
suppress the finding, which stays in the report with who said so; the other two only say it. Of one document (by @id) only
the highest version counts. Applying is repeatable: what an earlier application said is forgotten first.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote

import msgspec

from trimtab.systems.images.packages.package import Distro, Package, purl_of
from trimtab.systems.images.vulnerabilities.openvex import Product, Statement, VexDocument, VexError, parse
from trimtab.systems.images.vulnerabilities.report import Finding, Report, Vex, summarize
from trimtab.systems.images.vulnerabilities.vex_repository import VexRepository, read_repository

__all__ = ["VexDocument", "VexError", "VexRepository", "apply", "parse", "read_repository"]

_SUPPRESSING = frozenset(("not_affected", "fixed"))


def apply(
    report: Report, documents: Iterable[VexDocument], *, image: Sequence[str] = (), packages: Iterable[Package] = ()
) -> Report:
    """The report with what the documents say. `image` are package URLs of the image (`pkg:oci/…`); `packages` are all of
    its packages, for statements about what is inside of another package."""
    book = _Book(documents)
    if not book.said:
        said_nothing = all(finding.vex is None for result in report.results for finding in result.findings)
        if said_nothing:
            return report
    place = _Place(image, packages)
    results = tuple(
        msgspec.structs.replace(result, findings=tuple(_judged(finding, book, place) for finding in result.findings))
        for result in report.results
    )
    summary = summarize(finding for result in results for finding in result.findings)
    return msgspec.structs.replace(report, results=results, summary=summary)


def _judged(finding: Finding, book: _Book, place: _Place) -> Finding:
    latest: tuple[tuple[str, int, str, int], _Said] | None = None
    for name in (finding.id, *finding.aliases):
        for said in book.said.get(name, ()):
            if (latest is None or said.order > latest[0]) and place.concerns(said.statement, finding):
                latest = said.order, said
    if latest is None:
        return msgspec.structs.replace(finding, suppressed=False, vex=None) if finding.vex else finding
    statement, document = latest[1].statement, latest[1].document
    return msgspec.structs.replace(
        finding,
        suppressed=statement.status in _SUPPRESSING,
        vex=Vex(
            status=statement.status,
            justification=statement.justification,
            statement=statement.text,
            author=document.author,
            document=document.id,
            timestamp=statement.timestamp,
        ),
    )


class _Said(NamedTuple):
    """A statement, and its place in time: later sorts after; for equal ones any fixed order does."""

    order: tuple[str, int, str, int]
    statement: Statement
    document: VexDocument


class _Book:
    """Statements by the names of their vulnerability."""

    def __init__(self, documents: Iterable[VexDocument]) -> None:
        newest: dict[str, VexDocument] = {}
        for number, document in enumerate(documents):
            name = document.id or f"#{number}"
            known = newest.get(name)
            if known is None or (document.version, document.timestamp) > (known.version, known.timestamp):
                newest[name] = document
        self.said: Mapping[str, list[_Said]] = defaultdict(list)
        for document in newest.values():
            for number, statement in enumerate(document.statements):
                said = _Said((statement.timestamp, document.version, document.id, number), statement, document)
                for name in statement.vulnerabilities:
                    self.said[name].append(said)


class _Place:
    """Where findings are: the image, and what else was found at each path."""

    def __init__(self, image: Sequence[str], packages: Iterable[Package]) -> None:
        self._image = [purl for text in image if (purl := purl_parts(text))]
        self._beside: dict[str, list[Package]] = defaultdict(list)
        for package in packages:
            if package.path:
                self._beside[package.path].append(package)

    def concerns(self, statement: Statement, finding: Finding) -> bool:
        own = purl_parts(finding.purl)
        return own is not None and any(self._named(product, own, finding.path) for product in statement.products)

    def _named(self, product: Product, own: Purl, path: str) -> bool:
        products = [purl for text in product.purls if (purl := purl_parts(text))]
        parts = [purl for text in product.subcomponents if (purl := purl_parts(text))]
        if product.subcomponents and not any(means(part, own) for part in parts):
            return False
        if any(means(purl, one) for purl in products for one in self._image):
            return True
        if not product.subcomponents:
            return any(means(purl, own) for purl in products)
        return any(means(purl, other) for other in self._others(path) for purl in products)

    def _others(self, path: str) -> list[Purl]:
        found = (purl_parts(_purl(package)) for package in self._beside.get(path, ()))
        return [purl for purl in found if purl is not None]


class Purl(NamedTuple):
    """A package URL, read: no version and no qualifiers mean any."""

    name: tuple[str, ...]  # type, namespace and name
    version: str
    qualifiers: frozenset[tuple[str, str]]


def means(stated: Purl, actual: Purl) -> bool:
    """Does what a statement says cover this package? `v1.2.3` and `1.2.3` are one version of a Go module."""
    if stated.name != actual.name or not stated.qualifiers <= actual.qualifiers:
        return False
    if not stated.version or stated.version == actual.version:
        return True
    return stated.name[0] == "golang" and stated.version.removeprefix("v") == actual.version.removeprefix("v")


@functools.lru_cache(maxsize=1 << 14)
def purl_parts(text: str) -> Purl | None:
    """None for what is no package URL."""
    if not text.startswith("pkg:"):
        return None
    rest, _, _ = text[4:].partition("#")
    rest, _, query = rest.partition("?")
    path, at, version = rest.strip("/").rpartition("@")
    if not at or "/" in version:  # the @ of an npm scope is no mark of a version
        path, version = rest.strip("/"), ""
    kind, slash, name = path.partition("/")
    if not slash or not name:
        return None
    parts = (kind.lower(), *(unquote(part) for part in name.split("/") if part))
    if parts[0] in _LOWER:
        parts = tuple(part.lower() for part in parts)
    if parts[0] == "pypi":
        parts = tuple(part.replace("_", "-") for part in parts)
    pairs = (pair.partition("=")[::2] for pair in query.split("&") if pair)
    return Purl(parts, unquote(version), frozenset((key.lower(), unquote(value)) for key, value in pairs if value))


@functools.lru_cache(maxsize=1 << 14)
def _purl(package: Package) -> str:
    return purl_of(package, Distro())


_LOWER = frozenset(("pypi", "deb", "rpm", "apk", "oci", "github", "bitbucket", "golang"))

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
import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import unquote

import msgspec

from trimtab.systems.images.packages.package import Distro, Package, purl_of
from trimtab.systems.images.vulnerabilities.openvex import Product, Statement, VexDocument, VexError, parse
from trimtab.systems.images.vulnerabilities.report import Finding, Report, Vex, summarize
from trimtab.systems.images.vulnerabilities.vex_repository import VexRepository, read_repository

__all__ = ["VexDocument", "VexError", "VexIndex", "VexRepository", "apply", "parse", "read_repository"]

_SUPPRESSING = frozenset(("not_affected", "fixed"))


def apply(
    report: Report,
    documents: Iterable[VexDocument] | VexIndex,
    *,
    image: Sequence[str] = (),
    packages: Iterable[Package] = (),
) -> Report:
    """The report with what the documents say. `image` are package URLs of the image (`pkg:oci/…`); `packages` are all of
    its packages, for statements about what is inside of another package."""
    index = documents if isinstance(documents, VexIndex) else VexIndex(documents)
    place = _Place(image, packages)
    results = tuple(
        msgspec.structs.replace(result, findings=tuple(_judged(finding, index, place) for finding in result.findings))
        for result in report.results
    )
    summary = summarize(finding for result in results for finding in result.findings)
    return msgspec.structs.replace(report, results=results, summary=summary)


class VexIndex:
    """Statements by the names of their vulnerability. Make it once for many reports."""

    def __init__(self, documents: Iterable[VexDocument]) -> None:
        newest: dict[str, VexDocument] = {}
        for number, document in enumerate(documents):
            name = document.id or f"#{number}"
            known = newest.get(name)
            if known is None or (document.version, document.timestamp) > (known.version, known.timestamp):
                newest[name] = document
        self._said: dict[str, list[_Said]] = defaultdict(list)
        for document in newest.values():
            for number, statement in enumerate(document.statements):
                said = _Said((statement.timestamp, document.version, document.id, number), statement, document)
                for name in statement.vulnerabilities:
                    self._said[name].append(said)
        for some in self._said.values():
            some.sort(key=_order, reverse=True)

    def about(self, finding: Finding) -> list[_Said]:
        """All that is said of its vulnerability, by whatever name, with the latest first."""
        found = [some for name in (finding.id, *finding.aliases) if (some := self._said.get(name))]
        return found[0] if len(found) == 1 else sorted(itertools.chain(*found), key=_order, reverse=True)


class _Said(NamedTuple):
    """A statement, and its place in time: later sorts after; for equal ones any fixed order does."""

    order: tuple[str, int, str, int]
    statement: Statement
    document: VexDocument


def _order(said: _Said) -> tuple[str, int, str, int]:
    return said.order


def _judged(finding: Finding, index: VexIndex, place: _Place) -> Finding:
    said = next((said for said in index.about(finding) if place.concerns(said.statement, finding)), None)
    if said is None:
        return msgspec.structs.replace(finding, suppressed=False, vex=None) if finding.vex else finding
    statement = said.statement
    return msgspec.structs.replace(
        finding,
        suppressed=statement.status in _SUPPRESSING,
        vex=Vex(
            status=statement.status,
            justification=statement.justification,
            statement=statement.text,
            author=said.document.author,
            document=said.document.id,
            timestamp=statement.timestamp,
        ),
    )


class _Place:
    """Where findings are: the image, and what else was found at each path."""

    def __init__(self, image: Sequence[str], packages: Iterable[Package]) -> None:
        self._image = _read(image)
        self._beside: dict[str, list[Package]] = defaultdict(list)
        self._others: dict[str, list[Purl]] = {}
        for package in packages:
            if package.path:
                self._beside[package.path].append(package)

    def concerns(self, statement: Statement, finding: Finding) -> bool:
        own = purl_parts(finding.purl)
        return own is not None and any(self._named(product, own, finding.path) for product in statement.products)

    def _named(self, product: Product, own: Purl, path: str) -> bool:
        if product.subcomponents and not any(means(part, own) for part in _read(product.subcomponents)):
            return False
        products = _read(product.purls)
        if any(means(purl, one) for purl in products for one in self._image):
            return True
        inside = self._found_at(path) if product.subcomponents else [own]
        return any(means(purl, one) for purl in products for one in inside)

    def _found_at(self, path: str) -> list[Purl]:
        if path not in self._others:
            self._others[path] = _read(purl_of(package, Distro()) for package in self._beside.get(path, ()))
        return self._others[path]


class Purl(NamedTuple):
    """A package URL, read: no version and no qualifiers mean any."""

    name: tuple[str, ...]  # type, namespace and name
    version: str
    qualifiers: frozenset[tuple[str, str]]


def means(stated: Purl, actual: Purl) -> bool:
    """Does what a statement says cover this package? `v1.2.3`, `1.2.3` and `go1.2.3` are one version in Go."""
    if stated.name != actual.name or not stated.qualifiers <= actual.qualifiers:
        return False
    if not stated.version or stated.version == actual.version:
        return True
    return stated.name[0] == "golang" and _bare(stated.version) == _bare(actual.version)


def _bare(version: str) -> str:
    return version.removeprefix("go").removeprefix("v")


@functools.lru_cache(maxsize=1 << 16)
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


def _read(texts: Iterable[str]) -> list[Purl]:
    return [purl for text in texts if (purl := purl_parts(text))]


_LOWER = frozenset(("pypi", "deb", "rpm", "apk", "oci", "github", "bitbucket", "golang"))

"""An advisory as it is kept, and how it is made from a document in the OSV schema (ossf.github.io/osv-schema).

Only what a report needs is kept, and within bounds. Versions that an advisory lists and that its ranges cover already are
left out: that changes no answer and makes the database several times smaller.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from trimtab.model.clock import parse_time
from trimtab.systems.images.vulnerabilities import ecosystems, severity
from trimtab.systems.images.vulnerabilities.ranges import Event, Range, covers
from trimtab.systems.images.vulnerabilities.severity import Severity
from trimtab.systems.images.vulnerabilities.versions import LONGEST, scheme_of

TITLE, DETAILS, REFERENCES, ALIASES = 300, 2000, 10, 50
"""Characters of title and details, references and other names: what a report shows."""


class DocumentError(Exception):
    """A document that is not kept; the text is the reason, of which there are few."""


class Advisory(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a report says of a vulnerability. `cves` are those of `aliases`; an advisory of a distribution may have many."""

    id: str
    aliases: tuple[str, ...]
    cves: tuple[str, ...]
    title: str
    details: str
    severity: Severity
    references: tuple[str, ...]
    published: str


class Affected(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Which versions of one package are affected. `severity` is the distribution's own word for this package."""

    ranges: tuple[Range, ...]
    versions: tuple[str, ...]
    severity: Severity | None = None


class Read(NamedTuple):
    """A document that was read: the advisory and what it affects, by (ecosystem, name).

    `advisory` is None, and `why` says the reason, when it says nothing (any more): an older copy of it is not kept either.
    """

    id: str
    modified: str
    advisory: Advisory | None
    affected: dict[tuple[str, str], tuple[Affected, ...]]
    why: str = ""


def read(document: bytes) -> Read:
    """A document of OSV data. DocumentError, with a reason."""
    try:
        osv = _DECODER.decode(document)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError):
        raise DocumentError("no OSV document") from None
    except RecursionError:
        raise DocumentError("nested too deeply") from None
    if not _ID.fullmatch(osv.id):
        raise DocumentError("without a proper id")
    try:
        modified = parse_time(osv.modified).isoformat(timespec="microseconds")
    except ValueError:
        raise DocumentError("without a proper time of modification") from None
    if osv.withdrawn:
        return Read(osv.id, modified, None, {}, "withdrawn")
    affected: dict[tuple[str, str], tuple[Affected, ...]] = {}
    for each in osv.affected or ():
        if each.package is None or not each.package.name:
            continue
        ecosystem = ecosystems.stored(each.package.ecosystem)
        scheme = scheme_of(ecosystem)
        if scheme is None or len(each.package.name) > _NAME or len(ecosystem) > _NAME:
            continue
        name = each.package.name
        if ecosystem == "PyPI":
            name = ecosystems.normalized_python(name)
        made = _affected(each, scheme)
        known = affected.get((ecosystem, name), ())
        if made is not None and made not in known:
            affected[ecosystem, name] = (*known, made)
    if not affected:
        return Read(osv.id, modified, None, {}, "no package of an ecosystem that is matched here")
    return Read(osv.id, modified, _advisory(osv), affected)


def _advisory(osv: _Osv) -> Advisory:
    others = [*(osv.aliases or ()), *(osv.upstream or ())]
    if not any(_CVE.fullmatch(name) for name in (osv.id, *others)) and _of_distribution(osv):
        others.extend(osv.related or ())
    aliases = tuple(dict.fromkeys(name for name in others if _ID.fullmatch(name) and name != osv.id))[:ALIASES]
    cves = tuple(name for name in (osv.id, *aliases) if _CVE.fullmatch(name))
    title = (osv.summary or "").strip() or (osv.details or "").strip().partition("\n")[0]
    return Advisory(
        id=osv.id,
        aliases=aliases,
        cves=cves,
        title=_cut(title, TITLE),
        details=_cut((osv.details or "").strip(), DETAILS),
        severity=_severity(osv, title),
        references=tuple(_references(osv)),
        published=(osv.published or "")[:40],
    )


def _severity(osv: _Osv, title: str) -> Severity:
    by_vector = severity.of_vectors((each.type, each.score) for each in osv.severity or ())
    word = osv.database_specific.get("severity") if isinstance(osv.database_specific, dict) else None
    return (
        by_vector
        or severity.of_word(word, "database_specific.severity")
        or (severity.of_title(title) if _of_distribution(osv) else None)
        or severity.UNKNOWN
    )


def _affected(each: _Affected, scheme: str) -> Affected | None:
    ranges = []
    for one in each.ranges or ():
        events = tuple(_events(one))
        if events:
            ranges.append(Range(one.type, events))
    listed = [version for version in each.versions or () if len(version) <= LONGEST]
    told = tuple(one for one in ranges if one.type != "GIT")
    if told or listed:
        ranges = list(told)  # commits say nothing more about packages that have versions
    kept = tuple(ranges)
    versions = tuple(dict.fromkeys(version for version in listed if not covers(scheme, version, kept)))
    if not kept and not versions:
        return None
    return Affected(kept, versions, _own_severity(each))


def _own_severity(each: _Affected) -> Severity | None:
    """Of this package: a vector, Ubuntu's priority, Debian's urgency, or a label of the database."""
    found = severity.of_vectors((one.type, one.score) for one in each.severity or ())
    if found:
        return found
    for name, part in (("ecosystem_specific", each.ecosystem_specific), ("database_specific", each.database_specific)):
        if isinstance(part, dict):
            for field, source in (("urgency", "Debian urgency"), ("severity", f"{name}.severity")):
                if found := severity.of_word(part.get(field), source):
                    return found
    return None


def _events(each: _Range) -> list[Event]:
    events: list[Event] = []
    for event in each.events or ():
        for kind, version in (
            ("introduced", event.introduced),
            ("fixed", event.fixed),
            ("last_affected", event.last_affected),
            ("limit", event.limit),
        ):
            if version is not None:
                events.append(Event(kind, version[: LONGEST + 1]))  # type: ignore[arg-type]
    return events


def _references(osv: _Osv) -> list[str]:
    """Advisories and fixes first; only what a browser may open."""
    links = sorted(osv.references or (), key=lambda link: link.type not in ("ADVISORY", "FIX"))
    urls = [link.url for link in links if link.url.startswith(("https://", "http://")) and len(link.url) <= _NAME]
    return list(dict.fromkeys(urls))[:REFERENCES]


def _of_distribution(osv: _Osv) -> bool:
    return any(
        each.package and scheme_of(each.package.ecosystem) in ("deb", "apk", "rpm") for each in osv.affected or ()
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


class _Package(msgspec.Struct):
    ecosystem: str = ""
    name: str = ""


class _Event(msgspec.Struct):
    introduced: str | None = None
    fixed: str | None = None
    last_affected: str | None = None
    limit: str | None = None


class _Range(msgspec.Struct):
    type: str = ""
    events: list[_Event] | None = None


class _Severity(msgspec.Struct):
    type: str = ""
    score: str = ""


class _Reference(msgspec.Struct):
    type: str = ""
    url: str = ""


class _Affected(msgspec.Struct):
    package: _Package | None = None
    ranges: list[_Range] | None = None
    versions: list[str] | None = None
    severity: list[_Severity] | None = None
    ecosystem_specific: Any = None
    database_specific: Any = None


class _Osv(msgspec.Struct):
    """The fields of the schema that are read."""

    id: str
    modified: str
    published: str | None = None
    withdrawn: str | None = None
    aliases: list[str] | None = None
    upstream: list[str] | None = None
    related: list[str] | None = None
    summary: str | None = None
    details: str | None = None
    severity: list[_Severity] | None = None
    affected: list[_Affected] | None = None
    references: list[_Reference] | None = None
    database_specific: Any = None


_DECODER = msgspec.json.Decoder(_Osv)
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._/-]{0,127}")
_CVE = re.compile(r"CVE-[0-9]{4}-[0-9]{4,19}")
_NAME = 500

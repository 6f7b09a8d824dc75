"""OpenVEX documents (openvex.dev, v0.0.1 to v0.2.0), read within bounds.

A document is someone's statements about whether products are affected by vulnerabilities. A statement that breaks the
specification in what matters here (no known status, no product, `not_affected` without a reason) is left out and named,
because it must not suppress anything; the others of its document count.
"""

from __future__ import annotations

import functools

import msgspec

from trimtab.model.clock import format_micro_time, parse_time

LARGEST = 16 << 20
STATEMENTS, PRODUCTS, PROBLEMS, TEXT = 50_000, 20_000, 20, 1000
STATUSES = frozenset(("not_affected", "affected", "fixed", "under_investigation"))


class VexError(Exception):
    """A document cannot be read as OpenVEX; the text says why."""


class Product(msgspec.Struct, frozen=True, gc=False):
    """A package or an image by its package URLs, and the parts of it that are meant; none means all."""

    purls: tuple[str, ...]
    subcomponents: tuple[str, ...] = ()


class Statement(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`vulnerabilities` are all the names of one vulnerability. `timestamp` is "" when nobody says the time."""

    vulnerabilities: tuple[str, ...]
    products: tuple[Product, ...]
    status: str
    justification: str = ""
    text: str = ""
    timestamp: str = ""


class VexDocument(msgspec.Struct, frozen=True, kw_only=True):
    """`problems` names the statements that were left out, and times that are none."""

    id: str
    author: str
    version: int
    timestamp: str
    statements: tuple[Statement, ...]
    problems: tuple[str, ...] = ()


def parse(content: bytes) -> VexDocument:
    """One document. VexError."""
    if len(content) > LARGEST:
        raise VexError(f"it is over {LARGEST:,} bytes")
    try:
        raw = _DECODER.decode(content)
    except msgspec.DecodeError as error:
        raise VexError(f"it is no OpenVEX document: {str(error)[:200]}") from None
    except (RecursionError, UnicodeDecodeError):
        raise VexError("it is no OpenVEX document: nested too deeply, or no UTF-8") from None
    if not raw.context.startswith(_CONTEXT):
        raise VexError(f"its @context is not {_CONTEXT}")
    if len(raw.statements) > STATEMENTS:
        raise VexError(f"it has more than {STATEMENTS:,} statements")
    stamped = _time(raw.timestamp) or _time(raw.last_updated)
    statements: list[Statement] = []
    problems = _time_problems(raw)
    for number, each in enumerate(raw.statements):
        try:
            statements.append(_statement(each, stamped))
            wrong = _time_problems(each)
        except VexError as error:
            wrong = [str(error)]
        if len(problems) < PROBLEMS:
            problems += [f"statement {number}: {problem}" for problem in wrong]
    return VexDocument(
        id=raw.id[:TEXT],
        author=raw.author[:TEXT],
        version=raw.version if isinstance(raw.version, int) else int(raw.version) if raw.version.isdecimal() else 0,
        timestamp=stamped,
        statements=tuple(statements),
        problems=tuple(problems[:PROBLEMS]),
    )


def _statement(raw: _Statement, stamped: str) -> Statement:
    names = _names(raw.vulnerability)
    if not names:
        raise VexError("it names no vulnerability")
    if raw.status not in STATUSES:
        raise VexError(f"its status {raw.status[:40]!r} is none of {', '.join(sorted(STATUSES))}")
    if raw.status == "not_affected" and not (raw.justification or raw.impact_statement):
        raise VexError("it says not_affected without a justification or an impact statement")
    products = tuple(made for each in (raw.products or ())[:PRODUCTS] if (made := _product(each)).purls)
    if not products:
        raise VexError("it names no product by a package URL")
    return Statement(
        vulnerabilities=names,
        products=products,
        status=raw.status,
        justification=(raw.justification or "")[:TEXT],
        text=(raw.impact_statement or raw.action_statement or raw.status_notes or "")[:TEXT],
        timestamp=_time(raw.last_updated) or _time(raw.timestamp) or stamped,
    )


def _names(raw: _Vulnerability | str) -> tuple[str, ...]:
    given = [raw] if isinstance(raw, str) else [raw.name, raw.id, *(raw.aliases or ())]
    ends = [
        name.rpartition("/")[2] if "://" in name else name for name in given
    ]  # an @id may be a link that ends in it
    return tuple(dict.fromkeys(name[:_NAME] for name in ends if name))


def _product(raw: _Product | str) -> Product:
    if isinstance(raw, str):
        return Product(_purls(raw))
    subcomponents = [purl for part in raw.subcomponents or () for purl in _purls_of(part)]
    return Product(_purls_of(raw), tuple(dict.fromkeys(subcomponents))[:PRODUCTS])


def _purls_of(raw: _Component | str) -> tuple[str, ...]:
    if isinstance(raw, str):
        return _purls(raw)
    found = _purls(raw.id)
    purl = (raw.identifiers or {}).get("purl")
    return tuple(dict.fromkeys((*found, *_purls(purl)))) if isinstance(purl, str) else found


def _purls(text: str) -> tuple[str, ...]:
    return (text,) if text.startswith("pkg:") and len(text) <= TEXT else ()


def _time_problems(raw: _Document | _Statement) -> list[str]:
    """Which statement is the latest decides, so a time that cannot be read is not passed over in silence."""
    return [
        f"its {name} {text[:40]!r} is no time such as 2026-01-31T12:00:00Z, and is not read"
        for name, text in (("timestamp", raw.timestamp), ("last_updated", raw.last_updated))
        if text and not _time(text)
    ]


@functools.lru_cache(maxsize=4096)
def _time(text: str | None) -> str:
    """In UTC with six digits, so that texts sort as times do; "" for none and for what is no time."""
    try:
        return format_micro_time(parse_time(text)) if text else ""
    except ValueError:
        return ""


class _Vulnerability(msgspec.Struct):
    id: str = msgspec.field(name="@id", default="")
    name: str = ""
    aliases: list[str] | None = None


class _Component(msgspec.Struct):
    id: str = msgspec.field(name="@id", default="")
    identifiers: dict[str, object] | None = None


class _Product(_Component):
    subcomponents: list[_Component | str] | None = None


class _Statement(msgspec.Struct):
    vulnerability: _Vulnerability | str = ""
    products: list[_Product | str] | None = None
    status: str = ""
    justification: str | None = None
    impact_statement: str | None = None
    action_statement: str | None = None
    status_notes: str | None = None
    timestamp: str | None = None
    last_updated: str | None = None


class _Document(msgspec.Struct):
    """The fields of the specification that are read."""

    context: str = msgspec.field(name="@context")
    id: str = msgspec.field(name="@id", default="")
    author: str = ""
    version: int | str = 0
    timestamp: str | None = None
    last_updated: str | None = None
    statements: list[_Statement] = []


_CONTEXT = "https://openvex.dev/ns"
_DECODER = msgspec.json.Decoder(_Document)
_NAME = 128

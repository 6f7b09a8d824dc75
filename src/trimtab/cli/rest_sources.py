"""What `trimtab rest` commands begin with: OpenAPI documents in a file, a folder or at a URL, and the definitions of kinds
in them, proposed or given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec
import orjson

from trimtab.cli.codes import FAILED, NOT_FOUND, USAGE, Problem
from trimtab.cli.manifests import Bad, read
from trimtab.model.document import read as decoded
from trimtab.model.resource import Resource
from trimtab.model.scheme import Scheme
from trimtab.systems.rest.compiling.kind_names import camel, plural_name
from trimtab.systems.rest.compiling.proposing import NoSuchKind, Proposal, conflicts, proposals, propose
from trimtab.systems.rest.kinds import RestDefinition, RestService
from trimtab.systems.rest.openapi import Document, DocumentError, from_path, from_url
from trimtab.systems.rest.openapi.reading import MOST_BYTES, parsed, unpacked

R = TypeVar("R", bound=Resource)
ENDINGS = (".json", ".yaml", ".yml", ".gz")
SHOWN = 40
"""How many kinds are named where one is not there."""
SPECIFICATION = "specification"  # the root of Azure's documents


class Source(msgspec.Struct, frozen=True):
    """One document, and what it is called."""

    label: str
    document: Document


class Sources(msgspec.Struct, frozen=True):
    """All documents that were asked for: the newest first, previews last. `name` is what a service of them may be called;
    `left_out` are files of a folder that are no documents, with the reason."""

    name: str
    found: tuple[Source, ...]
    url: str = ""
    left_out: tuple[str, ...] = ()


class Planned(msgspec.Struct, frozen=True):
    """A kind to be, and the document that has its paths. `joins` are reads below it that its status may have, too."""

    definition: RestDefinition
    source: Source
    joins: tuple[str, ...] = ()


async def gathered(spec: str, root: Path | None) -> Sources:
    """A Problem for what cannot be had or is no document."""
    try:
        if urlsplit(spec).scheme in ("http", "https"):
            return await _from_url(spec)
        return _from_disk(Path(spec), root)
    except DocumentError as error:
        raise Problem(str(error)) from None


def proposed(sources: Sources, service: str, only: Sequence[str]) -> tuple[list[Planned], list[str]]:
    """The kinds that the documents have, by their URLs, and notes on what is left out. Two documents' kinds of one name are
    told apart by the documents' names; a path that several have, as versions of an API do, is taken from the newest."""
    planned: list[Planned] = []
    notes = []
    for source in sources.found:
        found = _proposals(source, service, only)
        joins = {each.path: tuple(join.path for join in each.candidates) for each in found}
        definitions = [each.definition for each in found]
        if len(sources.found) > 1:
            kept = _apart(definitions, [each.definition for each in planned], source)
            if len(kept) < len(definitions):
                notes.append(f"{source.label}: {len(definitions) - len(kept)} resources that another document has")
            definitions = kept
        planned += [Planned(each, source, joins.get(_own_path(each), ())) for each in definitions]
    for word in only:
        if not any(_chosen(source, service, (word,)) for source in sources.found):
            raise Problem(f"there is no resource {word}; --only takes kinds and paths, as {_some(sources)}", NOT_FOUND)
    if not planned:
        raise Problem(
            f"{sources.name} has no paths that are resources: write a RestDefinition, see --definitions", FAILED
        )
    return planned, notes


def given(file: Path, sources: Sources, service: str) -> tuple[list[Planned], RestService | None]:
    """The definitions of a file, and the service in it."""
    definitions, services = [], []
    for each in read([str(file)]):
        if isinstance(each, Bad):
            raise Problem(f"{each.where} {each.problem}")
        if each.kind == "RestDefinition":
            definitions.append(_read(each.document, each.where, RestDefinition))
        elif each.kind == "RestService":
            services.append(_read(each.document, each.where, RestService))
    if not definitions:
        raise Problem(f"{file} has no RestDefinition", NOT_FOUND)
    if service:
        services = [each for each in services if each.name == service]
        definitions = [each for each in definitions if each.spec.service_ref == service]
        if not definitions:
            raise Problem(f"{file} has no RestDefinition of the service {service}", NOT_FOUND)
    named = {each.spec.service_ref for each in definitions}
    if len(named) > 1:
        raise Problem(
            f"{file} has definitions of several services, choose with --service: {', '.join(sorted(named))}", USAGE
        )
    if wrong := conflicts(definitions):
        raise Problem("; ".join(wrong))
    own = next((each for each in services if each.name in named), None)
    return [Planned(each, _holding(each, sources)) for each in definitions], own


def parent_of(definition: RestDefinition, planned: Sequence[Planned]) -> RestDefinition | None:
    """The definition of the kind that it names as its parent, if that is planned too."""
    above = definition.spec.parent
    return next((each.definition for each in planned if above and each.definition.spec.names.kind == above), None)


def slug(name: str) -> str:
    """A name that a group may begin with."""
    stem = name.removesuffix(".gz")
    stem = stem.rpartition(".")[0] or stem
    return re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:40].strip("-") or "service"


async def _from_url(url: str) -> Sources:
    from trimtab.runtime.outbound import Outbound, OutboundError

    try:
        async with Outbound() as outbound:
            document = await from_url(outbound, url)
    except OutboundError as error:
        raise Problem(str(error)) from None
    name = urlsplit(url).path.rpartition("/")[2] or urlsplit(url).netloc
    return Sources(slug(name), (Source(name, document),), url=url)


def _from_disk(path: Path, root: Path | None) -> Sources:
    if path.is_dir():
        return _from_folder(path, root)
    if not path.exists():
        raise Problem(f"there is no file or folder {path}", NOT_FOUND)
    return Sources(slug(path.name), (Source(path.name, from_path(path, root)),))


def _from_folder(folder: Path, root: Path | None) -> Sources:
    found, left_out = [], []
    above = root or (None if SPECIFICATION in folder.resolve().parts else folder)
    for path in _files(folder):
        try:
            if not _is_document(path):
                continue
            found.append(Source(path.relative_to(folder).as_posix(), from_path(path, above)))
        except DocumentError as error:
            left_out.append(str(error))
    if not found:
        more = f": {'; '.join(left_out[:5])}" if left_out else ""
        raise Problem(
            f"no file in {folder} is an OpenAPI document with paths{more}", NOT_FOUND if not left_out else FAILED
        )
    found.sort(key=lambda source: source.document.version, reverse=True)
    found.sort(key=lambda source: "preview" in source.document.version.lower())
    return Sources(slug(folder.resolve().name), tuple(found), left_out=tuple(left_out))


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.suffix in ENDINGS and "examples" not in path.relative_to(folder).parts[:-1] and path.is_file():
            yield path


def _is_document(path: Path) -> bool:
    """Whether a file says that it is one and has paths: others hold what documents share."""
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    text = unpacked(path.name, content)
    if b"swagger" not in text and b"openapi" not in text:
        return False
    tree = parsed(path.name, text)
    return ("swagger" in tree or "openapi" in tree) and bool(tree.get("paths") or tree.get("x-ms-paths"))


def _proposals(source: Source, service: str, only: Sequence[str]) -> list[Proposal]:
    words = [word for word in only if _chosen(source, service, (word,))]
    return proposals(source.document, service, only=words) if words or not only else []


def _own_path(definition: RestDefinition) -> str:
    """Of one resource, as a proposal has it."""
    operations = definition.spec.operations
    own = operations.update or operations.patch or operations.delete or operations.read or operations.create
    return own.path


def _chosen(source: Source, service: str, only: Sequence[str]) -> bool:
    try:
        return bool(propose(source.document, service, only=only))
    except NoSuchKind:
        return False


def _some(sources: Sources) -> str:
    kinds = {each.spec.names.kind for source in sources.found for each in propose(source.document, "any")}
    more = f" and {len(kinds) - SHOWN} more" if len(kinds) > SHOWN else ""
    return ", ".join(sorted(kinds)[:SHOWN]) + more


def _apart(definitions: list[RestDefinition], before: list[RestDefinition], source: Source) -> list[RestDefinition]:
    paths = {each.spec.operations.create.path.lower() for each in before}
    kinds = {each.spec.names.kind for each in before} | {each.spec.names.plural for each in before}
    new = [each for each in definitions if each.spec.operations.create.path.lower() not in paths]
    names = {}
    for each in new:
        kind = each.spec.names.kind
        if kind in kinds or each.spec.names.plural in kinds:
            names[kind] = _free(camel(slug(Path(source.label).name)) + kind, kinds)
            kinds |= {names[kind], plural_name(names[kind])}
    return [_renamed(each, names) for each in new]


def _free(kind: str, taken: set[str]) -> str:
    name, number = kind, 2
    while name in taken or plural_name(name) in taken:
        name, number = f"{kind}{number}", number + 1
    return name


def _renamed(definition: RestDefinition, names: dict[str, str]) -> RestDefinition:
    spec = definition.spec
    spec = spec.replace(parent=names.get(spec.parent, spec.parent))
    kind = names.get(spec.names.kind)
    if kind is None:
        return definition.replace(spec=spec)
    plural = plural_name(kind)
    spec = spec.replace(names=spec.names.replace(kind=kind, plural=plural))
    metadata = msgspec.structs.replace(definition.metadata, name=f"{plural}.{spec.service_ref}")
    return definition.replace(spec=spec, metadata=metadata)


def _holding(definition: RestDefinition, sources: Sources) -> Source:
    """The document with the path of its creation; the first, which will be asked for it, when none has it."""
    create = definition.spec.operations.create
    key = (create.method, create.path.partition("?")[0])
    return next((each for each in sources.found if key in each.document.operations), sources.found[0])


def _read(document: dict[str, object], where: str, cls: type[R]) -> R:
    try:
        return decoded(orjson.dumps(document), cls)
    except (msgspec.ValidationError, orjson.JSONEncodeError) as error:
        raise Problem(f"{where} is no valid {cls.__name__}: {error}") from None


def group_of(service: str) -> str:
    return f"{service}.{Scheme().group('rest')}"

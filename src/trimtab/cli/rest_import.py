"""`trimtab rest import`: the YAML of what exists at a service. Applied, it adopts that without a write."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import msgspec
from msgspec import UNSET

from trimtab.cli.access import Access, Session, session
from trimtab.cli.bar import Bar
from trimtab.cli.codes import FAILED, NOT_FOUND, OK, REFUSED, USAGE, Problem, complain, run
from trimtab.cli.rest_sources import group_of
from trimtab.client.protocol import Named, Query
from trimtab.model.conditions import get_condition
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.yaml import dump
from trimtab.runtime.system import NAMESPACE
from trimtab.systems.rest.calling.contract import CallError, ErrorClass
from trimtab.systems.rest.hooks import NoHook, installed
from trimtab.systems.rest.importing import BadIdentifier, Imported, Importer, Kind, NotThere
from trimtab.systems.rest.importing.naming import Names
from trimtab.systems.rest.kinds import RestDefinition, RestService
from trimtab.systems.rest.model import Model
from trimtab.systems.rest.models import kept, name_of

if TYPE_CHECKING:
    from trimtab.systems.rest.calling.service import Service

EVERY = 100
"""Documents between two lines of progress, where there is no terminal."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """One ID, or all."""

    service: str
    identifier: str = ""
    everything: bool = False
    kinds: tuple[str, ...] = ()
    children: bool = True
    out: Path | None = None


def import_(access: Access, options: Options) -> int:
    if bool(options.identifier) is options.everything:
        complain("give either an ID or --all")
        return USAGE
    return run(_import(access, options))


async def _import(access: Access, options: Options) -> int:
    from trimtab.runtime.credentials import Credentials
    from trimtab.systems.rest.calling.connecting import Connections

    async with session(access) as server:
        service = await _service(server, options.service)
        kinds = await _kinds(server, service)
        only = [_chosen(kinds, word) for word in options.kinds]
        async with Credentials(server.client) as credentials, Connections(credentials) as connections:
            try:
                caller = await connections.caller(service, server.namespace)
                return await _walked(server, service, kinds, only, caller, options)
            except CallError as error:
                raise Problem(str(error), _code(error)) from None
            except BadIdentifier as error:
                raise Problem(str(error), USAGE) from None
            except NotThere as error:
                raise Problem(str(error), NOT_FOUND) from None


async def _walked(
    server: Session, service: RestService, kinds: Sequence[Kind], only: Sequence[str], caller: Service, options: Options
) -> int:
    problems: list[str] = []
    importer = Importer(
        caller,
        kinds,
        values=service.spec.parameters,
        namespace=server.namespace,
        only=only,
        names=Names(await _objects(server, kinds)),
        problem=problems.append,
    )
    if options.everything:
        documents = importer.all(children=options.children)
    else:
        documents = importer.one(options.identifier, children=options.children)
    with _output(options.out) as out, Bar(f"importing {service.name}") as bar:
        secrets = await _write(documents, out, bar)
    if secrets:
        named = ", ".join(f"{name} ({', '.join(keys)})" for name, keys in sorted(secrets.items()))
        print(f"make these Secrets in the namespace {server.namespace} first: {named}", file=sys.stderr)
    for problem in problems:
        complain(problem)
    return FAILED if problems else OK


async def _write(documents: AsyncIterator[Imported], out: TextIO, bar: Bar) -> dict[str, Sequence[str]]:
    """Each as it comes; what must be known of it stands above it. The Secrets to make, with their keys."""
    count = 0
    secrets: dict[str, Sequence[str]] = {}
    quiet = out.isatty()
    async for imported in documents:
        out.write("---\n" + "".join(f"# {line}\n" for line in _remarks(imported)) + dump(imported.document))
        count += 1
        if imported.secrets:
            secrets[imported.secret] = sorted(imported.secrets)
        if sys.stderr.isatty() and not quiet:
            bar.show(count, note=imported.document["kind"])
        elif count % EVERY == 0 and not quiet:
            bar.note(f"{count} so far")
    if not count:
        print("there is nothing to import", file=sys.stderr)
    return secrets


def _remarks(imported: Imported) -> Iterator[str]:
    for key, path in sorted(imported.secrets.items()):
        yield _line(f"{path} is a secret: put it into the Secret {imported.secret}, key {key}, before you apply this")
    if imported.untold:
        yield _line(f"secrets that the service does not show; refer to a Secret to set them: {_some(imported.untold)}")
    for refused in imported.refused[:20]:
        yield _line(f"left out, since it would be refused: {refused}")


def _some(paths: Sequence[str]) -> str:
    return ", ".join(paths[:10]) + (f", and {len(paths) - 10} more" if len(paths) > 10 else "")


def _line(text: str) -> str:
    """What a service says stays within its comment."""
    return "".join(each if each.isprintable() else " " for each in text)


@contextmanager
def _output(path: Path | None) -> Iterator[TextIO]:
    """Standard output, or a file that is there only as a whole."""
    if path is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise Problem(f"{path} cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            yield out
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


# --- what the server knows ----------------------------------------------------------------------------------------------


async def _service(server: Session, name: str) -> RestService:
    try:
        found = await server.client.list(RestService, Query())
    except StatusError as error:
        if error.code != 404:
            raise
        raise Problem("the server has no RestServices: it runs no system rest", NOT_FOUND) from None
    services = [each for each in found.items if isinstance(each, RestService)]
    for each in services:
        if each.name == name:
            return each
    there = ", ".join(sorted(each.name for each in services)[:20]) or "none"
    raise Problem(f"there is no RestService {name}; there are: {there}", NOT_FOUND)


async def _kinds(server: Session, service: RestService) -> list[Kind]:
    """Those that are ready. Others are said, and it is a failure when there are none."""
    listed = (await server.client.list(RestDefinition, Query())).items
    definitions = [d for d in listed if isinstance(d, RestDefinition) and d.spec.service_ref == service.name]
    if not definitions:
        raise Problem(
            f"RestService {service.name} has no RestDefinitions: `trimtab rest generate` proposes them", NOT_FOUND
        )
    kinds, waiting = [], []
    for definition in definitions:
        model = await _model(server, definition)
        if model is None:
            waiting.append(f"{definition.name}{_why(definition)}")
            continue
        try:
            kinds.append(Kind(model=model, hooks=installed(model.overlay.hooks)))
        except NoHook as error:
            raise Problem(f"RestDefinition {definition.name}: {error}") from None
    said = "; ".join(waiting[:5])
    if not kinds:
        raise Problem(f"no kind of RestService {service.name} is ready: {said}{_why(service)}", NOT_FOUND)
    if waiting:
        print(f"Warning: left out, since they are not ready: {said}", file=sys.stderr, flush=True)
    return kinds


async def _model(server: Session, definition: RestDefinition) -> Model | None:
    name = name_of(definition.spec.names.plural, group_of(definition.spec.service_ref))
    try:
        return kept(await server.client.get(ConfigMap, name, NAMESPACE))
    except StatusError as error:
        if error.code != 404:
            raise
        return None


def _why(of: RestDefinition | RestService) -> str:
    ready = None if of.status is UNSET else get_condition(of.status.conditions, "Ready")
    if ready is None:
        return ": nobody has looked at it yet; is the system rest running?" if isinstance(of, RestDefinition) else ""
    return f": {ready.reason}: {ready.message}" if ready.status != "True" else ""


async def _objects(server: Session, kinds: Iterable[Kind]) -> dict[tuple[str, str], str]:
    """The objects that are there: what has one is imported under its name, and no other takes it."""
    found = {}
    for kind in kinds:
        model = kind.model
        try:
            named = Named(f"{model.group}/{model.version}", model.kind)
            listed = (await server.client.list(named, Query(namespace=server.namespace))).items
        except StatusError as error:
            if error.code not in (403, 404):
                raise
            why = "it is not served" if error.code == 404 else "you may not list it"
            print(f"Warning: {model.kind}: {why}, so that names may be taken already", file=sys.stderr, flush=True)
            continue
        for each in listed:
            found[model.kind, each.name] = _identifier(each.raw)
    return found


def _identifier(raw: Any) -> str:
    known = (raw.get("status") or {}).get("resourceID") or (raw.get("spec") or {}).get("resourceID")
    return known if isinstance(known, str) else ""


def _chosen(kinds: Sequence[Kind], word: str) -> str:
    for kind in kinds:
        model = kind.model
        names = (model.kind.lower(), model.plural, model.singular, *model.short_names)
        if word.lower() in names or word.lower() in (f"{name}.{model.group}" for name in names):
            return model.kind
    there = ", ".join(sorted(kind.model.kind for kind in kinds)[:40])
    raise Problem(f"--kind {word} is no kind of this service; there are: {there}", USAGE)


def _code(error: CallError) -> int:
    return {ErrorClass.AUTH: REFUSED, ErrorClass.GONE: NOT_FOUND}.get(error.kind, FAILED)

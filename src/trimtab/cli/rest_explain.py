"""`trimtab rest explain`: what may be done with each field of a generated kind, and what decided it."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import orjson

from trimtab.cli.access import Access, Session, session
from trimtab.cli.codes import NOT_FOUND, OK, USAGE, Problem, run
from trimtab.cli.rest_service import service_for
from trimtab.cli.rest_sources import Planned, gathered, given, group_of, parent_of, proposed
from trimtab.cli.tables import Printer, shown
from trimtab.client.protocol import Query
from trimtab.model.conditions import get_condition
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.runtime.system import NAMESPACE
from trimtab.systems.rest.addressing import resource_path
from trimtab.systems.rest.compiling.compile import compile_model
from trimtab.systems.rest.compiling.fields import FieldRow, fields
from trimtab.systems.rest.compiling.problems import CompileError
from trimtab.systems.rest.generating.docs import verbs
from trimtab.systems.rest.kinds import RestDefinition
from trimtab.systems.rest.model import Comparator, FieldClass, Model, Writer
from trimtab.systems.rest.models import kept, name_of

HEADERS = ("field", "type", "class", "why", "taken by", "compared")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    spec: str = ""
    definition: Path | None = None
    root: Path | None = None
    output: str = "table"
    classes: tuple[str, ...] = ()
    """Only fields of these."""


def explain(access: Access, options: Options) -> int:
    return run(_explain(access, options))


async def _explain(access: Access, options: Options) -> int:
    if options.spec:
        model = await _from_files(options)
    elif options.definition is not None:
        raise Problem("--definition needs --spec: the document that it is about", USAGE)
    else:
        async with session(access) as server:
            model = await _from_server(server, options.kind)
    rows = [row for row in fields(model) if not options.classes or row.cls.value in options.classes]
    if options.output == "json":
        sys.stdout.write(orjson.dumps(_document(model, rows), option=orjson.OPT_INDENT_2).decode() + "\n")
        return OK
    print(f"{model.kind} of {model.group}/{model.version}, at {shown(resource_path(model))}")
    print(f"managed by {', '.join(verbs(model))}\n")
    Printer(HEADERS).add([_cells(row) for row in rows])
    return OK


async def _from_files(options: Options) -> Model:
    sources = await gathered(options.spec, options.root)
    service = None
    if options.definition is not None:
        planned, service = given(options.definition, sources, "")
    else:
        planned, _ = proposed(sources, sources.name, ())
    chosen = _chosen([each.definition for each in planned], options.kind)
    found: Planned = next(each for each in planned if each.definition is chosen)
    name = chosen.spec.service_ref
    service = service or service_for(name, "", sources)
    try:
        return compile_model(
            found.source.document,
            chosen,
            service=service.spec,
            service_name=name,
            group=group_of(name),
            parent=parent_of(chosen, planned),
        )
    except CompileError as error:
        raise Problem(f"{chosen.name}: {error}") from None


async def _from_server(server: Session, word: str) -> Model:
    try:
        listed = await server.client.list(RestDefinition, Query())
    except StatusError as error:
        if error.code != 404:
            raise
        raise Problem("the server has no RestDefinitions: it runs no system rest", NOT_FOUND) from None
    chosen = _chosen([each for each in listed.items if isinstance(each, RestDefinition)], word)
    name = name_of(chosen.spec.names.plural, group_of(chosen.spec.service_ref))
    try:
        model = kept(await server.client.get(ConfigMap, name, NAMESPACE))
    except StatusError as error:
        if error.code != 404:
            raise
        model = None
    if model is None:
        raise Problem(f"nothing was compiled of RestDefinition {chosen.name} yet{_why(chosen)}", NOT_FOUND)
    return model


def _why(definition: RestDefinition) -> str:
    ready = get_condition(definition.status.conditions, "Ready") if definition.status else None
    return f": {ready.reason}: {ready.message}" if ready is not None and ready.status != "True" else ""


def _chosen(definitions: Sequence[RestDefinition], word: str) -> RestDefinition:
    """By the definition's name, or by kind or plural, alone or with the group."""
    wanted = word.lower()
    found = [each for each in definitions if wanted == each.name.lower()]
    found = found or [each for each in definitions if wanted in _names(each)]
    if not found:
        there = ", ".join(itertools.islice(sorted({each.spec.names.kind for each in definitions}), 40)) or "none"
        raise Problem(f"there is no generated kind {word}; there are: {there}", NOT_FOUND)
    if len(found) > 1:
        raise Problem(f"{word} is several kinds, name a definition: {', '.join(each.name for each in found)}", USAGE)
    return found[0]


def _names(definition: RestDefinition) -> set[str]:
    names, group = definition.spec.names, group_of(definition.spec.service_ref)
    words = {names.kind.lower(), names.plural, *names.short_names}
    return words | {f"{name}.{group}" for name in words} | {f"{name}.{definition.spec.service_ref}" for name in words}


def _cells(row: FieldRow) -> tuple[str, ...]:
    path = f"{row.path} ({row.variant})" if row.variant else row.path
    compared = "" if row.cls is FieldClass.READ_ONLY or row.compare is Comparator.EXACT else row.compare.value
    return shown(path), shown(row.type), row.cls.value, shown(row.why), ",".join(_writers(row)), compared


def _writers(row: FieldRow) -> list[str]:
    return [str(each.name).lower() for each in (Writer.CREATE, Writer.UPDATE, Writer.PATCH) if each in row.writers]


def _document(model: Model, rows: Sequence[FieldRow]) -> dict[str, Any]:
    return {
        "kind": model.kind,
        "group": model.group,
        "version": model.version,
        "plural": model.plural,
        "path": resource_path(model),
        "managedBy": verbs(model),
        "fields": [
            {
                "path": row.path,
                "type": row.type,
                "class": row.cls.value,
                "why": row.why,
                "writers": _writers(row),
                "compare": row.compare.value,
                **({"variant": row.variant} if row.variant else {}),
                **({"description": row.description} if row.description else {}),
            }
            for row in rows
        ],
    }

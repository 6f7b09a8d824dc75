"""`trimtab rest generate`: from OpenAPI documents to kinds: definitions, CRDs, rights, a webhook, typed structs, docs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from trimtab.cli.bar import Bar
from trimtab.cli.codes import OK, USAGE, Problem, complain, run
from trimtab.cli.rest_service import service_documents, service_for
from trimtab.cli.rest_sources import Planned, Sources, gathered, given, group_of, parent_of, proposed
from trimtab.model.scheme import Scheme
from trimtab.model.yaml import dump
from trimtab.systems.rest.compiling.compile import compile_model
from trimtab.systems.rest.compiling.problems import CompileError
from trimtab.systems.rest.generating.cluster import cluster
from trimtab.systems.rest.generating.crd import crd
from trimtab.systems.rest.generating.docs import docs
from trimtab.systems.rest.generating.schema import TooLarge
from trimtab.systems.rest.generating.structs import structs
from trimtab.systems.rest.kinds import RestService
from trimtab.systems.rest.model import Model

Document = dict[str, Any]

MANY = 50
"""From so many kinds on, it is shown how far it is."""
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    spec: str
    service: str = ""
    endpoint: str = ""
    root: Path | None = None
    only: tuple[str, ...] = ()
    definitions: Path | None = None
    out: Path | None = None


class Made(msgspec.Struct, frozen=True):
    """What is generated. `planned` and `models` belong together, one by one."""

    service: RestService
    planned: list[Planned]
    models: list[Model]


def generate(options: Options) -> int:
    return run(_generate(options))


async def _generate(options: Options) -> int:
    sources = await gathered(options.spec, options.root)
    _note(sources.left_out)
    made = _made(options, sources)
    if options.out is None:
        parts = [*_crds(made), *cluster(made.models, made.service.name)]
        if options.endpoint:
            parts += service_documents(made.service, made.planned)
        sys.stdout.write(f"{_yaml(parts)}---\n{_definitions(made)}")
        return OK
    _write(options.out, made)
    return OK


def _made(options: Options, sources: Sources) -> Made:
    own: RestService | None = None
    if options.definitions is not None:
        planned, own = given(options.definitions, sources, options.service)
        name = planned[0].definition.spec.service_ref
    else:
        name = options.service or sources.name
        planned, notes = proposed(sources, _checked(name), options.only)
        _note(notes)
    service = own or service_for(_checked(name), options.endpoint, sources)
    if own is not None and options.endpoint:
        service = own.replace(spec=own.spec.replace(endpoint=options.endpoint))
    return _compiled(service, planned, strict=options.definitions is not None)


def _compiled(service: RestService, planned: list[Planned], *, strict: bool) -> Made:
    """A proposal that does not hold is left out and named; a definition that someone wrote must be right."""
    made = Made(service, [], [])
    wrong = []
    with Bar("generate") as bar:
        for number, each in enumerate(planned):
            if len(planned) >= MANY:
                bar.show(number, len(planned), "kinds")
            try:
                model = compile_model(
                    each.source.document,
                    each.definition,
                    service=service.spec,
                    service_name=service.name,
                    group=group_of(service.name),
                    parent=parent_of(each.definition, planned),
                )
            except CompileError as error:
                wrong.append(f"{each.definition.name}: {error}")
                continue
            made.planned.append(each)
            made.models.append(model)
    if wrong and (strict or not made.models):
        for why in wrong[:-1]:
            complain(why)
        raise Problem(wrong[-1])
    _note([f"{why}; write a RestDefinition for it if you need it" for why in wrong])
    return made


def _write(folder: Path, made: Made) -> None:
    """All files, or none when one cannot be made."""
    files = {
        "service.yaml": _yaml(service_documents(made.service, made.planned)),
        "definitions.yaml": _definitions(made),
        "crds.yaml": _yaml(_crds(made)),
        "cluster.yaml": _yaml(cluster(made.models, made.service.name)),
        "kinds.py": structs(made.models),
        "docs.md": docs(made.models),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise Problem(f"{error.filename}: {error.strerror}") from None
    for name in files:
        print(folder / name)
    print(f"{len(made.models)} kinds of {made.service.name}", file=sys.stderr)


def _note(left_out: Sequence[str]) -> None:
    for why in left_out:
        print(f"left out: {' '.join(why.split())}", file=sys.stderr)


def _crds(made: Made) -> list[Document]:
    try:
        return [crd(model) for model in made.models]
    except TooLarge as error:
        raise Problem(f"{error}; leave fields out by overlay.fields.PATH.class: ignored, see --definitions") from None


def _definitions(made: Made) -> str:
    """As YAML, with what could be added."""
    return "---\n".join(_hint(each) + dump(Scheme().document(each.definition)) for each in made.planned)


def _hint(planned: Planned) -> str:
    if not planned.joins:
        return ""
    paths = ", ".join(json.dumps(path) for path in planned.joins)
    return f"# Its status may have more: spec.joins with a name and one of these paths: {paths}\n"


def _yaml(documents: Sequence[Document]) -> str:
    return "---\n".join(dump(document) for document in documents)


def _checked(service: str) -> str:
    if not _NAME.fullmatch(service):
        raise Problem(f'"{service}" cannot name a service: use lower case letters, digits and - (--service)', USAGE)
    return service

"""A reference page of generated kinds, in Markdown: what each is, how it is managed, its fields with their classes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from trimtab.model.yaml import dump
from trimtab.systems.rest.addressing import resource_path
from trimtab.systems.rest.compiling.fields import FieldRow, fields
from trimtab.systems.rest.generating.example import example
from trimtab.systems.rest.model import Call, FieldClass, Model

ROWS = 1000
"""Of one table; `trimtab rest explain` has all."""
DESCRIPTION = 200


def docs(models: Sequence[Model]) -> str:
    """One page for the kinds of a service."""
    services = ", ".join(dict.fromkeys(model.service for model in models))
    lines = [
        f"# Kinds of {services}",
        "",
        "Made by `trimtab rest generate`: changes are lost when it runs again.",
        "",
        "| kind | of | managed by |",
        "| --- | --- | --- |",
    ]
    lines += [
        f"| [{model.kind}](#{model.kind.lower()}) | {model.parent or model.service} | {', '.join(verbs(model))} |"
        for model in models
    ]
    for model in models:
        lines += ["", *_section(model)]
    return "\n".join(lines) + "\n"


def verbs(model: Model) -> list[str]:
    """What can be done to it, with the method of each."""
    calls = model.calls
    named: list[tuple[str, Call | None]] = [
        ("create", calls.create),
        ("read", calls.read),
        ("update", calls.update),
        ("patch", calls.patch),
        ("delete", calls.delete),
        ("list", calls.list),
    ]
    return [f"{name} ({call.method})" for name, call in named if call is not None]


def _section(model: Model) -> Iterator[str]:
    yield f"## {model.kind}"
    yield ""
    yield from ([_cell(model.description, 2000), ""] if model.description else [])
    yield f"`{model.plural}.{model.group}`, version `{model.version}`; at `{resource_path(model)}`."
    yield ""
    yield f"- Managed by: {', '.join(verbs(model))}."
    if model.parent:
        yield f"- A part of: [{model.parent}](#{model.parent.lower()}), named in `spec.parent`."
    if asked := [f"`{p.name}`" for p in model.parameters if p.source == "object"]:
        yield f"- Needs in `spec.parameters`: {', '.join(asked)}."
    yield f"- Known by: {_identity(model)}."
    for field, wire in model.renamed.items():
        yield f"- `spec.{field}` is the service's `{wire}`."
    for join in model.joins:
        yield f"- `status.joined.{join.name}` comes from `{join.path}`, every {join.interval:g} s."
    for export in model.exports:
        yield f"- {', '.join(f'`{key}`' for key in export.data)} go to the {export.to} `{export.name}`."
    if model.scale_spec:
        yield f"- `kubectl scale` sets `{model.scale_spec}`."
    yield from ["", "```yaml", dump(example(model)).rstrip("\n"), "```", ""]
    yield from _table(model)


def _identity(model: Model) -> str:
    identity = model.identity
    if identity.server:
        return "an ID that the service gives" + (f" (`{identity.answer}`)" if identity.answer else "")
    if identity.parameter:
        return f"`spec.name`, which is `{{{identity.parameter}}}` of its path"
    return "its path alone: there is one of it"


def _table(model: Model) -> Iterator[str]:
    rows = list(itertools.islice(fields(model), ROWS + 1))
    yield "| field | type | class | why | what it is |"
    yield "| --- | --- | --- | --- | --- |"
    for row in rows[:ROWS]:
        yield f"| {_path(row)} | {row.type} | {row.cls.value} | {row.why} | {_cell(row.description, DESCRIPTION)} |"
    if len(rows) > ROWS:
        yield ""
        yield f"More fields follow: `trimtab rest explain {model.kind}` lists all."


def _path(row: FieldRow) -> str:
    where = "status.observed" if row.cls is FieldClass.READ_ONLY else "spec"
    dot = "" if row.path.startswith("[") else "."
    shown = f"`{where}{dot}{row.path}`".replace("|", "\\|")
    return f"{shown} (of {row.variant})" if row.variant else shown


def _cell(text: str, most: int) -> str:
    """One line without anything that Markdown or a browser would act on."""
    plain = " ".join(text.split())
    if len(plain) > most:
        plain = plain[: most - 1].rstrip() + "…"
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")

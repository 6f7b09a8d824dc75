"""All kinds that a server serves, as definitions: what `terraform install` keeps, and compares with a snapshot later.

Discovery says which there are (see served); OpenAPI says what their objects look like. Input is what the server answered,
so that this needs no server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from trimtab.terraform.kinds.definition import OBJECT, Definition, Field, Shape
from trimtab.terraform.kinds.hints import BRANCHES, NO_HINTS, Hints
from trimtab.terraform.kinds.naming import PREFIX, SUFFIX, kind_names, plural_name, snake
from trimtab.terraform.kinds.promises import NO_PROMISES, Promises
from trimtab.terraform.kinds.served import Get, Served, served_kinds, unless_gone
from trimtab.terraform.kinds.shaping import Shaper, metadata

Document = Mapping[str, Any]

FREE: Document = {wire: {"x-kubernetes-preserve-unknown-fields": True} for wire in ("spec", "status")}
"""What objects of a kind whose schema says nothing have, as far as can be told: JSON."""


def definitions(
    get: Get,
    hints: Mapping[tuple[str, str], Hints] | None = None,
    suffix: str = SUFFIX,
    promised: Promises = NO_PROMISES,
) -> list[Definition]:
    """Of all kinds of a server, by name. The same answers give the same definitions, where the same is promised."""
    kinds = served_kinds(get)
    kept = promised.of({(one.group, one.kind) for one in kinds})
    reserved = {*kept.plurals.values(), *kept.branches.values()}
    names = kind_names(((one.group, one.kind) for one in kinds), suffix, kept.types, reserved)
    documents: dict[tuple[str, str], Document] = {}
    made: list[Definition] = []
    taken = reserved | set(names.values())
    for one in kinds:
        place = f"apis/{one.group}/{one.version}" if one.group else f"api/{one.version}"
        if (one.group, one.version) not in documents:
            documents[one.group, one.version] = unless_gone(get, f"/openapi/v3/{place}") or {
                "components": {"schemas": {}}
            }
        schemas = documents[one.group, one.version]["components"]["schemas"]
        schema = _schema_of(one, schemas)
        if schema is None:
            continue
        kind = (one.group, one.kind)
        name = names[kind]
        plural = kept.plurals.get(kind) or plural_name(name, one.kind, one.plural, taken)
        taken.add(plural)
        shaper = Shaper(schemas, kept.fields.get(kind))
        whole = _definition(one, name, plural, schema, shaper, _hinted(hints or {}, kind, suffix))
        made.append(whole)
        if BRANCHES in one.categories:
            made += _branches(whole, taken, {path: said for (of, path), said in kept.branches.items() if of == kind})
    return sorted(made, key=lambda one: one.name)


def _hinted(hints: Mapping[tuple[str, str], Hints], kind: tuple[str, str], suffix: str) -> Hints:
    """A hub kind under a further suffix is the same kind: what is sensitive in it is so under every name."""
    group, name = kind
    label, dot, _ = group.partition(".")
    return hints.get(kind) or (hints.get((f"{label}.{suffix}", name)) if dot else None) or NO_HINTS


def _schema_of(one: Served, schemas: Mapping[str, Document]) -> Document | None:
    wanted = {"group": one.group, "version": one.version, "kind": one.kind}
    for schema in schemas.values():
        if wanted in (schema.get("x-kubernetes-group-version-kind") or ()):
            return schema if schema.get("properties") else {**schema, "properties": FREE}
    return None


def _definition(one: Served, name: str, plural: str, schema: Document, shaper: Shaper, hints: Hints) -> Definition:
    said, _ = shaper.resolved(schema["properties"].get("metadata") or {})
    hub = "project" in (said.get("properties") or {})
    place = ("project" if hub else "namespace") if one.namespaced else ""
    native = "." not in one.group or one.group.endswith(".k8s.io")
    root = shaper.root(schema, kind=one.kind, native=native, hints=hints)
    fields = tuple(
        sorted(
            (*root.fields, metadata(place=place, hub=hub, versioned=_is_written_only(root))),
            key=lambda field: field.name,
        )
    )
    return Definition(
        name=name,
        plural_name=plural,
        group=one.group,
        version=one.version,
        kind=one.kind,
        plural=one.plural,
        namespaced=one.namespaced,
        hub=hub,
        root=replace(root, fields=fields),
        description=" ".join(str(schema.get("description") or "").split()),
    )


def _branches(whole: Definition, taken: set[str], kept: Mapping[tuple[str, ...], str]) -> Iterator[Definition]:
    """One definition for each branch of the first choice below the spec: the others are not there, and it must be."""
    for path, shape in _objects(whole.root, ()):
        for choice in shape.choices:
            if not choice.required or not path:
                continue
            for wire in choice.wires:
                name = kept.get((*path, wire)) or f"{snake(wire)}_{snake(whole.kind)}"
                if name in taken and (*path, wire) not in kept:
                    continue
                taken.add(name)
                others = frozenset(choice.wires) - {wire}
                root = _chosen(whole.root, path, wire, others)
                yield replace(whole, name=name, plural_name="", root=root, branch=(*path, wire))
            return


def _objects(shape: Shape, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Shape]]:
    yield path, shape
    for field in shape.fields:
        if field.shape.form == OBJECT and field.wire not in ("metadata", "status"):
            yield from _objects(field.shape, (*path, field.wire))


def _chosen(shape: Shape, path: tuple[str, ...], wire: str, others: frozenset[str]) -> Shape:
    if not path:
        kept = (field for field in shape.fields if field.wire not in others)
        fields = tuple(replace(field, required=True) if field.wire == wire else field for field in kept)
        choices = tuple(choice for choice in shape.choices if wire not in choice.wires)
        return replace(shape, fields=fields, choices=choices)

    def down(field: Field) -> Field:
        if field.wire != path[0]:
            return field
        return replace(field, required=True, shape=_chosen(field.shape, path[1:], wire, others))

    return replace(shape, fields=tuple(down(field) for field in shape.fields))


def type_name(name: str) -> str:
    return f"{PREFIX}_{name}"


def _is_written_only(shape: Shape) -> bool:
    """Whether something in it is given and never shown: then only the object's version tells that it changed."""
    inner = shape.items is not None and _is_written_only(shape.items)
    return inner or any(field.write_only or _is_written_only(field.shape) for field in shape.fields)

"""A guess at how a resource is known to its service: by a name that the client gives, or by an ID that the server makes.

The guess errs to the server's side: if the client's name is taken for the ID and is not, each read finds nothing and each
reconcile would create another. If the server's is taken and the name would have done, all works.
"""

from __future__ import annotations

from collections.abc import Iterable

from trimtab.systems.rest.compiling.answers import below, success
from trimtab.systems.rest.compiling.kind_names import singular, words
from trimtab.systems.rest.kinds.definition import IdentitySpec
from trimtab.systems.rest.openapi import Operation, Schema
from trimtab.systems.rest.syncing.paths import format_path

LOCATION = "header:Location"
_IDS = ("id", "uuid", "guid", "uid")


def by_own_url(parameter: str, body: Schema | None, *, arm: bool) -> IdentitySpec:
    """Of what a PUT to its own URL creates: the client has named it there."""
    field = "" if arm else _property(body, _named_like(parameter))
    return IdentitySpec(parameter=parameter, field=field)


def by_collection(
    create: Operation, item: Operation, parameter: str, segment: str, envelope: str, *, upsert: bool
) -> IdentitySpec:
    """Of what a POST to a collection creates. `segment` is the collection's. With `upsert` the field is the ID's, which a
    later POST must have; else it is the name's, from which a resource can be found in a list."""
    body = create.body
    declared = item.parameter(parameter)
    last = words(parameter)[-1:] or [""]
    numbered = declared is not None and (
        declared.schema.type in ("integer", "number") or declared.schema.get("format") == "uuid"
    )
    by_id = is_made_by_server(parameter) or numbered
    named = _property(body, ["name"]) or _nested_name(body)
    if by_id:
        own = _property(body, [parameter, *_IDS])
        if own and body is not None and own in body.required and not numbered:
            return IdentitySpec(parameter=parameter, field=own)
        likely = _IDS if is_made_by_server(parameter) else ("number", *_IDS)
        answer = _answer(create, [parameter, *likely, "name"], envelope)
        field = named or (own if upsert else "")
        return IdentitySpec(
            parameter=parameter, field=field, assigned="server", answer=answer, find=(named,) if named else ()
        )
    is_name = last[0] == "name" or words(parameter)[-1:] == words(singular(segment))[-1:]
    field = _property(body, _named_like(parameter)) or (named if is_name else "")
    if field:
        return IdentitySpec(parameter=parameter, field=field)
    answer = _answer(create, [parameter, "name"], envelope)
    return IdentitySpec(parameter=parameter, assigned="server", answer=answer, find=(named,) if named else ())


def is_made_by_server(parameter: str) -> bool:
    """Whether a parameter is called as what servers make up."""
    return words(parameter)[-1:] != [] and words(parameter)[-1] in _IDS


def is_upsert(create: Operation, parameter: str) -> bool:
    """Whether a creation may name what exists, by an ID in its body that is not needed, and has no other name."""
    body = create.body
    own = _property(body, [parameter, *_IDS])
    return bool(own) and body is not None and own not in body.required and not _property(body, ["name"])


def _named_like(parameter: str) -> list[str]:
    """`metadata_kind` may be `metadataKind` or `kind` in a body."""
    return [parameter, words(parameter)[-1] if words(parameter) else parameter]


def _property(schema: Schema | None, names: Iterable[str]) -> str:
    """The first property that may be written and is called so, however it is spelt."""
    if schema is None:
        return ""
    there = {_plain(name): name for name, prop in schema.properties.items() if prop.get("readOnly") is not True}
    return next((format_path((there[_plain(name)],)) for name in names if _plain(name) in there), "")


def _nested_name(schema: Schema | None) -> str:
    metadata = schema.properties.get("metadata") if schema is not None else None
    return "metadata.name" if metadata is not None and "name" in metadata.properties else ""


def _answer(create: Operation, names: Iterable[str], envelope: str) -> str:
    schema = below(success(create), envelope)
    there = {_plain(name): name for name in schema.properties} if schema is not None else {}
    return next((format_path((there[_plain(name)],)) for name in names if _plain(name) in there), LOCATION)


def _plain(name: str) -> str:
    return "".join(words(name))

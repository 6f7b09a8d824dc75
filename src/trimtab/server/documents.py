"""From a request's body to a document of the right kind, for the right place, with known fields only.

Field validation (`Ignore`, `Warn`, `Strict`) decides what becomes of unknown and duplicate fields: they are always dropped;
the mode says whether silently, with a warning, or with a refusal that names all of them.
"""

from __future__ import annotations

from typing import Any

import msgspec
import orjson

from trimtab.model import metadata as object_meta
from trimtab.model.errors import FieldError, bad_request
from trimtab.model.schema.native import Undecodable
from trimtab.server import body
from trimtab.server.http import Request
from trimtab.server.registry import Served
from trimtab.server.strategy import Document
from trimtab.server.target import Target


class Read(msgspec.Struct):
    """A document that was pruned and defaulted, and what its schema has against it."""

    document: Document
    errors: list[FieldError]


def read(request: Request, served: Served, target: Target, mode: str) -> Read:
    content_type = request.header(b"content-type")
    document = body.decode(request.body, content_type, native=served.strategy.native)
    body.check_depth(request.body, document)
    duplicates = [] if mode == "Ignore" else body.duplicate_keys(request.body, content_type, document)
    checked = check_place(document, served, target)
    return Read(checked, walk(request, served, checked, mode, duplicates))


def read_applied(request: Request, served: Served, target: Target, mode: str) -> Document:
    """The body of an apply: only what the manager means, so nothing is defaulted."""
    document = body.from_json_or_yaml(request.body)
    body.check_depth(request.body, document)
    checked = check_place(document, served, target)
    found = object_meta.decode(checked["metadata"], native=served.strategy.native)
    _check_decoded(served, found.errors)
    unknown = [*found.unknown, *served.kind.schema.prune(orjson.loads(orjson.dumps(checked)))]
    _report(request, served, mode, [f'unknown field "{path}"' for path in unknown])
    return checked


def walk(request: Request, served: Served, document: Document, mode: str, duplicates: list[str] | None = None) -> list[FieldError]:
    """Prune, default and check. Kinds that are Go structs in the original do not decode at all when a type is wrong."""
    native = served.strategy.native
    decoded = object_meta.decode(document["metadata"], native=native)
    _check_decoded(served, decoded.errors)
    found = served.kind.schema.walk(document)
    if native:
        _check_decoded(served, found.errors)
        served.strategy.default(document)
    if mode != "Ignore":
        problems = [f'unknown field "{path}"' for path in (*decoded.unknown, *found.unknown)]
        problems += [f'duplicate field "{path}"' for path in duplicates or ()]
        _report(request, served, mode, problems)
    return found.errors


def check_place(document: Any, served: Served, target: Target) -> Document:
    """The document, if it is of the kind and at the name and namespace that the URL says."""
    kind = served.kind
    if not isinstance(document, dict):
        raise bad_request(_cannot_handle(served, f"json: cannot unmarshal {_go_type(document)} into Go value of type {kind.kind}"))
    _check_type(document, served)
    metadata = document.setdefault("metadata", {})
    if metadata is None:
        metadata = document["metadata"] = {}
    if not isinstance(metadata, dict):
        why = f"json: cannot unmarshal {_go_type(metadata)} into Go struct field {kind.kind}.metadata of type v1.ObjectMeta"
        raise bad_request(_cannot_handle(served, why))
    if target.name and not metadata.get("name"):
        metadata["name"] = target.name
    if kind.namespaced and not metadata.get("namespace"):
        metadata["namespace"] = target.namespace
    if not kind.namespaced:
        metadata.pop("namespace", None)
    check_identity(document, served, target)
    return document


def check_identity(document: Any, served: Served, target: Target) -> None:
    """A write may not move an object to another kind, name or namespace."""
    if not isinstance(document, dict) or not isinstance(document.get("metadata"), dict):
        raise bad_request("the object has no metadata")
    _check_type(document, served)
    name = document["metadata"].get("name")
    if target.name and name != target.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
    namespace = document["metadata"].get("namespace")
    if served.kind.namespaced and namespace != target.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def _check_type(document: Document, served: Served) -> None:
    kind = served.kind
    name, api_version = document.get("kind") or "", document.get("apiVersion") or ""
    if not served.strategy.native and not name:
        raise bad_request(f"Object 'Kind' is missing in '{orjson.dumps(document).decode()[:1000]}'")
    if not name and not api_version:
        document["kind"], document["apiVersion"] = kind.kind, kind.api_version
        return
    if api_version != kind.api_version and name == kind.kind:
        why = f"the API version in the data ({api_version}) does not match the expected API version ({kind.api_version})"
        raise bad_request(why)
    if name != kind.kind:
        version = str(api_version).rsplit("/", 1)[-1]
        why = f'converting ({api_version}.{name}) to ({kind.api_version}.{kind.kind}): unknown conversion'
        raise bad_request(f'{name} in version "{version}" cannot be handled as a {kind.kind}: {why}')


def _report(request: Request, served: Served, mode: str, problems: list[str]) -> None:
    if not problems or mode == "Ignore":
        return
    if mode == "Strict":
        raise bad_request(_cannot_handle(served, "strict decoding error: " + ", ".join(problems)))
    for problem in problems:
        request.warn(problem)


def _cannot_handle(served: Served, why: str) -> str:
    kind = served.kind
    return f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {why}'


def _check_decoded(served: Served, errors: list[FieldError]) -> None:
    """Values that do not fit the Go struct end the request before anything else is looked at."""
    wrong = next((error for error in errors if isinstance(error, Undecodable)), None)
    if wrong is not None:
        raise bad_request(_cannot_handle(served, wrong.message))


def _go_type(value: Any) -> str:
    names = {bool: "bool", str: "string", int: "number", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "null")

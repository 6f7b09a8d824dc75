"""From a request's body to a document of the right kind, for the right place, with known fields only.

Field validation (`Ignore`, `Warn`, `Strict`) decides what becomes of unknown and duplicate fields: they are always dropped;
the mode says whether silently, with a warning, or with a refusal that names all of them.
"""

from __future__ import annotations

from typing import Any

import msgspec
import orjson

from trimtab.model import metadata as object_meta
from trimtab.model.errors import FieldError, StatusError, bad_request
from trimtab.model.schema import Walk
from trimtab.model.schema.native import Undecodable
from trimtab.server import body, builtin, gojson
from trimtab.server.http import Request
from trimtab.server.naming import ELSEWHERE
from trimtab.server.registry import Served
from trimtab.server.strategy import Document
from trimtab.server.target import Target

REPEATED_OWNERS = (
    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such "
    "requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
)
MAX_REPEATED = 20
MAX_PROBLEMS = 500  # of a kind that are told; a body made of mistakes must not cost more than it is worth


class Read(msgspec.Struct):
    """A document that was pruned and defaulted, and what its schema has against it."""

    document: Document
    errors: list[FieldError]


def read(request: Request, served: Served, target: Target, mode: str) -> Read:
    content_type = request.header(b"content-type")
    native = served.strategy.native
    document = request.parsed or body.decode(request.body, content_type, kind=served.kind.kind, native=native)
    if request.trail is not None:
        request.trail.seen(document)
    duplicates = [] if mode == "Ignore" else body.duplicate_keys(request.body, content_type, document)
    checked = check_place(document, served, target)
    return Read(checked, walk(request, served, checked, mode, duplicates))


def read_applied(request: Request, served: Served, target: Target) -> Document:
    """The body of an apply: only what the manager means, so nothing is defaulted. Unknown fields are apply's to refuse."""
    document: Document = request.parsed or body.from_json_or_yaml(request.body, served.kind.kind)
    if request.trail is not None:
        request.trail.seen(document)
    kind = served.kind
    name, version = (document.get("kind"), document.get("apiVersion")) if isinstance(document, dict) else ("", "")
    if name != kind.kind or version != kind.api_version:
        group, _, bare = str(version or "").rpartition("/")
        raise bad_request(f"invalid object type: {group}/{bare}, Kind={name or ''}")
    metadata = document.get("metadata")
    if metadata is None:
        metadata = document["metadata"] = {}
    if not isinstance(metadata, dict):
        raise bad_request("metadata must be an object")
    _check_decoded(served, _decoded(served, metadata).errors)
    given = {"name": target.name, "namespace": target.namespace, **{k: v for k, v in metadata.items() if v}}
    check_identity({"metadata": given}, served, target)
    return document


def walk(
    request: Request, served: Served, document: Document, mode: str, duplicates: list[str] | None = None
) -> list[FieldError]:
    """Prune, default and check. Kinds that are Go structs in the original do not decode at all when a type is wrong."""
    native = served.strategy.native
    decoded = _decoded(served, document["metadata"])
    _check_decoded(served, decoded.errors)
    tidy(document["metadata"])
    if len(document["metadata"].get("ownerReferences") or ()) > 1:
        _drop_repeated_owners(request, document["metadata"])
    found = served.kind.schema.walk(document)
    if native:
        _check_decoded(served, found.errors)
        _omit_empty(served, document)
        served.strategy.default(document)
    if mode != "Ignore":
        problems = [f'duplicate field "{path}"' for path in (duplicates or ())[:MAX_PROBLEMS]]
        unknown = [*decoded.unknown[:MAX_PROBLEMS], *found.unknown[:MAX_PROBLEMS]]
        problems += [f'unknown field "{path}"' for path in unknown]
        _report(request, served, mode, problems)
    return found.errors


def _decoded(served: Served, metadata: Document) -> Walk:
    """Metadata without what no object has. What only this kind has is looked at here."""
    own = {name: metadata.pop(name) for name in served.strategy.own_metadata if name in metadata}
    walked = object_meta.decode(metadata, native=served.strategy.native)
    for name, value in own.items():
        if isinstance(value, str):
            metadata[name] = value
        elif value is not None:
            why = f"json: cannot unmarshal {body.go_type(value)} into Go struct field ObjectMeta.{name} of type string"
            raise Undecoded(served, why)
    return walked


def _omit_empty(served: Served, document: Document) -> None:
    """Go leaves maps and lists with nothing in them out."""
    fields = served.kind.schema.document.get("properties") or {}
    for name in [name for name, value in document.items() if value in ({}, [])]:
        shape = fields.get(name) or {}
        if shape.get("type") == "array" or (shape.get("type") == "object" and "additionalProperties" in shape):
            del document[name]


def tidy(metadata: Document) -> None:
    """Metadata has no empty maps and lists: to Go, they are absent."""
    for field in ("labels", "annotations", "finalizers", "ownerReferences"):
        if field in metadata and not metadata[field]:
            del metadata[field]


def _drop_repeated_owners(request: Request, metadata: Document) -> None:
    """An owner counts once. There may be tens of thousands: each is looked at once."""
    kept: dict[bytes, Document] = {}
    repeated = [
        str(owner.get("uid") or "")
        for owner in metadata["ownerReferences"]
        if kept.setdefault(orjson.dumps(owner, option=orjson.OPT_SORT_KEYS), owner) is not owner
    ]
    if repeated:
        metadata["ownerReferences"] = list(kept.values())
        request.warn(f"{REPEATED_OWNERS}{', '.join(repeated[:MAX_REPEATED])}")


def check_place(document: Any, served: Served, target: Target) -> Document:
    """The document, if it is of the kind and at the name and namespace that the URL says."""
    kind = served.kind
    if document is None:
        document = {}
    _check_type(document, served)
    metadata = document.setdefault("metadata", {})
    if metadata is None:
        metadata = document["metadata"] = {}
    if not isinstance(metadata, dict):
        given = body.go_type(metadata)
        where = f"struct field {kind.kind}.metadata" if served.strategy.native else "value"
        why = f"json: cannot unmarshal {given} into Go {where} of type v1.ObjectMeta"
        raise bad_request(_cannot_handle(served, why))
    if target.name and not metadata.get("name"):
        raise nameless(target.name)
    if kind.namespaced and not metadata.get("namespace"):
        metadata["namespace"] = target.namespace
    if not kind.namespaced:
        metadata.pop("namespace", None)
    check_identity(document, served, target)
    return document  # type: ignore[no-any-return]


def nameless(name: str) -> StatusError:
    return bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")


def check_identity(document: Any, served: Served, target: Target) -> None:
    """A write may not move an object to another name or namespace."""
    if not isinstance(document, dict) or not isinstance(document.get("metadata"), dict):
        raise bad_request("the object has no metadata")
    name = document["metadata"].get("name")
    if target.name and not name:
        raise nameless(target.name)
    if target.name and name != target.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
    namespace = document["metadata"].get("namespace")
    if served.kind.namespaced and namespace != target.namespace:
        raise bad_request(ELSEWHERE)


def _check_type(document: Document, served: Served) -> None:
    """The kind and version, filled in where a built-in kind may leave them out."""
    kind = served.kind
    name, api_version = document.get("kind") or "", document.get("apiVersion") or ""
    for field, value in (("kind", name), ("apiVersion", api_version)):
        if not isinstance(value, str):
            given = body.go_type(value)
            why = f"json: cannot unmarshal {given} into Go struct field .{field} of type string"
            raw = orjson.dumps(document)
            raise bad_request(
                gojson.unrecognized(kind.kind, f"couldn't get version/kind; json parse error: {why}", raw)
            )
    if api_version.count("/") > 1:
        raise _unrecognized(served, f"unexpected GroupVersion string: {api_version}", document)
    if not served.strategy.native and not name:
        shown = orjson.dumps(document).decode()[:1000]
        raise _unrecognized(served, f"Object 'Kind' is missing in '{shown}'", document)
    if not served.strategy.native and not api_version:
        raise bad_request(
            f"the API version in the data () does not match the expected API version ({kind.api_version})"
        )
    name = document["kind"] = name or kind.kind
    api_version = document["apiVersion"] = api_version or kind.api_version
    if name == kind.kind and api_version == kind.api_version:
        return
    version = api_version.rsplit("/", 1)[-1]
    if served.strategy.native and (api_version == kind.api_version or _is_builtin(api_version, name)):
        internal = kind.group.split(".")[0] or "core"
        why = f"converting ({_version(api_version)}.{name}) to ({internal}.{kind.kind}): unknown conversion"
        raise bad_request(f'{name} in version "{version}" cannot be handled as a {kind.kind}: {why}')
    if served.strategy.native:
        why = f'no kind "{name}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:100"'
        raise bad_request(f'{name} in version "{version}" cannot be handled as a {kind.kind}: {why}')
    if api_version != kind.api_version:
        why = (
            f"the API version in the data ({api_version}) does not match the expected API version ({kind.api_version})"
        )
        raise bad_request(why)
    raise bad_request(f"the kind in the data ({name}) does not match the expected kind ({kind.kind})")


def _is_builtin(api_version: str, name: str) -> bool:
    every = (*builtin.strategies(), *builtin.reviews())
    return any(other.kind.kind == name and other.kind.api_version == api_version for other in every)


def _unrecognized(served: Served, why: str, document: Document) -> StatusError:
    return bad_request(gojson.unrecognized(served.kind.kind, why, orjson.dumps(document)))


def _version(api_version: str) -> str:
    return api_version.replace("/", ".") if "/" not in api_version else api_version.split("/", 1)[1]


class Undecoded(StatusError):  # noqa: N818 - a document, not a failure of ours
    """A document that is not of its kind. `why` is the reason alone, as patches report it."""

    def __init__(self, served: Served, why: str) -> None:
        super().__init__(400, "BadRequest", _cannot_handle(served, why))
        self.why = why


def _report(request: Request, served: Served, mode: str, problems: list[str]) -> None:
    if not problems or mode == "Ignore":
        return
    if mode == "Strict":
        raise Undecoded(served, "strict decoding error: " + ", ".join(problems))
    for problem in problems:
        request.warn(problem)


def _cannot_handle(served: Served, why: str) -> str:
    kind = served.kind
    return f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {why}'


def _check_decoded(served: Served, errors: list[FieldError]) -> None:
    """Values that do not fit the Go struct end the request before anything else is looked at."""
    wrong = next((error for error in errors if isinstance(error, Undecodable)), None)
    if wrong is not None:
        raise Undecoded(served, wrong.message)

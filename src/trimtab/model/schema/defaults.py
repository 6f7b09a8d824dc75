"""Are the defaults of a schema values of that schema?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.schema import finding
from trimtab.model.schema.compiler import compile_value
from trimtab.model.schema.embedded import EMBEDDED_FIELDS, embedded_check
from trimtab.model.schema.shape import copied, prune

Document = Mapping[str, Any]


def default_errors(document: Document, path: str) -> list[FieldError]:
    """What is wrong with the defaults of a structural schema."""
    return list(_node(document, path, in_metadata=False, root=True))


def _node(document: Document, path: str, *, in_metadata: bool, root: bool = False) -> Iterator[FieldError]:
    embedded = bool(document.get("x-kubernetes-embedded-resource"))
    in_metadata = in_metadata and not embedded
    if document.get("default") is not None:
        yield from _default(document, f"{path}.default", embedded, in_metadata)
    if isinstance(document.get("items"), Mapping):
        yield from _node(document["items"], f"{path}.items", in_metadata=in_metadata)
    for name, part in (document.get("properties") or {}).items():
        inside = in_metadata or ((embedded or root) and name in EMBEDDED_FIELDS)
        yield from _node(part, f"{path}.properties[{name}]", in_metadata=inside)


def _default(document: Document, path: str, embedded: bool, in_metadata: bool) -> Iterator[FieldError]:
    value = copied(document["default"])
    if not in_metadata and prune(copied(value), document, resource=embedded):
        yield FieldError(path, FieldProblem.INVALID, value, "must not have unknown fields")
    found = embedded_check()(value) if embedded and isinstance(value, dict) else None
    for error in finding.errors(found or compile_value(document)(value) or []):
        yield FieldError(
            path if error.path == "<nil>" else f"{path}.{error.path}", error.problem, error.value, error.detail
        )

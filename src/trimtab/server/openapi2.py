"""OpenAPI v2, as much as clients before Kubernetes 1.29 need: that each kind's patch takes `fieldValidation`, by which they learn
that the server validates. The form is protobuf, the messages those of gnostic's `openapi.v2`; schemas are in v3 only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import orjson

from trimtab.model.kind import Kind

PROTOBUF = b"application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force")


def document(kinds: Iterable[Kind]) -> dict[str, Any]:
    """The document as JSON has it."""
    return {
        "swagger": "2.0",
        "info": {"title": "Trimtab", "version": "v1"},
        "paths": {path(kind): {"patch": _patch(kind)} for kind in kinds},
    }


def encoded(kinds: Iterable[Kind]) -> bytes:
    """The same as a gnostic `Document`."""
    items = b"".join(_message(2, _text(1, path(kind)), _message(2, _message(8, _operation(kind)))) for kind in kinds)
    info = _message(2, _text(1, "Trimtab"), _text(2, "v1"))
    return b"".join((_text(1, "2.0"), info, _message(8, items)))


def etag(data: bytes) -> bytes:
    return b'"%s"' % hashlib.sha256(data).hexdigest()[:32].upper().encode()


def path(kind: Kind) -> str:
    prefix = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    middle = "/namespaces/{namespace}" if kind.namespaced else ""
    return f"{prefix}{middle}/{kind.plural}/{{name}}"


def _names(kind: Kind) -> dict[str, str]:
    return {"group": kind.group, "kind": kind.kind, "version": kind.version}


def _patch(kind: Kind) -> dict[str, Any]:
    parameters = [{"name": name, "in": "query", "type": "string"} for name in PARAMETERS]
    extension = {"x-kubernetes-action": "patch", "x-kubernetes-group-version-kind": _names(kind)}
    return {"parameters": parameters, "responses": {"200": {"description": "OK"}}, **extension}


def _operation(kind: Kind) -> bytes:
    """Operation: parameters are field 8, extensions (as YAML, which JSON is) field 13."""
    parameters = [
        _message(8, _message(1, _message(2, _message(3, _text(2, "query"), _text(4, n))))) for n in PARAMETERS
    ]
    named = (("x-kubernetes-action", b"patch"), ("x-kubernetes-group-version-kind", orjson.dumps(_names(kind))))
    extensions = [_message(13, _text(1, name), _message(2, _field(2, value))) for name, value in named]
    return b"".join((*parameters, *extensions))


def _message(number: int, *parts: bytes) -> bytes:
    return _field(number, b"".join(parts))


def _text(number: int, value: str) -> bytes:
    return _field(number, value.encode())


def _field(number: int, value: bytes) -> bytes:
    """A length-delimited field of the protobuf wire format."""
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)

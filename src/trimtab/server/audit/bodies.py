"""Bodies as audit events have them: documents, whatever form they were sent in. Bounded: YAML is slow to read."""

from __future__ import annotations

from typing import Any

import orjson

from trimtab.model.errors import StatusError
from trimtab.server import body

MAX_YAML = 64 * 1024


def readable(raw: bytes, media: str) -> Any:
    """The document in a body; None when it cannot be told."""
    kind = body.media_type(media)
    try:
        if kind == body.PROTOBUF:
            from trimtab.server.builtin import protobuf

            return protobuf.decode(raw)
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError:
            if "yaml" not in kind or len(raw) > MAX_YAML:
                return None
            return body.from_yaml(raw, "object")
    except StatusError:
        return None


def without_managed_fields(document: Any) -> Any:
    """The same without `metadata.managedFields`: of an object, of each in a list, of each row of a table."""
    if not isinstance(document, dict):
        return document
    result = _bare(document)
    if isinstance(result.get("items"), list):
        result["items"] = [_bare(item) for item in result["items"]]
    if isinstance(result.get("rows"), list):
        result["rows"] = [
            {**row, "object": _bare(row["object"])} if isinstance(row, dict) and "object" in row else row
            for row in result["rows"]
        ]
    return result


def _bare(document: Any) -> Any:
    if not isinstance(document, dict):
        return document
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return dict(document)
    return {**document, "metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}

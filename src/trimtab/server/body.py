"""Request bodies to documents: JSON, YAML and protobuf, bounded in size and depth.

The fast parser takes the last of two equal keys; where field validation must name duplicates, the standard one looks again.
"""

from __future__ import annotations

import json
from typing import Any

import orjson

from trimtab.model.errors import bad_request, unsupported_media_type
from trimtab.server import gojson

MAX_BODY = 3 * 1024 * 1024
MAX_DEPTH = 250
MAX_NODES = 500_000  # of a YAML body
ACCEPTED = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")

PROTOBUF = "application/vnd.kubernetes.protobuf"


def media_type(content_type: str) -> str:
    return content_type.split(";", 1)[0].strip().lower()


def decode(body: bytes, content_type: str, *, kind: str, native: bool) -> Any:
    """The document in a body. Raises 415 for other media types and 400 for what does not parse. `kind` is what it
    should be, for the message."""
    media = media_type(content_type) or "application/json"
    if media == "application/json":
        return from_json(body, kind)
    if media == "application/yaml":
        return from_json_or_yaml(body, kind)
    if media == PROTOBUF and native:
        from trimtab.server.builtin import protobuf

        return protobuf.decode(body)
    raise unsupported_media_type(ACCEPTED)


def from_json(body: bytes, kind: str) -> Any:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        why = f"couldn't get version/kind; json parse error: {gojson.complaint(body)}"
        raise bad_request(gojson.unrecognized(kind, why, body)) from None
    if isinstance(document, (list, str, int, float)):
        raise bad_request(gojson.unrecognized(kind, gojson.not_an_object(go_type(document)), body))
    check_depth(body, document)
    return document


def from_json_or_yaml(body: bytes, kind: str) -> Any:
    """An apply says YAML and mostly is JSON, which is YAML too and a hundred times faster to read."""
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        return from_yaml(body, kind)
    return from_json(body, kind)


def from_patch(body: bytes, lead: str = "error decoding patch: ") -> Any:
    """The document of a JSON patch, merge patch or strategic merge patch; `lead` begins the message of a refusal."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise bad_request(lead + gojson.complaint(body)) from None
    check_depth(body, document)
    return document


def from_yaml(body: bytes, kind: str) -> Any:
    from trimtab.model.yaml import YamlError, load

    try:
        loaded = load(body.decode(), nodes=MAX_NODES)
        if _expanded(loaded, {}) > MAX_NODES:
            raise bad_request("yaml: document contains excessive aliasing")
        written = orjson.dumps(loaded, default=str, option=orjson.OPT_NON_STR_KEYS)
    except (YamlError, UnicodeDecodeError, TypeError, RecursionError) as error:
        raise bad_request(gojson.unrecognized(kind, f"yaml: {error}", body)) from None
    document = orjson.loads(written)
    if isinstance(document, (list, str, int, float)):
        raise bad_request(gojson.unrecognized(kind, gojson.not_an_object(go_type(document)), body))
    check_depth(written, document)
    return document


def _expanded(value: Any, sizes: dict[int, int]) -> int:
    """How many nodes a document has once its aliases are written out; each shared node is visited once."""
    if not isinstance(value, (dict, list)):
        return 1
    if id(value) in sizes:
        return sizes[id(value)]
    sizes[id(value)] = MAX_NODES + 1  # an alias to its own ancestor
    children = value.values() if isinstance(value, dict) else value
    sizes[id(value)] = 1 + sum(_expanded(child, sizes) for child in children)
    return sizes[id(value)]


def duplicate_keys(body: bytes, content_type: str, document: Any) -> list[str]:
    """Paths of the keys that occur twice in one object of a JSON body.

    Parsing keeps one of two equal keys, so a compact body with a duplicate is longer than its document written again.
    """
    media = media_type(content_type)
    if media not in ("", "application/json") and not media.endswith("+json"):
        return []
    if len(orjson.dumps(document)) == len(body.rstrip()):
        return []
    duplicates: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> Any:
        seen: dict[str, Any] = {}
        for key, value in items:
            if key in seen:
                seen.setdefault(_TWICE, []).append(key)
            seen[key] = value
        return seen

    _collect(json.loads(body, object_pairs_hook=pairs), "", duplicates)
    return duplicates


_TWICE = "\0twice"


def _collect(value: Any, path: str, into: list[str]) -> None:
    if isinstance(value, dict):
        into.extend(_join(path, key) for key in value.pop(_TWICE, ()))
        for key, child in value.items():
            _collect(child, _join(path, key), into)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            _collect(child, f"{path}[{index}]", into)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def check_depth(body: bytes, document: Any) -> None:
    """Refuse what is nested so deeply that walking it would be an attack. Most bodies have too few brackets to matter."""
    if body.count(b"{") + body.count(b"[") <= MAX_DEPTH:
        return
    level = [document]
    for _ in range(MAX_DEPTH):
        inner = [value.values() if isinstance(value, dict) else value for value in level]
        level = [child for values in inner for child in values if isinstance(child, (dict, list))]
        if not level:
            return
    raise bad_request(f"the body is nested deeper than {MAX_DEPTH} levels")


def go_type(value: Any) -> str:
    """A JSON type in the words of Go's decoder."""
    names = {bool: "bool", str: "string", int: "number", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "null")

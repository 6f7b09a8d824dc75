"""Request bodies to documents: JSON, YAML and protobuf, bounded in size and depth.

The fast parser takes the last of two equal keys; where field validation must name duplicates, the standard one looks again.
"""

from __future__ import annotations

import json
from typing import Any

import orjson

from trimtab.model.errors import bad_request, unsupported_media_type

MAX_BODY = 3 * 1024 * 1024
MAX_DEPTH = 250
MAX_NODES = 1_000_000
ACCEPTED = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")

PROTOBUF = "application/vnd.kubernetes.protobuf"


def media_type(content_type: str) -> str:
    return content_type.split(";", 1)[0].strip().lower()


def decode(body: bytes, content_type: str, *, native: bool) -> Any:
    """The document in a body. Raises 415 for other media types and 400 for what does not parse."""
    media = media_type(content_type) or "application/json"
    if media == "application/json":
        return from_json(body)
    if media == "application/yaml":
        return from_yaml(body)
    if media == PROTOBUF and native:
        from trimtab.server.builtin import protobuf

        return protobuf.decode(body)
    raise unsupported_media_type(ACCEPTED if native else ACCEPTED[:2])


def from_json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if body[:1].isalpha():  # Go's message for a leading word names the character
            raise bad_request(f"invalid character '{chr(body[0])}' looking for beginning of value") from None
        raise bad_request(f"the body is not JSON: {error}") from None


def from_json_or_yaml(body: bytes) -> Any:
    """An apply says YAML and mostly is JSON, which is YAML too and a hundred times faster to read."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return from_yaml(body)


def from_yaml(body: bytes) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        loaded = YAML(typ="safe", pure=False).load(body.decode())
    except (YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise bad_request(f"yaml: {str(error).splitlines()[0]}") from None
    if _expanded(loaded, {}) > MAX_NODES:
        raise bad_request("yaml: document contains excessive aliasing")
    return orjson.loads(orjson.dumps(loaded, default=str, option=orjson.OPT_NON_STR_KEYS))


def _expanded(value: Any, sizes: dict[int, int]) -> int:
    """How many nodes a document has once its aliases are written out; each shared node is visited once."""
    if not isinstance(value, (dict, list)):
        return 1
    if id(value) in sizes:
        return sizes[id(value)]
    sizes[id(value)] = MAX_NODES  # an alias to its own ancestor
    children = value.values() if isinstance(value, dict) else value
    sizes[id(value)] = 1 + sum(_expanded(child, sizes) for child in children)
    return sizes[id(value)]


def duplicate_keys(body: bytes, content_type: str, document: Any) -> list[str]:
    """Paths of the keys that occur twice in one object of a JSON body.

    Parsing keeps one of two equal keys, so a compact body with a duplicate is longer than its document written again.
    """
    if media_type(content_type) not in ("", "application/json"):
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

"""From the bytes of a file to a tree: JSON or YAML, with or without a byte order mark, packed by gzip or not. Pure.

YAML is read as OpenAPI wants it, which is not as Kubernetes does (`trimtab.model.yaml`): keys are text whatever they look
like (`200:`, `on:`), and only true and false are booleans. Aliases share what they name; `checked` counts it each time,
so that a file of a few lines that unfolds to millions of nodes is refused before anyone walks through it.
"""

from __future__ import annotations

import re
import zlib
from functools import cache
from typing import Any

import orjson

from trimtab.systems.rest.openapi.errors import DocumentError

MOST_BYTES = 16 << 20
MOST_DEPTH = 200
MOST_NODES = 400_000

_BOM = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"


def unpacked(file: str, content: bytes) -> bytes:
    """The text of a file, without gzip and byte order mark. Raises DocumentError."""
    if len(content) > MOST_BYTES:
        raise DocumentError(
            file, "", f"is larger than {MOST_BYTES >> 20} MiB; split it or leave out what is not needed"
        )
    if content.startswith(_GZIP):
        unpacker = zlib.decompressobj(wbits=31)
        try:
            content = unpacker.decompress(content, MOST_BYTES + 1)
        except zlib.error:
            raise DocumentError(file, "", "looks like gzip, but is damaged; pack it anew") from None
        if len(content) > MOST_BYTES:
            raise DocumentError(file, "", f"is larger than {MOST_BYTES >> 20} MiB when unpacked; split it")
        if not unpacker.eof:
            raise DocumentError(file, "", "is gzip that ends too early; pack it anew")
    return content.removeprefix(_BOM)


def parsed(file: str, text: bytes) -> Any:
    """The tree in the text. Raises DocumentError that names the line."""
    start = text.lstrip()[:1]
    tree = _json(file, text) if start in (b"{", b"[") else _yaml(file, text)
    if not isinstance(tree, dict):
        raise DocumentError(file, "", "is not an object; an OpenAPI document is a JSON or YAML object")
    return tree


def _json(file: str, text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise DocumentError(file, "", f"is not JSON: line {error.lineno}, column {error.colno}: {error.msg}") from None


def _yaml(file: str, text: bytes) -> Any:
    import yaml

    try:
        readable = text.decode()
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise DocumentError(file, "", f"line {line} is not UTF-8; save the file as UTF-8") from None
    try:
        _refuse_depth(file, yaml, readable)
        return yaml.load(readable, Loader=_loader())  # noqa: S506 - it is a SafeLoader
    except RecursionError:
        raise DocumentError(file, "", f"is nested deeper than {MOST_DEPTH} levels") from None
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise DocumentError(file, "", f"is not YAML: {where}{problem}") from None


def _refuse_depth(file: str, yaml: Any, text: str) -> None:
    """Before anything is composed: the composer is written in C, and its stack has an end."""
    depth = 0
    for event in yaml.parse(text, Loader=_loader()):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MOST_DEPTH:
                line = event.start_mark.line + 1
                raise DocumentError(file, "", f"line {line} is nested deeper than {MOST_DEPTH} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


@cache
def _loader() -> Any:
    import yaml

    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    merge = "tag:yaml.org,2002:merge"

    class Loader(base):  # type: ignore[misc, valid-type]
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
            self.flatten_mapping(node)
            mapping: dict[str, Any] = {}
            for key, value in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise yaml.constructor.ConstructorError(None, None, "a key is no text", key.start_mark)
                mapping[key.value] = self.construct_object(value, deep=True)
            return mapping

    Loader.yaml_implicit_resolvers = {
        first: [(tag, regexp) for tag, regexp in found if tag == merge or tag.endswith(":null")]
        for first, found in base.yaml_implicit_resolvers.items()
    }
    Loader.add_implicit_resolver(
        "tag:yaml.org,2002:bool", re.compile("^(true|True|TRUE|false|False|FALSE)$"), list("tTfF")
    )
    Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile("^[-+]?(0|[1-9][0-9]*)$"), list("-+0123456789"))
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))
    return Loader


_FLOAT = re.compile(r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$")

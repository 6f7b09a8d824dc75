"""From the operations that a definition names to the calls of a Model.

A path is the document's, with its base path in front, unless the endpoint of the service ends with that base path already:
`http://127.0.0.1:8081/api/v1` and `http://127.0.0.1:8081` mean the same for a document whose base path is /api/v1.

In the query are the constants that the path or the definition has, and each parameter that the document requires: ARM's
api-version is the document's version, one with a single value or a default has it, any other is given as a path's is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from trimtab.systems.rest.addressing import parameters_of
from trimtab.systems.rest.compiling.problems import Problem, nearest
from trimtab.systems.rest.kinds import definition as written
from trimtab.systems.rest.kinds.service import RestServiceSpec
from trimtab.systems.rest.model import Call
from trimtab.systems.rest.openapi.document import Document
from trimtab.systems.rest.openapi.operations import JSON, Operation, Param
from trimtab.systems.rest.openapi.schema import Schema
from trimtab.systems.rest.syncing.paths import format_path, parse

MERGE_PATCH = "application/merge-patch+json"
_CONDITIONS = frozenset(("if-match", "if-none-match"))


class Named(NamedTuple):
    """An operation as a definition names it: its path may call parameters otherwise, or fill one (`volumes/custom`)."""

    operation: Operation
    path: str
    names: Mapping[str, str]  # the definition's → the document's

    def parameter(self, name: str) -> Param | None:
        there = self.names.get(name, name)
        return self.operation.parameter(there) or self.operation.parameter(there, "query")


def found(document: Document, asked: written.Operation, path: str, problems: list[Problem]) -> Named | None:
    """The operation of the document, or a problem at the definition's field `path`."""
    named, _, query = asked.path.partition("?")
    of_method = [each for (method, _), each in document.operations.items() if method == asked.method]
    same = [each for each in of_method if each.path == named]
    if not same:
        alike = [each for each in of_method if _fits(named, each.path) is not None]
        fewest = min((len(parameters_of(each.path)) for each in alike), default=0)
        same = [each for each in alike if len(parameters_of(each.path)) == fewest]
    if same:
        wanted = dict(pair.partition("=")[::2] for pair in query.split("&") if pair) | asked.query
        fitting = [each for each in same if each.query.items() <= wanted.items()]
        chosen = max(fitting, key=lambda each: len(each.query), default=same[0])
        return Named(chosen, named, _fits(named, chosen.path) or {})
    others = sorted(method for (method, other) in document.operations if other == named)
    hint = f"; it has {', '.join(others)}" if others else nearest(named, [each.path for each in of_method])
    problems.append(Problem(f"{path}.path", f"the document has no {asked.method} {named}{hint}"))
    return None


def call(
    named: Named,
    asked: written.Operation,
    document: Document,
    service: RestServiceSpec,
    *,
    listing: bool = False,
    envelope: str = "",
) -> Call:
    """As the Model has it."""
    operation = named.operation
    items, next_link = _paging(operation, asked, envelope) if listing else ("", "")
    return Call(
        method=operation.method,
        path=base_path(document, service) + named.path,
        query=query_of(operation, asked, document),
        content_type=_content_type(operation, asked),
        conditional=_conditional(operation),
        long_running=_long_running(operation),
        items=items,
        next_link=next_link,
        name_in_list=asked.whole,
    )


def query_of(operation: Operation, asked: written.Operation, document: Document) -> dict[str, str]:
    """The constants, and a {parameter} for what is asked for and not known."""
    _, _, in_path = asked.path.partition("?")
    query = dict(operation.query) | dict(pair.partition("=")[::2] for pair in in_path.split("&") if pair)
    for param in operation.parameters:
        if param.place != "query" or not param.required or param.name in query:
            continue
        values = param.schema.get("enum")
        default = param.schema.get("default")
        if isinstance(values, list) and len(values) == 1:
            query[param.name] = str(values[0])
        elif param.name == "api-version" and document.version:
            query[param.name] = document.version
        elif default is not None and not isinstance(default, dict | list):
            query[param.name] = _text(default)
        else:
            query[param.name] = f"{{{param.name}}}"
    return query | asked.query


def base_path(document: Document, service: RestServiceSpec) -> str:
    """What goes before the document's paths."""
    base = document.base_path
    parts = urlsplit(service.endpoint)
    below = f"/{parts.path.partition(':/')[2]}" if parts.scheme == "unix" else parts.path  # unix:///the/socket:/path
    there = below.rstrip("/")
    return "" if base and there.endswith(base) else base


def body(operation: Operation | None, asked: written.Operation | None, wrap: str) -> Schema | None:
    """Of a request, without what is around it."""
    if operation is None or asked is None:
        return None
    schema = operation.body_of(_content_type(operation, asked)) or operation.body
    return unwrapped(schema, wrap)


def answer(operation: Operation | None, envelope: str) -> Schema | None:
    """Of a success, without what is around it."""
    if operation is None:
        return None
    for status in (200, 201, 203, 202, "2XX"):
        response = operation.responses.get(status)
        if response is not None and response.schema is not None:
            return unwrapped(response.schema, envelope)
    return None


def unwrapped(schema: Schema | None, path: str) -> Schema | None:
    """What is at the path below a schema."""
    for step in parse(path):
        if schema is None:
            return None
        schema = schema.properties.get(step) if isinstance(step, str) else schema.items
    return schema


def items_of(operation: Operation | None, listing: Call | None, envelope: str) -> Schema | None:
    """Of one item in the answer of a list."""
    schema = answer(operation, envelope)
    if schema is None or listing is None:
        return None
    schema = unwrapped(schema, listing.items)
    return schema.items if schema is not None else None


def _fits(path: str, template: str) -> dict[str, str] | None:
    """How a path of a definition calls the parameters of one of the document; None when it is another path."""
    ours, theirs = path.strip("/").split("/"), template.strip("/").split("/")
    if len(ours) != len(theirs):
        return None
    names = {}
    for one, other in zip(ours, theirs, strict=True):
        if one == other:
            continue
        if not other.startswith("{") or not other.endswith("}") or not one:
            return None
        if one.startswith("{") and one.endswith("}"):
            names[one[1:-1]] = other[1:-1]
    return names


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _content_type(operation: Operation, asked: written.Operation) -> str:
    if asked.content_type:
        return asked.content_type
    offered = operation.content_types
    if operation.method == "PATCH" and MERGE_PATCH in offered:
        return MERGE_PATCH
    if JSON in offered or not offered:
        return JSON
    plain = (each for each in offered if "json" in each.lower() and each.partition(";")[0] != MERGE_PATCH)
    return next(plain, JSON)


def _conditional(operation: Operation) -> bool:
    declared = any(param.place == "header" and param.name.lower() in _CONDITIONS for param in operation.parameters)
    return declared or any(
        header.lower() == "etag" for response in operation.responses.values() for header in response.headers
    )


def _long_running(operation: Operation) -> bool:
    if operation.method in ("GET", "HEAD"):
        return False
    return operation.extension("x-ms-long-running-operation") is True or 202 in operation.responses


def _paging(operation: Operation, asked: written.Operation, envelope: str) -> tuple[str, str]:
    """Where a list has its items and the URL of the next page."""
    declared = operation.extension("x-ms-pageable")
    pageable: Mapping[str, Any] = declared if isinstance(declared, dict) else {}
    items, next_link = asked.items, asked.next_link
    item_name, link_name = str(pageable.get("itemName") or "value"), str(pageable.get("nextLinkName") or "")
    if pageable and items in ("", item_name):
        items = format_path((item_name,))
    if link_name and next_link in ("", link_name):
        next_link = format_path((link_name,))
    if not items:
        schema = answer(operation, envelope)
        lists = [name for name, of in schema.properties.items() if of.type == "array"] if schema is not None else []
        if schema is not None and schema.type != "array" and len(lists) == 1:
            items = format_path((lists[0],))
    return items, next_link

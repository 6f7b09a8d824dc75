"""`trimtab get`: objects as tables that the server makes, or as documents; once, or as they change."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from trimtab.cli.access import Access, Session, session
from trimtab.cli.codes import OK, USAGE, Problem, complain, run, together, told
from trimtab.cli.events import age
from trimtab.cli.output import Form, Found, form, named, write
from trimtab.cli.tables import Printer, shown
from trimtab.cli.targets import Target, namespace_of, targets
from trimtab.client.transport import Call, document_of
from trimtab.model.errors import StatusError

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
CHUNK = "500"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    output: str = "table"
    everywhere: bool = False
    labels: str = ""
    fields: str = ""
    watch: bool = False
    ignore_not_found: bool = False
    no_headers: bool = False
    managed_fields: bool = False


def get(access: Access, words: list[str], options: Options) -> int:
    return run(_get(access, words, options))


async def _get(access: Access, words: list[str], options: Options) -> int:
    asked = form(options.output)
    async with session(access) as server:
        chosen = await targets(server, words)
        if any(target.names for target in chosen) and (options.labels or options.fields or options.everywhere):
            raise Problem("a name goes with no selector and not with all namespaces", USAGE)
        if options.watch:
            if len(chosen) > 1 or len(chosen[0].names) > 1 or not asked.is_table:
                raise Problem("-w watches one kind or one object, as a table", USAGE)
            from trimtab.cli.live import watch

            return await watch(server, chosen[0], options, asked)
        if asked.is_table:
            return await _tables(server, chosen, options, asked)
        return await _documents(server, chosen, options, asked)


async def _documents(server: Session, chosen: list[Target], options: Options, asked: Form) -> int:
    found: list[Found] = []
    codes: list[int] = []
    for target in chosen:
        try:
            async for document in _each(server, target, options, "application/json"):
                found += [Found(target.resource, item) for item in _items(document, target)]
        except StatusError as error:
            codes.append(_failed(error, options))
    single = len(chosen) == 1 and len(chosen[0].names) == 1
    if found or not single:
        write(asked, found, single=single, managed_fields=options.managed_fields)
    return together(codes)


def _items(document: dict[str, Any], target: Target) -> list[dict[str, Any]]:
    if target.names:
        return [document]
    whole = {"apiVersion": target.resource.api_version, "kind": target.resource.kind}
    return [{**whole, **item} for item in document.get("items") or ()]


async def _tables(server: Session, chosen: list[Target], options: Options, asked: Form) -> int:
    printed = False
    codes: list[int] = []
    for target in chosen:
        tables: list[dict[str, Any]] = []
        try:
            async for document in _each(server, target, options, TABLE):
                tables.append(_table(document))  # noqa: PERF401 - what came before a failure stays
        except StatusError as error:
            codes.append(_failed(error, options))
        rows = [row for table in tables for row in table.get("rows") or ()]
        if not rows:
            continue
        if printed:
            print()
        view = View(tables[0], target, options, asked, prefix=len(chosen) > 1)
        view.printer.add([view.cells(row) for row in rows])
        printed = True
    if not printed and not any(codes) and not options.ignore_not_found:
        everywhere = options.everywhere or not any(target.resource.namespaced for target in chosen)
        where = "" if everywhere else f" in namespace {server.namespace}"
        print(f"no {', '.join(target.resource.plural for target in chosen)} found{where}", file=sys.stderr)
    return together(codes)


def _table(document: dict[str, Any]) -> dict[str, Any]:
    """A Table; of a server that makes none, one with names and ages."""
    if document.get("kind") == "Table":
        return document
    items = document.get("items", [document])
    columns = [{"name": "Name", "format": "name"}, {"name": "Age"}]
    rows = [
        {"cells": [item["metadata"]["name"], age(item["metadata"].get("creationTimestamp") or "")], "object": item}
        for item in items
    ]
    return {"kind": "Table", "metadata": document["metadata"], "columnDefinitions": columns, "rows": rows}


class View:
    """How the rows of one server-made Table are shown."""

    def __init__(
        self, table: dict[str, Any], target: Target, options: Options, asked: Form, *, prefix: bool = False
    ) -> None:
        self._definitions = table.get("columnDefinitions") or []
        self._wide = asked.name == "wide"
        self._namespace = options.everywhere and target.resource.namespaced
        self._resource = target.resource if prefix else None
        self.headers = [
            *(["namespace"] if self._namespace else []),
            *(column["name"] for column in self._definitions if self._wide or not column.get("priority")),
        ]
        self.printer = Printer(self.headers, header=not options.no_headers)

    def cells(self, row: dict[str, Any]) -> list[str]:
        metadata = (row.get("object") or {}).get("metadata") or {}
        cells = [shown(metadata.get("namespace", ""))] if self._namespace else []
        for column, cell in zip(self._definitions, row["cells"], strict=True):
            if self._wide or not column.get("priority"):
                is_name = self._resource is not None and column.get("format") == "name"
                cells.append(named(self._resource, shown(cell)) if self._resource and is_name else shown(cell))
        return cells


async def _each(server: Session, target: Target, options: Options, accept: str) -> AsyncIterator[dict[str, Any]]:
    """The documents of a target: one for each name, or one for each chunk of a list."""
    place = target.resource.place
    namespace = namespace_of(server, target.resource, options.everywhere)
    failure: StatusError | None = None
    for name in target.names:
        try:
            reply = await server.transport.call(Call(method="GET", path=place.path(namespace, name), accept=accept))
        except StatusError as error:
            if len(target.names) == 1:
                raise
            if failure is not None:
                complain(failure.message)
            failure = error
            continue
        yield document_of(reply.body)
    if failure is not None:
        raise failure
    if target.names:
        return
    query = {"limit": CHUNK, **selectors(options)}
    while True:
        call = Call(method="GET", path=place.path(namespace), query=query, accept=accept)
        document = document_of((await server.transport.call(call)).body)
        yield document
        token = document["metadata"].get("continue")
        if not token:
            return
        query = {**query, "continue": token}


def selectors(options: Options) -> dict[str, str]:
    given = {"labelSelector": options.labels, "fieldSelector": options.fields}
    return {name: value for name, value in given.items() if value}


def _failed(error: StatusError, options: Options) -> int:
    if error.code == 404 and options.ignore_not_found:
        return OK
    code, message = told(error)
    complain(message)
    return code

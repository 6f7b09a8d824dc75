"""`trimtab describe`: one object for people: its fields, its health, its conditions and events as tables."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from trimtab.cli import events
from trimtab.cli.access import Access, Session, session
from trimtab.cli.codes import complain, run, together, told
from trimtab.cli.tables import Printer, coloured, shown, stained
from trimtab.cli.targets import namespace_of, targets
from trimtab.client.discovery import ApiResource
from trimtab.client.protocol import Named, Query
from trimtab.model.errors import StatusError
from trimtab.model.health import health

Document = dict[str, Any]
WIDTH = 18
HIDDEN = ("kubectl.kubernetes.io/last-applied-configuration",)


def describe(access: Access, words: list[str], labels: str = "") -> int:
    return run(_describe(access, words, labels))


async def _describe(access: Access, words: list[str], labels: str) -> int:
    codes: list[int] = []
    first = True
    async with session(access) as server:
        for target in await targets(server, words):
            namespace = namespace_of(server, target.resource)
            names = list(target.names)
            if not names:
                query = Query(namespace=namespace, labels=labels, metadata_only=True)
                kind = Named(target.resource.api_version, target.resource.kind)
                names = [item.name for item in (await server.client.list(kind, query)).items]
            for name in names:
                try:
                    document = await server.read(target.resource.place.path(namespace, name))
                except StatusError as error:
                    code, message = told(error)
                    complain(message)
                    codes.append(code)
                    continue
                if not first:
                    print()
                first = False
                await _show(server, target.resource, document)
    return together(codes)


async def _show(server: Session, resource: ApiResource, document: Document) -> None:
    metadata = document.get("metadata") or {}
    for name, value in _heading(resource, document, metadata):
        print(f"{name + ':':<{WIDTH}}{value}")
    for section, content in document.items():
        if section in ("apiVersion", "kind", "metadata"):
            continue
        if section == "status" and isinstance(content, dict):
            content = {name: value for name, value in content.items() if name != "conditions"}
        if isinstance(content, dict | list):
            lines = list(tree(_without_secrets(resource, section, content), 2))
            if lines:
                print("\n".join((f"{_title(section)}:", *lines)))
        elif content is not None:
            print(f"{_title(section) + ':':<{WIDTH}}{shown(content)}")
    _conditions(document)
    found = await events.about(server, document)
    if found:
        print("Events:")
        Printer(("  last seen", "type", "reason", "message")).add(
            [[f"  {row[0]}", *row[1:]] for row in events.rows(found)]
        )
    else:
        print(f"{'Events:':<{WIDTH}}<none>")


def _heading(resource: ApiResource, document: Document, metadata: Document) -> Iterator[tuple[str, str]]:
    yield "Name", shown(metadata.get("name"))
    if metadata.get("namespace"):
        yield "Namespace", shown(metadata["namespace"])
    yield "Kind", f"{resource.kind} ({resource.api_version})"
    yield from _pairs("Labels", metadata.get("labels"))
    yield from _pairs("Annotations", metadata.get("annotations"))
    created = str(metadata.get("creationTimestamp") or "")
    yield "Created", f"{created} ({events.age(created)} ago)"
    if metadata.get("deletionTimestamp"):
        yield "Deleted", shown(metadata["deletionTimestamp"])
    if metadata.get("finalizers"):
        yield "Finalizers", ", ".join(map(shown, metadata["finalizers"]))
    for owner in metadata.get("ownerReferences") or ():
        yield "Owned by", f"{shown(owner.get('kind'))}/{shown(owner.get('name'))}"
    found = health(document)
    state = stained(found.state.value, found.state.value) if coloured() else found.state.value
    yield "Health", state + (f": {shown(found.reason)}" if found.reason else "")


def _pairs(name: str, pairs: Document | None) -> Iterator[tuple[str, str]]:
    written = [f"{key}={shown(value)}" for key, value in (pairs or {}).items() if key not in HIDDEN]
    yield name, written[0] if written else "<none>"
    for line in written[1:]:
        yield "", line


def _conditions(document: Document) -> None:
    status = document.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    if not isinstance(conditions, list) or not conditions:
        return
    print("Conditions:")
    printer = Printer(("  type", "status", "since", "reason", "message"))
    printer.add(
        [
            [
                f"  {shown(c.get('type'))}",
                shown(c.get("status")),
                events.age(str(c.get("lastTransitionTime") or "")),
                shown(c.get("reason") or ""),
                shown(c.get("message") or ""),
            ]
            for c in conditions
            if isinstance(c, dict)
        ]
    )


def tree(value: Any, indent: int) -> Iterator[str]:
    """Any value as indented lines, as YAML would have it, strings without quotes. What is empty is left out."""
    margin = " " * indent
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, dict | list):
                inside = list(tree(item, indent + 2))
                if inside:
                    yield f"{margin}{key}:"
                    yield from inside
            elif item is not None:
                yield from _leaf(f"{margin}{key}:", item, indent + 2)
    elif isinstance(value, list):
        for item in value:
            lines = list(tree(item, indent + 2))
            yield margin + "- " + lines[0][indent + 2 :] if lines else margin + "-"
            yield from lines[1:]
    else:
        yield from _leaf("", value, indent)


def _leaf(label: str, value: Any, indent: int) -> Iterator[str]:
    if isinstance(value, str) and "\n" in value.strip("\n"):
        if label:
            yield label
        for line in value.strip("\n").split("\n"):
            yield " " * indent + shown(line)
        return
    yield f"{label} {shown(value)}" if label else " " * indent + shown(value)


def _title(section: str) -> str:
    return section[:1].upper() + section[1:]


def _without_secrets(resource: ApiResource, section: str, content: Any) -> Any:
    """What a Secret holds is not for shoulders to look over: its sizes are."""
    if (
        resource.group
        or resource.kind != "Secret"
        or section not in ("data", "stringData")
        or not isinstance(content, dict)
    ):
        return content
    return {name: f"{len(base64.b64decode(str(value)))} bytes" for name, value in content.items()}

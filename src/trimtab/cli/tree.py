"""`trimtab tree`: an object, what it owns, what that owns; each with its health."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from trimtab.cli.access import Access, Session, session
from trimtab.cli.codes import OK, USAGE, Problem, run
from trimtab.cli.events import age
from trimtab.cli.output import named
from trimtab.cli.tables import Printer, shown
from trimtab.cli.targets import namespace_of, targets
from trimtab.client.discovery import ApiResource
from trimtab.client.protocol import Named, Query
from trimtab.model.errors import StatusError
from trimtab.model.health import health

AT_ONCE = 8
NOT_OWNED = ("events", "componentstatuses")

Document = dict[str, Any]
Node = tuple[ApiResource, Document]


def tree(access: Access, words: list[str]) -> int:
    return run(_tree(access, words))


async def _tree(access: Access, words: list[str]) -> int:
    async with session(access) as server:
        chosen = await targets(server, words)
        if len(chosen) != 1 or len(chosen[0].names) != 1:
            raise Problem("name one object, as `deployment web`", USAGE)
        resource, name = chosen[0].resource, chosen[0].names[0]
        root = await server.read(resource.place.path(namespace_of(server, resource), name))
        owned = await _owned(server, root["metadata"].get("namespace", ""))
    printer = Printer(("object", "health", "age", "reason"))
    printer.add([_row(prefix, node) for prefix, node in _walk((resource, root), owned)])
    return OK


async def _owned(server: Session, namespace: str) -> dict[str, list[Node]]:
    """All objects that have owners, by the owner's uid: dependents live in the owner's namespace, if it has one."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def of(resource: ApiResource) -> list[Node]:
        async with slots:
            try:
                kind = Named(resource.api_version, resource.kind)
                where = namespace if resource.namespaced else ""
                listing = await server.client.list(kind, Query(namespace=where))
            except StatusError as error:
                if error.code in (403, 404, 405):
                    return []
                raise
            return [(resource, item.raw) for item in listing.items]

    catalogue = await server.catalogue()
    kinds = [r for r in catalogue.preferred() if "list" in r.verbs and r.plural not in NOT_OWNED]
    if namespace:
        kinds = [resource for resource in kinds if resource.namespaced]
    found: dict[str, list[Node]] = defaultdict(list)
    seen: set[str] = set()
    for nodes in await asyncio.gather(*map(of, kinds)):
        for node in nodes:
            metadata = node[1]["metadata"]
            if metadata.get("uid") in seen:  # the same objects may be served in two groups
                continue
            seen.add(metadata.get("uid"))
            for owner in metadata.get("ownerReferences") or ():
                found[owner["uid"]].append(node)
    return found


def _walk(root: Node, owned: dict[str, list[Node]]) -> Iterator[tuple[str, Node]]:
    """Depth first. An object that two own is shown under both; a circle is cut."""

    def below(node: Node, margin: str, above: frozenset[str]) -> Iterator[tuple[str, Node]]:
        uid = str(node[1]["metadata"].get("uid"))
        children = sorted(owned.get(uid, ()), key=lambda child: (child[0].kind, child[1]["metadata"]["name"]))
        for number, child in enumerate(children):
            last = number == len(children) - 1
            yield margin + ("└─ " if last else "├─ "), child
            if str(child[1]["metadata"].get("uid")) not in above:
                yield from below(child, margin + ("   " if last else "│  "), above | {uid})

    yield "", root
    yield from below(root, "", frozenset())


def _row(prefix: str, node: Node) -> list[str]:
    resource, document = node
    found = health(document)
    created = str(document["metadata"].get("creationTimestamp") or "")
    return [
        prefix + named(resource, document["metadata"]["name"]),
        found.state.value,
        age(created),
        shown(found.reason),
    ]

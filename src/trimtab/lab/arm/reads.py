"""GET and HEAD of resources, lists in pages, and what a service derives from a resource, as its instance view."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import msgspec

from trimtab.lab.arm import writing
from trimtab.lab.arm.checking import ArmError
from trimtab.lab.arm.documents import Operation, Route
from trimtab.lab.arm.resources import Resource, parse
from trimtab.lab.arm.world import Answer, Ask, World
from trimtab.lab.arm.writes import not_found

BRIEF = ("id", "name", "type", "location", "kind", "sku", "tags")


def resource(world: World, ask: Ask, known: Resource) -> Answer:
    """One that exists."""
    behaviour = world.behaviour(known.id.type, known.id.key)
    underway = known.operation
    if underway is not None and underway.has_monitor:
        underway.age(world.clock.monotonic())
    elif underway is not None:
        underway.look(world.clock.monotonic())
    if known.unborn or world.resources.find(known.id.key) is None:
        raise not_found(known.id)
    if known.hidden_reads > 0:
        known.hidden_reads -= 1
        raise not_found(known.id)
    if known.stale[0] > 0:
        known.stale = (known.stale[0] - 1, known.stale[1])
        return Answer(status=200, body=known.stale[1])
    if behaviour.late:
        _ripen(world, known)
    if not behaviour.etags:
        return Answer(status=200, body=world.encoded(known))
    etag = known.etag
    if ask.headers.get("if-none-match") == etag:
        return Answer(status=304, headers={"ETag": etag})
    return Answer(status=200, body=world.encoded(known), headers={"ETag": etag})


def get(world: World, ask: Ask, route: Route) -> Answer:
    """What is at a path of the documents where no resource is: a list, something derived, or nothing."""
    operation = route.operations["GET"]
    identity = world.identity(ask.path, route)
    if operation.items:
        return _page(world, ask, route, operation)
    if "PUT" not in route.operations:
        return _derived(world, ask, operation)
    world.require_parents(identity)
    if not route.single:
        raise not_found(identity)
    body = writing.with_facts(
        writing.with_defaults({"properties": {}}, route.schema), route, identity, world.clock.now()
    )
    return resource(world, ask, world.place(identity, route, body))


def head(world: World, ask: Ask, route: Route) -> Answer:
    known = world.visible(ask.path)
    if known is None:
        world.require_parents(world.identity(ask.path, route))
    return Answer(status=404 if known is None else 204)


def above(world: World, path: str) -> Resource | None:
    """The resource that something at a path is about, as an instance view; None when it is about none. It must exist."""
    parts = path.strip("/").split("/")
    for end in range(len(parts) - 1, 3, -1):
        target = "/" + "/".join(parts[:end])
        route = world.routes.find(target)
        if route is not None and "PUT" in route.operations:
            identity = world.identity(target, route)
            world.require_parents(identity)
            known = world.visible(target)
            if known is None and not route.single:
                raise not_found(identity)
            return known
    return None


def _page(world: World, ask: Ask, route: Route, operation: Operation) -> Answer:
    behaviour = world.behaviour(route.type)
    items = _members(world, ask, route)
    size = min(int(ask.query.get("$top") or behaviour.page_size), behaviour.page_size)
    token = ask.query.get("$skiptoken", "")
    if token and not token.isdigit():
        raise ArmError(400, "InvalidSkipToken", "The skip token is not one that was given.")
    start = int(token or 0)
    end = start if behaviour.empty_page and not token else start + size
    if behaviour.empty_page and token:
        start, end = start - 1, start - 1 + size
    brief = behaviour.brief_lists or ask.path.lower().endswith("/resources")
    page = b",".join([_brief(world, each) if brief else world.encoded(each) for each in items[start:end]])
    body = b'{"' + operation.items.encode() + b'":[' + page + b"]"
    if end < len(items):
        following = end + (1 if behaviour.empty_page else 0)
        query = urlencode({**ask.query, "$skiptoken": following}, safe="$")
        body += b',"nextLink":' + msgspec.json.encode(f"{world.url}{ask.path}?{query}")
    return Answer(status=200, body=body + b"}")


def _brief(world: World, known: Resource) -> bytes:
    """As the list of all resources shows one: who it is, and no properties."""
    shown = world.view(known)
    return msgspec.json.encode({name: shown[name] for name in BRIEF if name in shown})


def _members(world: World, ask: Ask, route: Route) -> list[Resource]:
    parts = [part for part in ask.path.lower().split("/") if part]
    below = parse(f"{ask.path.rstrip('/')}/x")
    world.require_parents(below)
    if parts[-1] == "resources" and "providers" not in parts:
        scope = "/" + "/".join(parts[:-1]) + "/"
        found = [
            each for each in world.resources.all() if each.id.key.startswith(scope) and "/providers/" in each.id.key
        ]
        found = [each for each in found if each.id.type.count("/") == 1]
    elif len(parts) == 5 and parts[2] == "providers":
        found = world.resources.of_type(parts[1], route.type)
    elif len(parts) == 7 and parts[4] == "locations":
        kinds = route.type.split("/")
        found = world.resources.of_type(parts[1], f"{kinds[0]}/{kinds[-1]}")
        found = [each for each in found if str(each.body.get("location", "")).replace(" ", "").lower() == parts[5]]
    else:
        found = world.resources.collection(ask.path)
    return [each for each in found if not each.unborn and each.hidden_reads == 0]


def _derived(world: World, ask: Ask, operation: Operation) -> Answer:
    name = ask.path.rstrip("/").rpartition("/")[2]
    if len(ask.path.strip("/").split("/")) == 2:
        return Answer(status=200, body=msgspec.json.encode(_subscription(name)))
    known = above(world, ask.path)
    if known is not None and name.lower() == "instanceview":
        return Answer(status=200, body=msgspec.json.encode(_instance_view(known)))
    for example in operation.examples:
        answer = example.get("responses", {}).get("200", {}) if isinstance(example, dict) else {}
        if isinstance(answer.get("body"), dict):
            return Answer(status=200, body=msgspec.json.encode(answer["body"]))
    return Answer(status=200, body=b"{}")


def _instance_view(known: Resource) -> dict[str, Any]:
    """As a scale set's is: how many machines there are in which state."""
    state = (writing.state_of(known.body) or "Succeeded").lower()
    sku = known.body.get("sku")
    count = sku.get("capacity", 0) if isinstance(sku, dict) else 0
    summary = [{"code": f"ProvisioningState/{state}", "count": count}] if count else []
    shown = {"code": f"ProvisioningState/{state}", "level": "Info", "displayStatus": f"Provisioning {state}"}
    return {
        "virtualMachine": {"statusesSummary": summary},
        "statuses": [{**shown, "time": "2026-01-01T00:00:00+00:00"}],
    }


def _subscription(name: str) -> dict[str, str]:
    return {"id": f"/subscriptions/{name}", "subscriptionId": name, "displayName": "Lab", "state": "Enabled"}


def _ripen(world: World, known: Resource) -> None:
    """Add what the service adds by itself after some reads."""
    known.reads += 1
    reads = known.reads
    for late in world.behaviour(known.id.type, known.id.key).late:
        if reads > late.reads:
            *above, last = late.path.split(".")
            at = known.body
            for part in above:
                at = at.setdefault(part, {})
            if last not in at:
                at[last] = late.value
                known.touch()
    known.reads = reads

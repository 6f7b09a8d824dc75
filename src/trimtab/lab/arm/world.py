"""The state of the emulator: what exists, what is under way, how each type behaves. Requests and other hands change it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from trimtab.lab.arm import views, writing
from trimtab.lab.arm.behaviour import Behaviour, Lro
from trimtab.lab.arm.checking import ArmError
from trimtab.lab.arm.documents import Route, Routes
from trimtab.lab.arm.resources import Id, Resource, Resources, parse
from trimtab.model.clock import Clock

MOST_MONITORS = 20_000
Happened = Literal["Write", "Delete", "Action"]


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One request. Names of headers are in small letters."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any = None


class Answer(msgspec.Struct, kw_only=True):
    status: int
    body: bytes = b""
    headers: dict[str, str] = {}


class Underway:
    """A long-running operation, from its first answer until it is done."""

    def __init__(
        self, name: str, lro: Lro, polls: int, until: float, finish: Callable[[str], None], result: Callable[[], Answer]
    ) -> None:
        self.name = name
        self.lro = lro
        self.status = "InProgress"
        self.polls = polls  # looks that still see it running
        self.errors = lro.monitor_errors
        self.looks = 0
        self.result = result
        self._until = until
        self._finish = finish

    @property
    def has_monitor(self) -> bool:
        return (self.lro.async_operation or self.lro.location) and not self.lro.monitor_gone

    def look(self, now: float) -> str:
        """One look at it, which may be the one that sees its end."""
        if self.status == "InProgress":
            if self.polls > 0:
                self.polls -= 1
            elif now >= self._until:
                self.end()
        return self.status

    def age(self, now: float) -> None:
        """What takes a time, and no looks, ends by itself."""
        if self.lro.lasting and not self.polls and now >= self._until:
            self.end()

    def end(self) -> None:
        if self.status == "InProgress":
            self.status = self.lro.outcome
            self._finish(self.status)


class World:
    def __init__(self, routes: Routes, clock: Clock, behaviour: Behaviour, url: str = "") -> None:
        self.routes = routes
        self.clock = clock
        self.url = url
        self.resources = Resources()
        self.monitors: dict[str, Underway] = {}  # by the name of the operation
        self.told: list[Callable[[Happened, str, str], None]] = []
        """Called with what happened, whether it succeeded, and the resource's ID."""
        self._behaviours: dict[str, Behaviour] = {"": behaviour}
        self._epoch = 0
        self._numbers = itertools.count(1)

    def behaviour(self, kind: str = "", key: str = "") -> Behaviour:
        """Of one resource, else of its type, else of all that have none of their own."""
        known = self._behaviours
        return (known.get(key) if key else None) or known.get(kind.lower()) or known[""]

    def behave(self, behaviour: Behaviour, whom: str = "") -> None:
        self._behaviours[whom.lower()] = behaviour
        self._epoch += 1

    def view(self, resource: Resource) -> dict[str, Any]:
        behaviour = self.behaviour(resource.id.type, resource.id.key)
        return views.view(resource, behaviour.normalise, etags=behaviour.etags)

    def encoded(self, resource: Resource) -> bytes:
        kept = resource.encoded
        if kept is not None and kept[0] == self._epoch:
            return kept[1]
        made = msgspec.json.encode(self.view(resource))
        resource.encoded = (self._epoch, made)
        return made

    def identity(self, path: str, route: Route) -> Id:
        """The ID of what is at a path: names as they were written, all else as the document has it."""
        sent = [part for part in path.split("/") if part]
        extra = len(sent) - len(route.segments)  # more than one segment in a scope
        literal = (*sent[:extra], *route.segments) if extra > 0 else route.segments
        parts = [own if part.startswith("{") else part for part, own in zip(literal, sent, strict=True)]
        return parse("/".join(parts))

    def require_parents(self, identity: Id) -> None:
        group = f"/subscriptions/{identity.subscription}/resourcegroups/{identity.group.lower()}"
        if identity.group and identity.key != group and self._missing(group):
            raise ArmError(404, "ResourceGroupNotFound", f"Resource group '{identity.group}' could not be found.")
        above = identity.parent
        while "/providers/" in above and self._missing(above):
            route = self.routes.find(above)
            if route is None or "PUT" not in route.operations:
                return  # of another document: nobody could have made it here
            if not route.single:
                message = "Can not perform requested operation on nested resource. Parent resource "
                raise ArmError(404, "ParentResourceNotFound", f"{message}'{parse(above).name}' not found.")
            above = parse(above).parent

    def visible(self, path: str) -> Resource | None:
        found = self.resources.find(path)
        return found if found is not None and not found.unborn else None

    def place(self, identity: Id, route: Route, body: dict[str, Any]) -> Resource:
        """Create it, or change what it says, with the resources that its lists hold."""
        found = self.resources.find(identity.key)
        if found is None:
            found = Resource(identity, route, body)
            self.resources.add(found)
        else:
            found.body = body
            found.touch()
        self._spread(found)
        self._gather(found)
        return found

    def remove(self, identity: Id) -> None:
        parent = self.resources.find(identity.parent)
        for each in self.resources.remove(identity.key):
            self.tell("Delete", "Success", each.id.path)
        if parent is not None and parent.route.embedded:
            self._gather(parent, changed=True)

    def touched(self, resource: Resource) -> None:
        """Its body was changed in place."""
        resource.touch()
        self._spread(resource)
        self._gather(resource)
        self.gather_above(resource)

    def gather_above(self, resource: Resource) -> None:
        """Let the resource above say what this one is now, where its lists have it."""
        parent = self.resources.find(resource.id.parent)
        if parent is not None and parent.route.embedded:
            self._gather(parent, changed=True)

    def start(
        self, lro: Lro, behaviour: Behaviour, finish: Callable[[str], None], result: Callable[[], Answer]
    ) -> Underway:
        if len(self.monitors) > MOST_MONITORS:
            self.monitors = {name: each for name, each in self.monitors.items() if each.status == "InProgress"}
        polls = behaviour.polls if lro.polls is None else lro.polls
        name = f"{next(self._numbers):08x}-0000-4000-8000-000000000000"
        underway = Underway(name, lro, polls, self.clock.monotonic() + lro.lasting, finish, result)
        self.monitors[name] = underway
        return underway

    def tell(self, what: Happened, how: str, path: str) -> None:
        for each in self.told:
            each(what, how, path)

    def _missing(self, key: str) -> bool:
        return self.visible(key) is None

    def _spread(self, parent: Resource) -> None:
        """Make the resources that are items of its lists, and take away those that no longer are."""
        for name, route, items in self._lists(parent):
            kept: set[str] = set()
            for item in items:
                path = f"{parent.id.path}/{name}/{item.get('name', '')}"
                identity = self.identity(path, route)
                known = self.resources.find(identity.key)
                sent = {key: value for key, value in item.items() if key not in ("id", "name", "type", "etag")}
                body = writing.put(sent, known.body if known else None, route.operations["PUT"].body, Behaviour())
                body = writing.with_defaults(body, route.schema)
                writing.set_state(body, route.schema, "Succeeded")
                if known is None:
                    self.resources.add(Resource(identity, route, body))
                elif known.body != body:
                    known.body = body
                    known.touch()
                kept.add(identity.key)
            for each in self.resources.collection(f"{parent.id.path}/{name}"):
                if each.id.key not in kept:
                    self.resources.remove(each.id.key)

    def _gather(self, parent: Resource, *, changed: bool = False) -> None:
        """Let its lists say what resources there are."""
        for name, route, items in self._lists(parent, read_only=True):
            there = []
            for each in self.resources.collection(f"{parent.id.path}/{name}"):
                if not each.unborn:
                    facts = {"id": each.id.path, "name": each.id.name, "etag": each.etag, "type": route.type}
                    there.append({**facts, **each.body})
            if there or items:
                parent.body.setdefault("properties", {})[name] = there
        if changed:
            parent.touch()

    def _lists(self, parent: Resource, *, read_only: bool = False) -> list[tuple[str, Route, list[Any]]]:
        found = []
        field = parent.route.schema
        inner = field.schema.properties["properties"].schema.properties if field and parent.route.embedded else {}
        for name, route in parent.route.embedded.items():
            if read_only or not inner[name].read_only:
                items = (parent.body.get("properties") or {}).get(name) or []
                found.append((name, route, [each for each in items if isinstance(each, dict)]))
        return found

"""The walk through a service: what exists, parents before children, each as a document to apply.

The `resourceID` in a document makes its first reconcile an adoption. Documents come in an order that follows from the IDs
alone, so that what did not change is imported the same again.

What cannot be asked for (a list that the credential may not read, a kind that cannot be listed) is told to `problem`, and the
walk goes on.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from trimtab.model.clock import Clock, SystemClock
from trimtab.systems.rest.addressing import AddressError, fill, parameters_of, parsed, query_of, resource_path
from trimtab.systems.rest.calling.contract import Caller, CallError, ErrorClass
from trimtab.systems.rest.calling.pages import pages
from trimtab.systems.rest.hooks import HookContext, Hooks
from trimtab.systems.rest.importing.naming import Names
from trimtab.systems.rest.importing.patience import PASSING, Patient
from trimtab.systems.rest.importing.specs import written
from trimtab.systems.rest.model import Model
from trimtab.systems.rest.reconciling.looking import Live, Looks

Document = dict[str, Any]

AT_ONCE = 8
ENOUGH = 8
"""Items of lists that were just what a read gave, from which on a kind's lists are believed."""
NEVER = -(1 << 62)
DEEPEST = 16
LONGEST_NAME = 253


class BadIdentifier(Exception):  # noqa: N818 - it reads as what is wrong
    """An ID that is of no kind of the service."""


class NotThere(Exception):  # noqa: N818 - it reads as what is wrong
    """An ID of nothing that exists."""


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """One document, and what someone must know who applies it."""

    document: Document
    secret: str = ""
    """The Secret that it refers to, in its own namespace; `secrets` says which keys it needs, and for which fields."""
    secrets: Mapping[str, str] = {}
    untold: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of the service."""

    model: Model
    hooks: Hooks = Hooks()


class Importer:
    """Of one service with one credential. `only` are the kinds to write; without any it is all of them."""

    def __init__(
        self,
        caller: Caller,
        kinds: Iterable[Kind],
        *,
        values: Mapping[str, str],
        namespace: str,
        only: Iterable[str] = (),
        names: Names | None = None,
        problem: Callable[[str], None] = lambda text: None,
        clock: Clock | None = None,
        chance: random.Random | None = None,
    ) -> None:
        clock = clock or SystemClock()
        self._caller = Patient(caller, clock, chance or random.Random())  # noqa: S311 - jitter
        self._kinds = {kind.model.kind: kind for kind in sorted(kinds, key=lambda each: each.model.kind)}
        self._looks = {name: Looks(kind.model, clock) for name, kind in self._kinds.items()}
        self._values, self._namespace = dict(values), namespace
        self._only, self._names, self._problem = frozenset(only), names or Names(), problem
        self._seen: set[str] = set()
        self._alike: dict[str, int] = {}  # by kind, how many items of lists were just what a read gave

    async def one(self, identifier: str, *, children: bool = True) -> AsyncIterator[Imported]:
        """A resource, and with `children` all that is below it. BadIdentifier, NotThere, CallError."""
        identifier = self._path(identifier)
        model = self.kind_of(identifier)
        live = await self._read(model, identifier)
        if live is None:
            raise NotThere(f"there is no {model.kind} {identifier}")
        async for imported in self._with_children(model, identifier, live, "", children, 0):
            yield imported

    async def all(self, *, children: bool = True) -> AsyncIterator[Imported]:
        """All that can be listed without naming a parent, with all below. CallError."""
        for kind in self._kinds.values():
            model = kind.model
            if model.parent in self._kinds or not self._leads(model, children):
                continue  # it comes with its parent, or is not asked for
            async for imported in self._listed(model, self._values, "", children, 0):
                yield imported

    def kind_of(self, identifier: str) -> Model:
        """The kind whose path has most in common with an ID. BadIdentifier."""
        models = [kind.model for kind in self._kinds.values() if parsed(kind.model, identifier) is not None]
        if not models:
            known = sorted(resource_path(kind.model) for kind in self._kinds.values())
            more = f", and {len(known) - 5} more" if len(known) > 5 else ""
            raise BadIdentifier(
                f"{identifier} is no ID of a kind of this service; they are like {', '.join(known[:5])}{more}"
            )
        return min(models, key=lambda model: len(parameters_of(resource_path(model))))

    def _path(self, identifier: str) -> str:
        """Of what people copy from elsewhere: a URL, with a query."""
        path = identifier.strip().removeprefix(self._caller.endpoint.rstrip("/")).partition("?")[0]
        return path.rstrip("/") or path

    def _leads(self, model: Model, children: bool, depth: int = 0) -> bool:
        """Whether it, or something below it, is asked for."""
        if not self._only or model.kind in self._only:
            return True
        below = (kind.model for kind in self._kinds.values() if kind.model.parent == model.kind)
        return children and depth < DEEPEST and any(self._leads(each, True, depth + 1) for each in below)

    # --- the walk ----------------------------------------------------------------------------------------------------

    async def _listed(
        self, model: Model, values: Mapping[str, str], parent: str, children: bool, depth: int
    ) -> AsyncIterator[Imported]:
        try:
            found = await self._list(model, values)
        except CallError as error:
            if error.kind in PASSING:
                raise
            if error.kind is not ErrorClass.GONE:
                self._problem(f"{model.kind} was left out: {error}")
            return
        for at in range(0, len(found), AT_ONCE):
            some = found[at : at + AT_ONCE]
            bodies = await self._bodies(model, some)
            for (identifier, _), body in zip(some, bodies, strict=True):
                if body is not None:
                    async for imported in self._with_children(model, identifier, body, parent, children, depth):
                        yield imported

    async def _list(self, model: Model, values: Mapping[str, str]) -> Sequence[tuple[str, Any]]:
        """IDs and items, in the order of the IDs."""
        call = model.calls.list
        if call is None:
            self._problem(f"{model.kind} was left out: the service has no list of them; name each by its ID")
            return ()
        try:
            url = fill(model, call.path, values) + query_of(call, values)
        except AddressError as error:
            self._problem(f"{model.kind} was left out: {error}; name each by its ID")
            return ()
        looks = self._looks[model.kind]
        found: dict[str, tuple[str, Any]] = {}
        async for page in pages(self._caller, model, call, url):
            for item in page:
                identifier = looks.identifier_of(item, values)
                if identifier and (isinstance(item, str) or looks.is_there(item)):
                    found.setdefault(identifier.casefold(), (identifier, item))
        return [found[key] for key in sorted(found)]

    async def _bodies(self, model: Model, some: Sequence[tuple[str, Any]]) -> list[Document | None]:
        """Of items of a list. Lists may tell less than a read, whatever their document says: they are believed only once
        they were found to say the same."""
        if model.calls.read is None or self._alike.get(model.kind, 0) >= ENOUGH:
            return [item if isinstance(item, dict) else None for _, item in some]
        bodies = await asyncio.gather(*(self._there(model, identifier) for identifier, _ in some))
        whole = model.calls.list is not None and model.calls.list.name_in_list
        is_same = whole and all(body == item for body, (_, item) in zip(bodies, some, strict=True))
        self._alike[model.kind] = self._alike.get(model.kind, 0) + len(some) if is_same else NEVER
        return bodies

    async def _there(self, model: Model, identifier: str) -> Document | None:
        try:
            return await self._read(model, identifier)
        except CallError as error:
            if error.kind in PASSING:
                raise
            self._problem(f"{identifier} was left out: {error}")
            return None

    async def _read(self, model: Model, identifier: str) -> Document | None:
        found = await self._looks[model.kind].one(self._caller, identifier, self._values)
        return found.body if isinstance(found, Live) else None

    async def _with_children(
        self, model: Model, identifier: str, live: Document, parent: str, children: bool, depth: int
    ) -> AsyncIterator[Imported]:
        shown = live.get("id")
        if isinstance(shown, str) and shown.casefold() == identifier.casefold():
            identifier = shown  # as the service writes it
        if identifier.casefold() in self._seen:
            return
        self._seen.add(identifier.casefold())
        live = await self._hook("normalize_live", model, identifier, live)
        name = ""
        if not self._only or model.kind in self._only:
            imported = await self._made(model, identifier, live, parent)
            if imported is None:
                return
            name = imported.document["metadata"]["name"]
            yield imported
        if not children or depth >= DEEPEST:
            return
        values = {**self._values, **(parsed(model, identifier) or {})}
        for kind in self._kinds.values():
            below = kind.model
            if below.parent == model.kind and self._leads(below, True):
                async for each in self._listed(below, values, name, True, depth + 1):
                    yield each

    # --- one document ------------------------------------------------------------------------------------------------

    async def _made(self, model: Model, identifier: str, live: Document, parent: str) -> Imported | None:
        own = _own_name(model, identifier, live)
        name = self._names.name(model.kind, identifier, own, parent)
        control: Document = {"resourceID": identifier}
        if parent:
            control["parent"] = {"name": parent}
        if own != name and not model.identity.server:
            control["name"] = own
        secret = f"{name}-{(model.singular or model.kind).lower()}"[:LONGEST_NAME].rstrip("-")  # kinds may share names
        made = written(model, live, secret, control, self._embedded(model))
        document: Document = {
            "apiVersion": f"{model.group}/{model.version}",
            "kind": model.kind,
            "metadata": {"name": name, "namespace": self._namespace},
            "spec": {**control, **made.spec},
        }
        kept = await self._hook("import_filter", model, identifier, document)
        if kept is None:
            return None
        return Imported(document=kept, secret=secret, secrets=made.secrets, untold=made.untold, refused=made.refused)

    async def _hook(self, point: str, model: Model, identifier: str, given: Document) -> Any:
        async def same(document: Document) -> Document:
            return document

        context = HookContext(model=model, caller=self._caller, resource_id=identifier)
        return await self._kinds[model.kind].hooks.run(point, context, same, given)

    def _embedded(self, model: Model) -> list[str]:
        """Lists in the body that are kinds of their own: the last segment of a child's collection names them."""
        found: list[str] = []
        for kind in self._kinds.values():
            if kind.model.parent != model.kind:
                continue
            segments = [part for part in resource_path(kind.model).split("/") if part]
            paths = (segments[-2], f"properties.{segments[-2]}") if len(segments) > 1 else ()
            found += [path for path in paths if _is_list(model, path)]
        return found


def _own_name(model: Model, identifier: str, live: Document) -> str:
    """What the service calls it; where the service chose an ID, a name beside it tells people more."""
    own = (parsed(model, identifier) or {}).get(model.identity.parameter, "") or identifier.rpartition("/")[2]
    for field in ("name", "Name"):
        shown = live.get(field)
        if isinstance(shown, str) and shown and (model.identity.server or shown.casefold() == own.casefold()):
            return shown
    return own


def _is_list(model: Model, path: str) -> bool:
    node = model.node(model.spec)
    for name in path.split("."):
        below = node.properties.get(name)
        if below is None:
            return False
        node = model.node(below)
    return node.type == "array"

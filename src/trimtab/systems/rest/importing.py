"""From what exists to objects that stand for it: documents to apply, which adopt it without a write.

A document says what the resource says of itself, as far as anybody may write it: without what is read-only, what is the
schema's default, what a read never tells, and lists whose items are kinds of their own. Secrets become references to a
Secret that someone has to make. Its `resourceID` makes the first reconcile an adoption.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import msgspec

from trimtab.systems.rest.addressing import AddressError, fill, parsed, query_of, resource_path
from trimtab.systems.rest.calling.contract import Caller, CallError, ErrorClass
from trimtab.systems.rest.calling.pages import pages
from trimtab.systems.rest.hooks import HookContext, Hooks
from trimtab.systems.rest.model import FieldClass, Model, Node, Writer
from trimtab.systems.rest.reconciling.looking import Live, Looks, Unchanged
from trimtab.systems.rest.syncing.paths import drop, parse
from trimtab.systems.rest.syncing.stripping import stripped

Document = dict[str, Any]

DEEPEST = 64
_LABEL = re.compile(r"[^a-z0-9]+")


class NotImportable(Exception):  # noqa: N818 - it reads as what is wrong
    """An ID that is of no kind, or of nothing that is there."""


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """One document; `secrets` are the Secrets that it refers to and nobody has made."""

    document: Document
    secrets: tuple[str, ...] = ()


class Importer:
    """Of one service with one credential. `models` are its kinds, `hooks` by kind."""

    def __init__(
        self,
        caller: Caller,
        models: Sequence[Model],
        *,
        looks: Mapping[str, Looks],
        values: Mapping[str, str],
        hooks: Mapping[str, Hooks],
        namespace: str,
    ) -> None:
        self._caller, self._models, self._looks = caller, models, looks
        self._values, self._hooks, self._namespace = dict(values), hooks, namespace
        self._taken: set[tuple[str, str]] = set()

    async def one(self, identifier: str, *, children: bool = True) -> AsyncIterator[Imported]:
        """A resource, and with `children` all that is below it. Raises NotImportable, CallError."""
        model = self.kind_of(identifier)
        found = await self._looks[model.kind].one(self._caller, identifier, self._values)
        if found is None or isinstance(found, Unchanged):
            raise NotImportable(f"{identifier} is not there")
        async for imported in self._with_children(model, identifier, found.body, "", children):
            yield imported

    async def all(self, kinds: Sequence[str] = ()) -> AsyncIterator[Imported]:
        """All that can be listed without naming a parent, with all below."""
        for model in self._models:
            if model.parent and any(other.kind == model.parent for other in self._models):
                continue  # it comes with its parent
            if kinds and model.kind not in kinds:
                continue
            async for imported in self._listed(model, self._values, "", children=True):
                yield imported

    def kind_of(self, identifier: str) -> Model:
        """Raises NotImportable."""
        for model in self._models:
            if parsed(model, identifier) is not None:
                return model
        known = ", ".join(sorted(resource_path(model) for model in self._models)[:5])
        raise NotImportable(f"{identifier} is no ID of a kind of this service; they are like {known}")

    async def _listed(
        self, model: Model, values: Mapping[str, str], parent: str, *, children: bool
    ) -> AsyncIterator[Imported]:
        call = model.calls.list
        if call is None:
            return
        try:
            url = fill(model, call.path, values) + query_of(call, values)
        except AddressError:
            return  # needs a parameter that nobody gave
        looks = self._looks[model.kind]
        try:
            async for page in pages(self._caller, model, call, url):
                for item in page:
                    identifier = looks.identifier_of(item, values)
                    if not identifier or not (isinstance(item, str) or looks.is_there(item)):
                        continue
                    body = item if call.name_in_list and isinstance(item, dict) else await self._read(model, identifier)
                    if body is not None:
                        async for imported in self._with_children(model, identifier, body, parent, children):
                            yield imported
        except CallError as error:
            if error.kind is not ErrorClass.GONE:
                raise

    async def _read(self, model: Model, identifier: str) -> Document | None:
        found = await self._looks[model.kind].one(self._caller, identifier, self._values)
        return found.body if isinstance(found, Live) else None

    async def _with_children(
        self, model: Model, identifier: str, live: Document, parent: str, children: bool
    ) -> AsyncIterator[Imported]:
        imported = await self._made(model, identifier, live, parent)
        if imported is None:
            return
        yield imported
        if not children:
            return
        values = {**self._values, **(parsed(model, identifier) or {})}
        for below in self._models:
            if below.parent == model.kind:
                async for each in self._listed(below, values, imported.document["metadata"]["name"], children=True):
                    yield each

    async def _made(self, model: Model, identifier: str, live: Document, parent: str) -> Imported | None:
        own = (parsed(model, identifier) or {}).get(model.identity.parameter, "") or identifier.rpartition("/")[2]
        name = self._named(model, own)
        missing: list[str] = []
        spec = self._spec(model, live, name, missing)
        control: Document = {"resourceID": identifier}
        if parent:
            control["parent"] = {"name": parent}
        if own != name and not model.identity.server:
            control["name"] = own
        document: Document = {
            "apiVersion": f"{model.group}/{model.version}",
            "kind": model.kind,
            "metadata": {"name": name, "namespace": self._namespace},
            "spec": {**control, **spec},
        }

        async def same(given: Document) -> Document:
            return given

        context = HookContext(model=model, caller=self._caller, resource_id=identifier)
        kept = await self._hooks.get(model.kind, Hooks()).run("import_filter", context, same, document)
        return None if kept is None else Imported(document=kept, secrets=tuple(missing))

    def _named(self, model: Model, own: str) -> str:
        """A name that Kubernetes takes, and that is not taken."""
        base = _LABEL.sub("-", own.lower()).strip("-")[:200].strip("-") or model.kind.lower()
        name, number = base, 2
        while (model.kind, name) in self._taken:
            name, number = f"{base}-{number}", number + 1
        self._taken.add((model.kind, name))
        return name

    def _spec(self, model: Model, live: Document, name: str, missing: list[str]) -> Document:
        """What may be written and is not the default."""
        body = stripped(model, live, Writer.ALL)
        for kept in (*model.overlay.keep, *self._embedded(model)):
            body = drop(body, parse(kept))
        if model.identity.field:
            body = drop(body, parse(model.identity.field))
        shown = _shown(model, model.spec, body, name, "", missing, 0)
        renamed = {wire: field for field, wire in model.renamed.items()}
        return {renamed.get(field, field): value for field, value in (shown or {}).items()}

    def _embedded(self, model: Model) -> list[str]:
        """Lists in the body that are kinds of their own: the last segment of a child's collection names them."""
        found = []
        for below in self._models:
            if below.parent != model.kind:
                continue
            segment = [part for part in resource_path(below).split("/") if part][-2]
            for path in (segment, f"properties.{segment}"):
                if _has(model, path):
                    found.append(path)
        return found


def _has(model: Model, path: str) -> bool:
    node = model.node(model.spec)
    for name in path.split("."):
        below = node.properties.get(name)
        if below is None:
            return False
        node = model.node(below)
    return node.type == "array"


def _shown(model: Model, node: Node | None, value: Any, name: str, path: str, missing: list[str], depth: int) -> Any:
    """None where there is nothing to say."""
    node = None if node is None else model.node(node)
    if depth > DEEPEST or value is None:
        return None
    if node is not None and node.field is FieldClass.SECRET:
        missing.append(name)
        return {"secretRef": {"name": name, "key": path.rpartition(".")[2] or path}}
    if node is not None and node.field is FieldClass.WRITE_ONLY:
        return None
    if isinstance(value, dict):
        node = node and model.variant(node, value)
        made = {}
        for key, each in value.items():
            below = None if node is None else node.properties.get(key, node.items if node.type == "map" else None)
            if below is not None and below.default is not None and below.default == each:
                continue
            said = _shown(model, below, each, name, f"{path}.{key}" if path else key, missing, depth + 1)
            if said is not None:
                made[key] = said
        return made or ({} if value == {} and depth else None)
    if isinstance(value, list):
        items = node.items if node is not None else None
        kept = [_shown(model, items, each, name, f"{path}[{at}]", missing, depth + 1) for at, each in enumerate(value)]
        return [each for each in kept if each is not None]
    return value

"""Custom resource definitions come to life: names are accepted or refused, kinds are served, and a definition that is deleted
takes its objects with it first."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from trimtab.model.clock import format_time
from trimtab.model.errors import StatusError
from trimtab.model.logs import log
from trimtab.server.custom import strategies
from trimtab.server.registry import Served
from trimtab.server.strategy import Document
from trimtab.store.contract import Change, Entry, Gone, Key, Op, Query, StoreError

if TYPE_CHECKING:
    from trimtab.server.core import Server

RESOURCE = "customresourcedefinitions.apiextensions.k8s.io"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
RETRY = 0.5
PATIENCE = 2.0


class Definitions:
    """The definitions in the store, and the kinds that they make."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._kinds: dict[str, list[tuple[str, str, str]]] = {}  # of each definition, by name
        self._specs: dict[str, Any] = {}  # what each was served by
        self._cleanups: dict[str, asyncio.Task[None]] = {}
        self._since = 0
        self._decided = 0
        self._news = asyncio.Event()

    @property
    def _served(self) -> Served:
        served = self._server.registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        assert served is not None  # noqa: S101 - a built-in kind
        return served

    async def load(self) -> None:
        page = await self._server.store.list(Query(resource=RESOURCE))
        for name in self._kinds.keys() - {entry.key.name for entry in page.entries}:
            self._withdraw(name)
        for entry in page.entries:
            await self._reconcile(entry)
        self._since = page.revision

    async def decided(self, revision: int) -> None:
        """Until the definition of this revision has its conditions. Whoever makes one asks for them next, as `kubectl wait`
        does, which takes a status without conditions for an error."""
        with contextlib.suppress(TimeoutError):  # then it comes a little later
            async with asyncio.timeout(PATIENCE):
                while self._decided < revision:
                    await self._news.wait()

    async def run(self) -> None:
        missed = False
        while True:
            try:
                if missed:
                    await self.load()
                missed = True  # whatever ends the watch
                await self._follow()
            except Gone:  # so many changes at once that some were missed
                continue
            except (StoreError, StatusError) as error:
                log.warning("definitions cannot be followed now", error=str(error))
                await self._server.clock.sleep(RETRY)

    async def _follow(self) -> None:
        async with aclosing(self._server.store.watch(Query(resource=RESOURCE), self._since)) as batches:
            async for batch in batches:
                for change in batch.changes:
                    await self._changed(change)
                self._decided = batch.revision
                news, self._news = self._news, asyncio.Event()
                news.set()

    async def _changed(self, change: Change) -> None:
        if change.op is Op.DELETE:
            self._withdraw(change.entry.key.name)
            await self._retry_refused()
        else:
            await self._reconcile(change.entry)

    async def _reconcile(self, entry: Entry) -> None:
        name = entry.key.name
        definition = self._served.decode(entry)
        if definition["metadata"].get("deletionTimestamp"):
            if CLEANUP in (definition["metadata"].get("finalizers") or ()) and name not in self._cleanups:
                self._serve(definition)
                task = self._server.spawn(
                    self._server.insist(partial(self._clean_up, definition), f"clean up {name}"), f"clean up {name}"
                )
                self._cleanups[name] = task
                task.add_done_callback(lambda _: self._cleanups.pop(name, None))
            return
        taken = self._taken(definition)
        await self._server.acts.modify(self._served, "", name, lambda d: self._accept(d, taken), "status")
        current = await self._server.store.get(Key(RESOURCE, "", name))
        if current is not None:
            accepted = self._served.decode(current)
            if _condition(accepted, "Established") == "True":
                self._serve(accepted)

    async def _retry_refused(self) -> None:
        for entry in (await self._server.store.list(Query(resource=RESOURCE))).entries:
            if _condition(self._served.decode(entry), "NamesAccepted") != "True":
                await self._reconcile(entry)

    def _accept(self, definition: Document, taken: set[str]) -> None:
        """Write what was decided about the names into the status: each that is free is accepted."""
        status = definition.setdefault("status", {})
        names = definition["spec"]["names"]
        now = format_time(self._server.clock.now())
        accepted: Document = {"plural": "", "kind": "", **(status.get("acceptedNames") or {})}
        accepted |= {field: value for field, value in names.items() if isinstance(value, str) and value not in taken}
        if not taken.intersection(names.get("shortNames") or ()):
            accepted |= {field: names[field] for field in ("shortNames",) if field in names}
        if "categories" in names:
            accepted["categories"] = names["categories"]
        status["acceptedNames"] = orjson.loads(orjson.dumps({f: v for f, v in accepted.items() if v != []}))
        conflicts = [f'"{name}" is already in use' for name in _all_names(names) if name in taken]
        if conflicts:
            _set_condition(status, "NamesAccepted", "False", _CONFLICTS[_kind_of(names, taken)], conflicts[0], now)
            _set_condition(status, "Established", "False", "NotAccepted", "not all names are accepted", now, keep=True)
        elif _has_bad_bundle(definition):
            _set_condition(status, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now)
            text = "The conversion webhook CABundle is invalid"
            _set_condition(status, "Established", "False", "InvalidCABundle", text, now, keep=True)
        else:
            _set_condition(status, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now)
            _set_condition(
                status,
                "Established",
                "True",
                "InitialNamesAccepted",
                "the initial names have been accepted",
                now,
                keep=True,
            )
        stored = status.get("storedVersions") or []
        storage = next(version["name"] for version in definition["spec"]["versions"] if version.get("storage"))
        status["storedVersions"] = stored if storage in stored else [*stored, storage]

    def _taken(self, definition: Document) -> set[str]:
        """The names of this definition that another kind of its group has."""
        group, names = definition["spec"]["group"], definition["spec"]["names"]
        mine = set(self._kinds.get(definition["metadata"]["name"], ()))
        others = [
            served.kind
            for served in self._server.registry
            if served.kind.group == group and (group, served.kind.version, served.kind.plural) not in mine
        ]
        resources = {name for kind in others for name in (kind.plural, kind.singular, *kind.short_names)}
        kinds = {name for kind in others for name in (kind.kind, kind.list_kind)}
        wanted = {names["plural"], names.get("singular") or "", *(names.get("shortNames") or ())}
        return (wanted & resources) | ({names["kind"], names.get("listKind") or ""} & kinds)

    def _serve(self, definition: Document) -> None:
        """Serve the kinds of a definition. Where they changed, watches of what they were end, as on the real server. Those
        of kinds that are about to go stay as they are: their watches tell what goes, and end last."""
        name = definition["metadata"]["name"]
        ending = bool(definition["metadata"].get("deletionTimestamp"))
        spec = (definition["spec"], (definition.get("status") or {}).get("acceptedNames"))
        if self._specs.get(name) == spec:
            for path in self._kinds.get(name, ()):
                if (one := self._server.registry.find(*path)) is not None:
                    one.strategy.terminating = ending
            return
        self._specs[name] = spec
        served = self._made(definition)
        paths = [(one.kind.group, one.kind.version, one.kind.plural) for one in served]
        offered = {version["name"] for version in definition["spec"]["versions"] if version.get("served")}
        for path in self._kinds.get(name, ()):
            if path not in paths or path[1] not in offered:
                self._server.registry.remove(*path)
            self._server.broadcasts.end(path)
        for one in served:
            one.strategy.terminating = ending
            if one.kind.version in offered:
                self._server.registry.add(one)
        self._kinds[name] = [path for path in paths if path[1] in offered]

    def _made(self, definition: Document) -> list[Served]:
        """Its versions, each with the way to the one that is stored."""
        store, made = self._server.store, list(strategies(definition))
        converter = self._server.converters.of(definition)
        if converter is not None:
            from trimtab.server.conversion.serving import converting

            return converting(made, store, converter)
        stored = next(Served(strategy, store) for strategy, is_stored in made if is_stored)
        served = [stored if is_stored else Served(strategy, store, stored=stored) for strategy, is_stored in made]
        if len(served) > 1:
            schemas = {one.kind.api_version: one.kind.schema for one in served}
            for one in served:
                one.schemas = schemas
        return served

    def _withdraw(self, name: str) -> None:
        self._specs.pop(name, None)
        for path in self._kinds.pop(name, ()):
            self._server.registry.remove(*path)
            self._server.broadcasts.end(path)

    async def _clean_up(self, definition: Document) -> None:
        """Delete the objects, wait for those that are held, then let the definition go."""
        name = definition["metadata"]["name"]
        now = format_time(self._server.clock.now())

        def terminating(live: Document) -> None:
            text = "CustomResource deletion is in progress"
            _set_condition(
                live.setdefault("status", {}), "Terminating", "True", "InstanceDeletionInProgress", text, now
            )

        await self._server.acts.modify(self._served, "", name, terminating, "status")
        spec = definition["spec"]
        served = self._server.registry.storages().get(f"{spec['names']['plural']}.{spec['group']}")
        while served is not None:
            query = Query(resource=served.strategy.storage)
            for entry in (await served.source.list(query)).entries:
                try:
                    await self._server.acts.remove(served, entry.key.namespace, entry.key.name)
                except StatusError as error:  # refused, or its conversion fails: it may work later
                    log.warning("an object of an ending kind stays", kind=name, error=error.message)
            if not (await served.source.list(query)).entries:
                break
            await self._server.clock.sleep(RETRY)

        def release(live: Document) -> None:
            finalizers = [f for f in live["metadata"].get("finalizers") or () if f != CLEANUP]
            live["metadata"].pop("finalizers", None)
            if finalizers:
                live["metadata"]["finalizers"] = finalizers

        await self._server.acts.modify(self._served, "", name, release)


_CONFLICTS = {
    "plural": "PluralConflict",
    "singular": "SingularConflict",
    "shortNames": "ShortNamesConflict",
    "kind": "KindConflict",
    "listKind": "ListKindConflict",
}


def _has_bad_bundle(definition: Document) -> bool:
    """Whether the authority of a conversion webhook is none; "" is that of the system."""
    webhook = (definition["spec"].get("conversion") or {}).get("webhook") or {}
    bundle = (webhook.get("clientConfig") or {}).get("caBundle")
    if not bundle:
        return False
    try:
        ssl.create_default_context(cadata=base64.b64decode(bundle).decode("ascii"))
    except (ssl.SSLError, ValueError):
        return True
    return False


def _all_names(names: Document) -> list[str]:
    plain = [names.get(field) or "" for field in ("plural", "singular")]
    return [*plain, *(names.get("shortNames") or ()), names["kind"], names.get("listKind") or ""]


def _kind_of(names: Document, taken: set[str]) -> str:
    """The first field whose name is taken."""
    fields = [field for field in ("plural", "singular", "kind", "listKind") if names.get(field) in taken]
    return fields[0] if fields else "shortNames"


def _condition(definition: Document, type_: str) -> str:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return next((condition["status"] for condition in conditions if condition["type"] == type_), "Unknown")


def _set_condition(
    status: Document, type_: str, value: str, reason: str, message: str, now: str, *, keep: bool = False
) -> None:
    """`keep`: a condition that is already true stays as it is, with the reason of the time when it became so."""
    conditions: list[dict[str, Any]] = status.get("conditions") or []
    old = next((condition for condition in conditions if condition["type"] == type_), None)
    if old is not None and (old["status"] == value or (keep and old["status"] == "True")):
        if not keep:
            old |= {"reason": reason, "message": message}
        status["conditions"] = conditions
        return
    made = {"type": type_, "status": value, "lastTransitionTime": now, "reason": reason, "message": message}
    status["conditions"] = [*(c for c in conditions if c["type"] != type_), made]

"""Apply a set of documents for an owner, and prune what is no longer in the set.

    inventory = Inventory(client, clock, manager="gitops.trimtab.dev")
    plan = await inventory.plan(owner, documents)      # what would be done, and what is refused
    await inventory.execute(plan)                      # or both at once: `await inventory.apply(owner, documents)`

Flow of an execution: the names of all that will be applied are recorded; then each object is applied with our label,
namespaces and CRDs first (a CRD is waited for until it is Established); then what is no longer declared is deleted, in
reverse order; then the record is brought up to date.

Guarantees: what we make is in the record before it is made, so a crash at any line leaves no orphan, and the next run
ends where this one would have. What is not ours is neither changed nor deleted: deletions carry the uid, and only what
has our label is deleted. Nothing is pruned after a failed apply. No more than five objects or 30 % of them are pruned at
once, never all because nothing is declared any more, and nothing together with a Namespace or a CRD, which would take with
it what is inside, whoever made it; unless `allow_mass_delete`. An object whose annotation `runtime.trimtab.dev/prune` is
"false" stays, and is released.

Assumes one execution at a time for an owner; a second one meets a conflict (409). The owner's controller empties its
inventory (`apply(owner, (), allow_mass_delete=True)`) in a finalizer before the owner goes.

Caveats: an owner is its uid. One that was made anew is another, and meets the objects of the first as foreign ones. Pruned
objects may linger for their finalizers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from trimtab.client.follow import follow
from trimtab.client.protocol import Client, Listing, Named, Object, Preconditions, Query
from trimtab.model.clock import Clock
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped
from trimtab.runtime.deadline import within
from trimtab.runtime.inventory.plan import (
    Document,
    Entry,
    Identity,
    Plan,
    Reason,
    Step,
    entry_of,
    labelled,
    planned,
)
from trimtab.runtime.inventory.record import InventoryTooLarge, Record
from trimtab.runtime.objects import uid_of

CRD = Named("apiextensions.k8s.io/v1", "CustomResourceDefinition")
PATIENCE = 30.0  # for a CRD to be served
PAUSE = 0.2

__all__ = ["Inventory", "InventoryFailed", "InventoryTooLarge", "Plan"]


class Failure(msgspec.Struct, frozen=True):
    """One object that could not be applied."""

    entry: Entry
    error: StatusError

    def __str__(self) -> str:
        """Of a Secret only the reason, which a server may leave out: a message may quote what is in it."""
        if self.entry.kind != "Secret":
            return f"{self.entry}: {self.error.message}"
        unnamed = f"the server refused it with status {self.error.code}; its words are not shown, they may quote values"
        return f"{self.entry}: {self.error.reason or unnamed}"


class InventoryFailed(Exception):  # noqa: N818 - it reads as what happened
    """Some objects could not be applied. The others were; nothing was pruned."""

    def __init__(self, failures: Sequence[Failure]) -> None:
        shown = "; ".join(str(failure) for failure in failures[:5])
        more = f"; and {len(failures) - 5} more" if len(failures) > 5 else ""
        super().__init__(f"{len(failures)} objects could not be applied: {shown}{more}")
        self.failures = tuple(failures)


class Inventory:
    """Applies and prunes for any number of owners."""

    def __init__(self, client: Client, clock: Clock, *, manager: str, namespace: str = "") -> None:
        """`namespace` is where the inventories of owners live that have none themselves."""
        self._client, self._clock = client, clock
        self._manager, self._namespace = manager, namespace

    async def apply(
        self, owner: Object, documents: Iterable[Document], *, adopt: bool = False, allow_mass_delete: bool = False
    ) -> Plan:
        """Plan and execute. What was refused is in the plan; InventoryFailed when an apply failed."""
        plan = await self.plan(owner, documents, adopt=adopt, allow_mass_delete=allow_mass_delete)
        await self.execute(plan)
        return plan

    async def plan(
        self, owner: Object, documents: Iterable[Document], *, adopt: bool = False, allow_mass_delete: bool = False
    ) -> Plan:
        """Only reads. With `adopt`, existing objects that belong to nobody are taken over."""
        inventory = uid_of(owner)
        declared: dict[Identity, Document] = {}
        for document in documents:
            identity = _identity(document)
            if identity in declared:
                raise ValueError(f"{entry_of(document)} is declared twice")
            declared[identity] = labelled(document, inventory)
        record = await self._record(owner)
        live: dict[Identity, Document] = {}
        for entry in (*(entry_of(document) for document in declared.values()), *record.entries):
            if entry.identity not in live and (found := await self._read(entry)) is not None:
                live[entry.identity] = found
        return planned(
            owner,
            self._manager,
            declared,
            record.entries,
            live,
            adopt=adopt,
            allow_mass_delete=allow_mass_delete,
        )

    async def execute(self, plan: Plan) -> None:
        """Do what the plan says. What changed since it was made is met with a failure, never overwritten."""
        record = await self._record(plan.owner)
        known = {entry.identity for entry in record.entries}
        new = (step.entry for step in plan.wanted if step.entry.identity not in known)
        await record.update([*new, *plan.held])
        seen = [step.entry for step in plan.unchanged]
        failures: list[Failure] = []
        made: set[tuple[str, str]] = set()  # kinds that were just defined
        for step in plan.applied:
            try:
                live = await self._apply(step, made)
                seen.append(msgspec.structs.replace(step.entry, uid=live["metadata"]["uid"]))
                made |= await self._defined(live)
            except StatusError as error:
                failures.append(Failure(step.entry, error))
        if failures:
            await record.update(seen)
            raise InventoryFailed(failures)
        gone = [step.entry for step in plan.pruned if await self._prune(step)]
        kept = {refusal.entry for refusal in plan.refused if refusal.reason is Reason.KEPT}
        await record.update(seen, (*gone, *plan.forget, *kept))

    async def _record(self, owner: Object) -> Record:
        namespace = owner.namespace or self._namespace
        if not uid_of(owner) or not namespace:
            raise ValueError("the owner of an inventory must come from the API, and there must be a namespace for it")
        return await Record.read(self._client, owner, namespace)

    async def _read(self, entry: Entry) -> Document | None:
        try:
            found = await self._client.get(Named(entry.api_version, entry.kind), entry.name, entry.namespace)
        except StatusError as error:
            if error.code == 404:  # also when the kind is not served yet, or no more
                return None
            raise
        return {**found.raw, "apiVersion": entry.api_version, "kind": entry.kind}

    async def _apply(self, step: Step, made: set[tuple[str, str]]) -> Document:
        """What exists is changed by force, but only if it is still the same object. What does not must not meet another."""
        assert step.declared is not None  # noqa: S101 - wanted
        document = step.declared
        if step.live is not None:
            document = {**document, "metadata": {**document["metadata"], "uid": step.live["metadata"]["uid"]}}
        deadline = self._clock.monotonic() + PATIENCE
        while True:
            try:
                options: dict[str, Any] = {"manager": self._manager, "force": step.live is not None}
                applied = await self._client.apply(Untyped(document), **options)
                return dict(applied.raw)
            except StatusError as error:
                new = (step.entry.identity.group, step.entry.kind) in made
                if error.code != 404 or not new or self._clock.monotonic() >= deadline:
                    raise
            await self._clock.sleep(PAUSE)  # servers announce a kind a little before they serve it

    async def _prune(self, step: Step) -> bool:
        """Whether it went. One that was replaced since the plan was made is judged again by the next plan."""
        assert step.live is not None  # noqa: S101 - only what exists is pruned
        at = Preconditions(uid=step.live["metadata"]["uid"])
        try:
            await self._client.delete(step.entry.ref, preconditions=at, propagation="Background")
        except StatusError as error:
            if error.code not in (404, 409):
                raise
            return error.code == 404
        return True

    async def _defined(self, live: Document) -> set[tuple[str, str]]:
        """The kinds that a CRD has brought, when they are served; nothing for other objects."""
        if entry_of(live).identity.group != "apiextensions.k8s.io":
            return set()
        kind = (live["spec"]["group"], live["spec"]["names"]["kind"])
        if not _is_established(live):
            try:
                await within(self._clock, PATIENCE, self._established(live["metadata"]["name"]))
            except TimeoutError:
                raise StatusError(504, "Timeout", f"the CRD was not established within {PATIENCE:g} s") from None
        return {kind}

    async def _established(self, name: str) -> None:
        following = follow(self._client, CRD, Query(fields=f"metadata.name={name}"), clock=self._clock)
        try:
            async for told in following:
                found = told.items if isinstance(told, Listing) else (told.object,)
                if any(item is not None and _is_established(item.raw) for item in found):
                    return
        finally:
            await following.aclose()


def _is_established(crd: Any) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions)


def _identity(document: Document) -> Identity:
    """ValueError for what cannot be applied at all."""
    metadata = document.get("metadata")
    if not (
        document.get("apiVersion") and document.get("kind") and isinstance(metadata, dict) and metadata.get("name")
    ):
        raise ValueError("every document needs apiVersion, kind and metadata.name")
    return entry_of(document).identity

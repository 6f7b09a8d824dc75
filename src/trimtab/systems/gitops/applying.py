"""Doing what a plan says in the system: applies wave by wave, then deletions. Many at once, and no read that is not needed.

Guarantees: a wave begins when all of the one before it is applied; after a failure none begins, and nothing is deleted.
Deletions carry the uid of what was synced: another object of the same name stays. Whatever was done is in the inventory
when this returns or raises, also when it is cut off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec

from trimtab.client.api import ApiClient
from trimtab.client.protocol import Named, Preconditions, Ref
from trimtab.client.transport import Silent, Unreachable
from trimtab.model.clock import Clock
from trimtab.model.errors import StatusError
from trimtab.systems.gitops.inventory import Entry, Inventory
from trimtab.systems.gitops.knowing import SECRET_KINDS
from trimtab.systems.gitops.leftovers import leftovers
from trimtab.systems.gitops.merging import Base, normal
from trimtab.systems.gitops.ordering import References, order
from trimtab.systems.gitops.parsing import Identity
from trimtab.systems.gitops.planning import Action, Step
from trimtab.systems.gitops.sending import Document, Guard, Sender

AT_ONCE = 24
BATCH, BATCHES_AT_ONCE = 48, 6
"""Documents that go in one request where the server takes many, and such requests under way: few large ones end together,
and the server waits for the next."""

NOT_TRIED = "not tried: what comes before it could not be applied"

Portion = Sequence[Step]


class Failure(msgspec.Struct, frozen=True):
    """One document that the server did not take."""

    identity: Identity
    path: str
    reason: str
    message: str


class Acts(msgspec.Struct, frozen=True):
    """What came of a plan: what was done, what failed, and what was not `tried` because something before it failed."""

    applied: frozenset[Identity] = frozenset()
    deleted: frozenset[Identity] = frozenset()
    failures: tuple[Failure, ...] = ()
    untried: tuple[Failure, ...] = ()


class Applier:
    """Acts for one run of one sync."""

    def __init__(
        self,
        client: ApiClient,
        clock: Clock,
        inventory: Inventory,
        *,
        guard: Guard,
        lineage_key: Callable[[str, str], str],
        lineage: str,
        clean: Callable[[Document], Document] = lambda document: document,
        progress: Callable[[int], None] | None = None,
        at_once: int = AT_ONCE,
    ) -> None:
        """`lineage` is what is written to the annotation that `lineage_key` tells, for kinds that keep it; `clean` takes off
        what is no base."""
        self._client, self._inventory, self._sender = client, inventory, Sender(client, clock, guard)
        self._guard, self._lineage_key, self._lineage = guard, lineage_key, lineage
        self._clean = clean
        self._progress, self._at_once = progress or (lambda done: None), at_once
        self._done = self._lost = 0
        self.failures: list[Failure] = []
        self.untried: list[Failure] = []
        self.applied: list[Identity] = []
        self.deleted: list[Identity] = []

    @property
    def acts(self) -> Acts:
        """So far."""
        return Acts(frozenset(self.applied), frozenset(self.deleted), tuple(self.failures), tuple(self.untried))

    async def apply(self, steps: Sequence[Step], references: References | None = None) -> bool:
        """Whether all of it was applied."""
        by_identity = {step.identity: step for step in steps}
        defined = defined_kinds(step.document or {} for step in steps)
        waves = order([(step.identity, step.document or {}) for step in steps], references).waves
        for number, wave in enumerate(waves, 1):
            portions = self._portions([by_identity[identity] for identity in wave])
            await self._each(portions, lambda portion: self._apply_all(portion, defined))
            if self.failures:
                left = [by_identity[identity] for later in waves[number:] for identity in later]
                self.untried += [Failure(step.identity, step.path, "NotTried", NOT_TRIED) for step in left]
                return False
        return True

    async def prune(self, steps: Sequence[Step]) -> bool:
        """Whether all of them are gone, or going. What others stand on goes last."""
        documents = {step.identity: step.live or {} for step in steps}
        by_identity = {step.identity: step for step in steps}
        for wave in reversed(order(documents.items()).waves):
            await self._each([[by_identity[identity]] for identity in wave], self._delete)
            if self.failures:
                return False
        return True

    async def _each(self, portions: Sequence[Portion], act: Callable[[Portion], Awaitable[None]]) -> None:
        left = iter(portions)
        most = max(map(len, portions), default=1)

        async def work() -> None:
            for portion in left:
                await act(portion)
                self._done += len(portion)
                self._progress(self._done)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._at_once if most == 1 else BATCHES_AT_ONCE, len(portions))):
                    group.create_task(work())
        except ExceptionGroup as errors:  # they all met the same: the server is gone, or the lease
            raise errors.exceptions[0] from None

    def _portions(self, steps: Sequence[Step]) -> list[Portion]:
        """What is sent in one request: as much as a batch may hold, where the server takes batches."""
        return _some(steps, BATCH if self._sender.batches else 1)

    async def _apply_all(self, portion: Portion, defined: frozenset[tuple[str, str]]) -> None:
        """In one request where that works, and else each by itself: there it is found out why."""
        answers: dict[Identity, Document] = {}
        applied = [step for step in portion if step.action is not Action.OWN]
        if len(applied) > 1:
            answers = await self._sender.apply_all({step.identity: self.applied_form(step) for step in applied})
        for step in portion:
            if step.identity in answers:
                await self._apply(step, defined, answers[step.identity])
        left = [step for step in portion if step.identity not in answers]
        for some in _some(left, max(1, self._at_once // BATCHES_AT_ONCE)):
            tried = await asyncio.gather(*(self._apply(step, defined) for step in some), return_exceptions=True)
            for error in tried:
                if error is not None:
                    raise error

    async def _apply(self, step: Step, defined: frozenset[tuple[str, str]], answer: Document | None = None) -> None:
        """`answer` is what the server said, where it was sent already."""
        document, owns = self.applied_form(step), step.action is Action.OWN
        try:
            if owns:  # an apply would take away what we applied before
                answer = await self._sender.merge(document)
            elif answer is None:
                new = (step.identity.group, step.identity.kind) in defined
                answer = await self._sender.apply(document, until_served=new)
            before = self._inventory.get(step.identity)
            left: Document = {}
            if not owns and before is not None and before.base.git:
                left = leftovers(before.base.git, document, answer)
            if left:
                answer = await self._take_away(answer, left)
        except StatusError as error:
            if error.code != 404 or not owns:  # it was deleted meanwhile, of which the next run tells Git
                self.failures.append(_failure(step, error))
            return
        except (Unreachable, Silent) as error:
            self._unanswered(step, error)
            return
        metadata = answer.get("metadata") or {}
        seen = step.live if owns and step.live else answer
        self._inventory.put(
            Entry(
                step.identity,
                version=str(document["apiVersion"]),
                uid=str(metadata.get("uid", "")),
                path=step.path,
                index=step.index,
                digest=step.digest,
                base=Base(step.document, normal(self._clean(seen))),
                artifacts=before.artifacts if before is not None else {},
                item=step.item,
            )
        )
        self.applied.append(step.identity)

    def _unanswered(self, step: Step, error: Exception) -> None:
        """No answer about one document is the document's failure: it may be larger than the server takes. No answer about
        more than are asked for at once is the server's, and raised."""
        self.failures.append(
            Failure(step.identity, step.path, "NoAnswer", f"the server did not answer: {error}"[:1024])
        )
        self._lost += 1
        if self._lost > self._at_once:
            raise error

    def applied_form(self, step: Step) -> Document:
        """What is sent: in its namespace, with our lineage where the kind keeps it. Of what came from the system, the lineage
        alone: it may say another thing by now, which is for Git to learn."""
        document = dict(step.document or {})
        metadata = dict(document.get("metadata") or {})
        if step.action is Action.OWN:
            document = {word: document[word] for word in ("apiVersion", "kind")}
            metadata = {"name": step.identity.name}
        if step.identity.namespace:
            metadata["namespace"] = step.identity.namespace
        if key := self._lineage_key(str(document["apiVersion"]), str(document["kind"])):
            metadata["annotations"] = {**(metadata.get("annotations") or {}), key: self._lineage}
        document["metadata"] = metadata
        return document

    async def _take_away(self, answer: Document, left: Document) -> Document:
        """Fields that Git no longer says, and that others own with us, stay after an apply: they are taken away by name."""
        metadata = answer["metadata"]
        names = {"name": metadata["name"], "resourceVersion": metadata["resourceVersion"]}
        if metadata.get("namespace"):
            names["namespace"] = metadata["namespace"]
        change = {**left, "metadata": {**left.get("metadata", {}), **names}}
        change = {"apiVersion": answer["apiVersion"], "kind": answer["kind"], **change}
        return await self._sender.merge(change)

    async def _delete(self, portion: Portion) -> None:
        [step] = portion
        entry = self._inventory.get(step.identity)
        if entry is None:
            return
        ref = Ref(Named(entry.version, step.identity.kind), step.identity.name, step.identity.namespace)
        try:
            async with self._guard():
                await self._client.delete(
                    ref, preconditions=Preconditions(uid=entry.uid or None), propagation="Background"
                )
            self.deleted.append(step.identity)
        except StatusError as error:
            if error.code not in (404, 409):
                self.failures.append(_failure(step, error))
                return
        except (Unreachable, Silent) as error:
            self._unanswered(step, error)
            return
        self._inventory.remove(step.identity)


def _some(steps: Sequence[Step], size: int) -> list[Portion]:
    return [steps[at : at + size] for at in range(0, len(steps), size)]


def defined_kinds(documents: Iterable[Document]) -> frozenset[tuple[str, str]]:
    """(group, kind) of what the CRDs among the documents define."""
    found = set()
    for document in documents:
        spec = document.get("spec")
        if document.get("kind") == "CustomResourceDefinition" and isinstance(spec, dict):
            names = spec.get("names")
            found.add((str(spec.get("group")), str(names.get("kind")) if isinstance(names, dict) else ""))
    return frozenset(found)


def _failure(step: Step, error: StatusError) -> Failure:
    """Of a Secret only the reason: a message may quote what is in it."""
    secret = (step.identity.group, step.identity.kind) in SECRET_KINDS
    message = "the server refuses it; see its audit log" if secret else error.message
    return Failure(step.identity, step.path, error.reason or "Refused", message[:1024])

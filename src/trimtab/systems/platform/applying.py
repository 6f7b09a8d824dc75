"""One set of manifests on one cluster: applied, pruned, judged. What comes out is a Part of somebody's status.

Flow: find the set's anchor there; plan by reading; act unless only drift would be corrected and that is not wanted; read
again; judge the health of what is there. Nothing is thrown for what can be told: an unreachable cluster, a refusal and an
object of another owner all are phases with a reason.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from trimtab.client.api import ApiClient
from trimtab.client.protocol import Named
from trimtab.client.transport import FAILURES
from trimtab.model.clock import Clock
from trimtab.model.errors import StatusError
from trimtab.model.health import Health, State, health
from trimtab.runtime.deadline import within
from trimtab.runtime.inventory import Inventory, InventoryFailed, InventoryTooLarge, Plan
from trimtab.runtime.inventory.plan import Document, Reason, Refusal, Step
from trimtab.runtime.system import NAMESPACE
from trimtab.systems.platform import anchors
from trimtab.systems.platform.anchors import Holder
from trimtab.systems.platform.drifting import MANAGER, differs
from trimtab.systems.platform.faults import Fault, cut, of_call
from trimtab.systems.platform.kinds.fields import Part, Phase
from trimtab.systems.platform.rendering.manifests import MAX_DOCUMENTS, Manifests, Unfit, defined, placed

SHOWN = 5
PATIENCE, EACH = 60.0, 0.25
"""Seconds that one cluster is given for a set, and for each of its objects: a slow one must not hold up the others."""

UNWRITABLE = (TypeError, ArithmeticError, RecursionError, msgspec.MsgspecError)
"""How a value may refuse to become JSON."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """How a set is to be treated on a cluster."""

    correct: bool = True  # what others changed is put back
    tell_drift: bool = True
    adopt: bool = False  # what exists and belongs to nobody is taken over
    allow_mass_delete: bool = False


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The new state, and what was done: for events. `again`: in so many seconds something may be better."""

    part: Part
    created: int = 0
    changed: int = 0
    pruned: int = 0
    corrected: int = 0
    again: bool = False


class Applier:
    """Applies for any number of holders on any number of clusters."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def apply(
        self, target: ApiClient, holder: Holder, manifests: Manifests, namespace: str, before: Part, wish: Wish
    ) -> Outcome:
        """`before` is the last known state: with the same digest, changes on the cluster are drift."""
        patience = PATIENCE + len(manifests.documents) * EACH
        try:
            applied = self._applied(target, holder, manifests, namespace, before, wish)
            return await within(self._clock, patience, applied)
        except Fault as fault:
            return _failed(before, fault)
        except InventoryFailed as error:
            return _failed(_begun(before, manifests), Fault("ApplyFailed", str(error)))
        except (InventoryTooLarge, Unfit, ValueError) as error:
            return _failed(before, Fault("ManifestsInvalid", str(error), again=False))
        except FAILURES as error:
            return _failed(_begun(before, manifests), of_call(error))
        except UNWRITABLE as error:  # a surprise; its words may hold what is in a Secret
            told = f"a value in them cannot be sent to the cluster ({type(error).__name__})"
            return _failed(_begun(before, manifests), Fault("ManifestsInvalid", told, again=False))

    async def remove(self, target: ApiClient, holder: Holder) -> int:
        """Everything of the holder's set goes, and its anchor; how many objects that was. Fault when it cannot be."""
        try:
            return await within(self._clock, PATIENCE + MAX_DOCUMENTS * EACH, self._removed(target, holder))
        except FAILURES as error:
            raise of_call(error) from None

    async def leaving(self, target: ApiClient, holder: Holder) -> tuple[Step, ...]:
        """What `remove` would delete; it only reads. Fault when it cannot be known."""
        try:
            return await within(self._clock, PATIENCE + MAX_DOCUMENTS * EACH, self._would_go(target, holder))
        except FAILURES as error:
            raise of_call(error) from None

    async def _would_go(self, target: ApiClient, holder: Holder) -> tuple[Step, ...]:
        anchor = await anchors.find(target, holder)
        if anchor is None:
            return ()
        return (await self._inventory(target).plan(anchor, (), allow_mass_delete=True)).prune

    async def _removed(self, target: ApiClient, holder: Holder) -> int:
        anchor = await anchors.find(target, holder)
        if anchor is None:
            return 0
        inventory = self._inventory(target)
        plan = await inventory.apply(anchor, (), allow_mass_delete=True)
        left = await inventory.plan(anchor, (), allow_mass_delete=True)
        if left.prune or left.forget:  # replaced by others in the midst: it is looked at anew
            raise Fault("RemovalWaits", "objects changed while they were removed: it is tried again")
        await anchors.release(target, anchor)
        return len(plan.prune)

    async def _applied(
        self, target: ApiClient, holder: Holder, manifests: Manifests, namespace: str, before: Part, wish: Wish
    ) -> Outcome:
        documents = await _placed(target, manifests, namespace)
        anchor, fresh = await anchors.ensure(target, holder)
        inventory = self._inventory(target)
        plan = await inventory.plan(anchor, documents, adopt=wish.adopt, allow_mass_delete=wish.allow_mass_delete)
        known = before.digest == manifests.mark and not fresh
        if known:
            plan = await self._certain(target, plan)
        drifted = len(plan.create) + len(plan.change) if known else 0
        acts = bool(plan.create or plan.change or plan.prune or plan.forget)
        if known and not wish.correct:
            return _judged(before, manifests, plan, drifted if wish.tell_drift else 0, known=True)
        if acts:
            if any(step.entry.namespace == namespace for step in plan.create):
                await anchors.ensure_namespace(target, namespace)
            await inventory.execute(plan)
        after = await inventory.plan(anchor, documents, adopt=wish.adopt) if acts else plan
        outcome = _judged(before, manifests, msgspec.structs.replace(after, refused=plan.refused), 0)
        return msgspec.structs.replace(
            outcome,
            created=len(plan.create),
            changed=len(plan.change),
            pruned=len(plan.prune),
            corrected=drifted,
        )

    async def _certain(self, target: ApiClient, plan: Plan) -> Plan:
        """A plan changes what may be different. What was applied before is drift only when it surely is."""
        real = [step for step in plan.change if await differs(target, step)]
        settled = tuple(step for step in plan.change if step not in real)
        return msgspec.structs.replace(plan, change=tuple(real), unchanged=(*plan.unchanged, *settled))

    def _inventory(self, target: ApiClient) -> Inventory:
        return Inventory(target, self._clock, manager=MANAGER)


async def _placed(target: ApiClient, manifests: Manifests, namespace: str) -> list[Document]:
    """With the namespace where one belongs: which kinds have one is the cluster's to say, or the documents' own."""
    own = defined(manifests.documents)
    scopes: dict[tuple[str, str], bool | None] = {}
    for document in manifests.documents:
        key = (document["apiVersion"], document["kind"])
        if key in scopes:
            continue
        try:
            scopes[key] = (await target.place(Named(*key))).namespaced
        except StatusError as error:
            if error.code != 404:
                raise
            scopes[key] = own.get((key[0].rpartition("/")[0], key[1]))
    made = placed(manifests.documents, namespace, lambda document: scopes[document["apiVersion"], document["kind"]])
    for document in made:
        metadata = document["metadata"]
        if document["kind"] == "Namespace" and metadata["name"] == NAMESPACE:
            raise Unfit(f"Namespace {NAMESPACE}: our own records are in it; leave it out")
        if metadata.get("namespace") == NAMESPACE and metadata["name"].startswith(("trimtab-", "inventory-")):
            raise Unfit(f"{document['kind']} {metadata['name']}: in {NAMESPACE} such names are for our own records")
    return made


def listed(told: list[str]) -> str:
    """The first few, and how many more."""
    more = f"; and {len(told) - SHOWN} more" if len(told) > SHOWN else ""
    return "; ".join(told[:SHOWN]) + more


def _judged(before: Part, manifests: Manifests, plan: Plan, drifted: int, *, known: bool = False) -> Outcome:
    """`known`: it was applied before, and others changed it since; that is left to them."""
    found = [(step, _health(step)) for step in (*plan.unchanged, *plan.change)]
    healthy = sum(state.state is State.CURRENT for _, state in found)
    refused = [one for one in plan.refused if one.reason is not Reason.KEPT]
    total = len(manifests.documents)
    phase, reason, message = _verdict(manifests, plan, found, refused, drifted)
    complete = known or not (refused or plan.create)
    part = before.replace(
        phase=phase,
        reason=reason,
        message=cut(message) if message else UNSET,
        objects=total,
        healthy=healthy,
        drifted=drifted or UNSET,
        digest=manifests.mark if complete else UNSET,
    )
    return Outcome(part=part, again=phase != "Ready")


def _verdict(
    manifests: Manifests, plan: Plan, found: list[tuple[Step, Health]], refused: list[Refusal], drifted: int
) -> tuple[Phase, str, str]:
    if refused:
        reasons = {one.reason for one in refused}
        reason = "NotOurs" if Reason.NOT_OURS in reasons else _REFUSED[refused[0].reason]
        hints = dict.fromkeys(_HINTS[each].format(digest=manifests.digest) for each in _HINTS if each in reasons)
        return "Failed", reason, ". ".join((*hints, listed([str(one) for one in refused])))
    if drifted:
        steps = (*plan.create, *plan.change)
        return "Degraded", "Drifted", "changed by others: " + listed([str(step.entry) for step in steps])
    if plan.create:
        return "Progressing", "Applying", "not there yet: " + listed([str(step.entry) for step in plan.create])
    for state, phase, reason in _STATES:
        those = [f"{step.entry}: {one.reason}" for step, one in found if one.state is state]
        if those:
            return phase, reason, listed(those)
    return "Ready", "Healthy", ""


_STATES: tuple[tuple[State, Phase, str], ...] = (
    (State.FAILED, "Degraded", "Unhealthy"),
    (State.TERMINATING, "Progressing", "Terminating"),
    (State.IN_PROGRESS, "Progressing", "Progressing"),
    (State.UNKNOWN, "Progressing", "Progressing"),
)
_REFUSED = {
    Reason.NOT_OURS: "NotOurs",
    Reason.UNOWNED: "AlreadyExists",
    Reason.DELETING: "BeingDeleted",
    Reason.MASS_DELETE: "MassDelete",
    Reason.NAMESPACE: "MassDelete",
    Reason.DEFINITION: "MassDelete",
    Reason.HELD: "MassDelete",
    Reason.KEPT: "Kept",
}
_LET_GO = "To let so much go, annotate with hub.trimtab.dev/allow-mass-delete: {digest}"
_HINTS = {
    Reason.UNOWNED: 'To take over what is there, annotate with hub.trimtab.dev/adopt: "true"',
    Reason.MASS_DELETE: _LET_GO,
    Reason.NAMESPACE: _LET_GO,
    Reason.DEFINITION: _LET_GO,
}


def _health(step: Step) -> Health:
    return health(step.live) if step.live is not None else Health(State.IN_PROGRESS, "is not there yet")


def _begun(before: Part, manifests: Manifests) -> Part:
    """Other manifests may be there in part: what was there before them is no longer known to be."""
    return before if before.digest == manifests.mark else before.replace(digest=UNSET)


def _failed(before: Part, fault: Fault) -> Outcome:
    return Outcome(part=before.replace(phase="Failed", reason=fault.reason, message=fault.message), again=fault.again)

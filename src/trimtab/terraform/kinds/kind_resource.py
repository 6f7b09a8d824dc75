"""Every kind as a managed resource. The server is written by server-side apply under the field manager `terraform`.

What we apply is ours: a field that is no longer in the configuration goes, one that others set stays. A field that we
had and somebody changed is drift: the plan shows it, and applying takes it back. A field that others manage and we never
had is a conflict, which `force_conflicts` alone resolves (see contending). Objects that Git syncs are not taken over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.terraform.framework.calls import private_of
from trimtab.terraform.framework.context import Context
from trimtab.terraform.framework.diagnostics import Failed
from trimtab.terraform.framework.encoding import from_json
from trimtab.terraform.framework.resource import (
    Create,
    Delete,
    IdentityAttribute,
    Import,
    Move,
    PlanCreate,
    PlanDelete,
    PlanUpdate,
    Read,
    Resource,
    Update,
)
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.trees import Config, Plan, State
from trimtab.terraform.framework.values import UNKNOWN
from trimtab.terraform.kinds.api import ApiError, Unreachable
from trimtab.terraform.kinds.attributes import choices, resource_schema
from trimtab.terraform.kinds.belonging import demand_same
from trimtab.terraform.kinds.branching import refuse_other_branch
from trimtab.terraform.kinds.client import Client, client_of
from trimtab.terraform.kinds.contending import Mine, applied
from trimtab.terraform.kinds.converting import settled
from trimtab.terraform.kinds.definition import Definition
from trimtab.terraform.kinds.fitting import Unfit, fitting, tell, value_of
from trimtab.terraform.kinds.freezing import frozen, is_sealed
from trimtab.terraform.kinds.giving import given
from trimtab.terraform.kinds.keeping import unkept
from trimtab.terraform.kinds.lineage import refuse_git, without_noise
from trimtab.terraform.kinds.patience import Interrupted
from trimtab.terraform.kinds.reading import EVERYTHING, PRESENT, managers, owned_by, owned_by_anyone, shown
from trimtab.terraform.kinds.secrets import (
    forget,
    given_twice,
    left,
    lost,
    planned,
    remember,
    visible,
    without_ours,
)
from trimtab.terraform.kinds.telling import Telling
from trimtab.terraform.kinds.waiting import Place, wait_current, wait_gone
from trimtab.terraform.kinds.writing import written

Document = dict[str, Any]

WITHIN = {"create": 600.0, "update": 600.0, "delete": 600.0}
"""Seconds, where the user gives no others."""
OWN = ("timeouts", "wait", "force_conflicts")


class KindResource(Resource):
    forgiving = True  # a kind's schema may change under its objects: what no longer fits is read anew

    def __init__(self, definition: Definition, siblings: frozenset[str] = frozenset()) -> None:
        """`siblings` are the other types of the same kind: of one branch, and of all."""
        self._definition, self._siblings = definition, siblings
        self.config_validators = choices(definition)
        self.identity = _identity(definition)
        self.movers = (self._moved,)

    def schema(self) -> Schema:
        return resource_schema(self._definition)

    def validate(self, config: Config, context: Context) -> None:
        for path in given_twice(self._definition, config.value):
            text = f"{path} is in data too, and a Secret has one value for a key. Leave one of them out."
            context.error("Conflicting attributes", text, path)

    def plan(self, op: PlanCreate | PlanUpdate | PlanDelete) -> Plan | None:
        if isinstance(op, PlanDelete):
            return None
        value = op.plan.value
        meta = value.get("metadata")
        if not isinstance(meta, dict):
            return None
        place = self._definition.place
        changed = dict(meta)
        client = op.context.client
        if place and isinstance(op, PlanCreate) and isinstance(client, Client) and not _said(op.config.value, place):
            changed[place] = client.project
        if isinstance(op, PlanUpdate):
            for path in frozen(self._definition, op.state.value, value):
                op.replace(path)
            if not planned(self._definition, op.config.value, op.private):
                changed["resource_version"] = UNKNOWN
                if is_sealed(self._definition, op.state.value):
                    op.replace("metadata.resource_version")
        return Plan({**value, "metadata": changed}) if changed != meta else None

    def create(self, op: Create) -> State:
        client = client_of(op.context)
        demand_same(self._definition, op.private)
        place = self._place(op.plan.value, client)
        doing = f"{place} cannot be created"
        with Telling(self._definition, doing, op.context) as telling:
            live = client.find(place)
            if live and live["metadata"].get("deletionTimestamp"):  # nothing can be made before it is gone
                within = op.context.timeouts("create", WITHIN["create"])
                wait_gone(client.api, place, live, op.context, within, must=True)
                live = client.find(place)
            if live:
                refuse_git(live, place, doing)
                raise Failed(f"{place} already exists", self._advice(place))
            value = given(self._definition, op.config.value, op.plan.value)
            body = telling.body = self._body(written(self._definition, value), place)
            try:
                answer = applied(client, place, body, op.context, force=_forced(op.plan.value, client))
            except (ApiError, Unreachable, Interrupted) as error:
                if error.doubtful:
                    op.context.save(State(op.plan.value))  # it may be there: the next read tells
                raise
            if answer.code != 201 and not answer.repeated:
                raise Failed(f"{place} already exists", f"Somebody made it in the same moment. {self._advice(place)}")
            op.context.save(State(op.plan.value))  # it is there, whatever its answer looks like
            self._compare(place, value, answer.document, op.context)
            remember(self._definition, op.config.value, owned_by(answer.document), op.private)
            state = self._settled(op.plan, answer.document)
            op.context.save(state)
            return self._awaited("create", client, place, answer.document, op.plan, op.context)

    def read(self, op: Read) -> State | None:
        client = client_of(op.context)
        demand_same(self._definition, op.private)
        place = self._place(op.state.value, client)
        doing = f"{place} cannot be read"
        with Telling(self._definition, doing, op.context):
            live = client.find(place)
            if live is None:
                return None
            if _is_another(live, op.state):
                op.context.warning(
                    f"{place} is another object now",
                    f"The one that Terraform managed is gone, and somebody made another. {self._advice(place)}",
                )
                return None
            refuse_other_branch(self._definition, live, place, doing)
            if live["metadata"].get("deletionTimestamp"):
                held = ", ".join(live["metadata"].get("finalizers") or ()) or "whoever cleans up after it"
                op.context.warning(
                    f"{place} is being deleted", f"It is gone once {held} let it go; it is made anew then."
                )
            owned = owned_by(live)
            for path in lost(self._definition, owned, op.private):
                op.context.warning(f"Somebody else changed {path} of {place}", "The next apply writes it again.", path)
                forget(op.private)
            state = self._shown(live, place, owned or PRESENT, op.state.value, op.context)
            return State(without_ours(self._definition, state.value, op.state.value, op.private))

    def update(self, op: Update) -> State:
        client = client_of(op.context)
        demand_same(self._definition, op.private)
        place = self._place(op.state.value, client)
        doing = f"{place} cannot be updated"
        with Telling(self._definition, doing, op.context) as telling:
            live = client.find(place)
            if live is None or _is_another(live, op.state):
                raise Failed(f"{place} is gone", "It was deleted since the plan was made. Plan again.")
            refuse_other_branch(self._definition, live, place, doing)
            force = _forced(op.plan.value, client)
            if not force:
                refuse_git(live, place, doing)
            config, owned = op.config.value, owned_by(live)
            value = given(self._definition, config, op.plan.value, op.state.value, owned)
            document = left(self._definition, written(self._definition, value), config, live, owned, op.private)
            body = telling.body = self._body(document, place)
            body["metadata"]["uid"] = live["metadata"].get("uid")  # an object that goes now is not made anew
            answer = applied(client, place, body, op.context, force=force, mine=Mine(op, live))
            self._compare(place, value, answer.document, op.context)
            remember(self._definition, op.config.value, owned_by(answer.document), op.private)
            op.context.save(self._settled(op.plan, answer.document))
            return self._awaited("update", client, place, answer.document, op.plan, op.context)

    def delete(self, op: Delete) -> None:
        client = client_of(op.context)
        demand_same(self._definition, op.private)
        place = self._place(op.state.value, client)
        doing = f"{place} cannot be deleted"
        with Telling(self._definition, doing, op.context):
            live = client.find(place)
            if live is None or _is_another(live, op.state):
                return
            if not _forced(op.state.value, client):
                refuse_git(live, place, doing)
            try:
                client.api.delete(place.path, uid=str(live["metadata"].get("uid") or ""))
            except ApiError as error:
                if not error.missing:
                    raise
                return
            if not _waits(op.state.value, client):
                return
            remaining = client.find(place)
            if remaining is not None and remaining["metadata"].get("uid") == live["metadata"].get("uid"):
                within = op.context.timeouts("delete", WITHIN["delete"])
                wait_gone(client.api, place, remaining, op.context, within)

    def import_state(self, op: Import) -> State:
        client = client_of(op.context)
        demand_same(self._definition, op.private)
        place = self._named(op, client)
        doing = f"{place} cannot be imported"
        with Telling(self._definition, doing, op.context):
            live = client.find(place)
            if live is None:
                raise Failed(f"{place} does not exist", "Check its name, and the server that the provider talks to.")
            refuse_other_branch(self._definition, live, place, doing)
            refuse_git(live, place, doing)
            owned = owned_by(live) or owned_by_anyone(live)
            return self._shown(live, place, owned, None, op.context)

    def _moved(self, move: Move) -> State | None:
        """The same object under another type of its kind. What is of another branch is found out when it is read."""
        if move.source_type not in self._siblings:
            return None
        move.private.update(private_of(move.source_private))
        return State(from_json(move.source_state, self.schema().value_type(), dropped=[]))

    def _awaited(
        self, operation: str, client: Client, place: Place, document: Document, plan: Plan, context: Context
    ) -> State:
        if _waits(plan.value, client):
            within = context.timeouts(operation, WITHIN[operation])
            document = wait_current(client.api, place, document, context, within)
        return self._settled(plan, document)

    def _compare(self, place: Place, value: Any, document: Document, context: Context) -> None:
        root = self._definition.root
        found = shown(root, fitting(root, document, []), owned_by(document) or PRESENT, value)
        for path in unkept(root, value, found):
            advice = "It ignores the value, or has another for it; every plan will show it. Leave the attribute out."
            context.warning(f"The server did not keep {path} of {place}", advice, path)

    def _settled(self, plan: Plan, document: Document) -> State:
        value = settled(self._definition.root, visible(self._definition.root, plan.value), self._found(document))
        return State({**value, **{name: plan.value.get(name) for name in OWN}})

    def _found(self, document: Document) -> Any:
        """The value of what the server answered to a write; reading tells what does not fit."""
        return value_of(self._definition.root, document, [])

    def _shown(
        self, live: Document, place: Place, owned: Mapping[str, Any], prior: dict[str, Any] | None, context: Context
    ) -> State:
        unfit: list[Unfit] = []
        document = fitting(self._definition.root, without_noise(live), unfit)
        tell(unfit, place, context)
        if owned is not EVERYTHING and not owned.get("f:metadata"):
            owned = {**owned, "f:metadata": PRESENT}
        value = shown(self._definition.root, document, owned, prior)
        value["metadata"]["name"] = place.name  # nobody owns these, and without them nothing is found again
        if self._definition.place:
            value["metadata"][self._definition.place] = place.namespace
        return State({**value, **{name: (prior or {}).get(name) for name in OWN}})

    def _body(self, document: Document, place: Place) -> Document:
        document["metadata"]["name"] = place.name
        if place.namespace:
            document["metadata"]["namespace"] = place.namespace
        return document

    def _place(self, value: Mapping[str, Any], client: Client) -> Place:
        meta = value["metadata"]
        if not meta.get("name"):
            raise Failed(f"A {self._definition.kind} without a name", "Its name must not be null.", "metadata.name")
        namespace = ""
        if self._definition.place:
            given = meta.get(self._definition.place)
            namespace = client.project if given in (None, UNKNOWN, "") else str(given)
        return Place(self._definition, str(meta["name"]), namespace)

    def _named(self, op: Import, client: Client) -> Place:
        if op.identity:
            return self._place({"metadata": op.identity}, client)
        parts = op.id.split("/")
        word = self._definition.place
        if not all(parts) or len(parts) > (2 if word else 1):
            form = f"{word}/name or name" if word else "name"
            raise Failed("Not an ID", f"A {self._definition.kind} is imported by {form}, not by {op.id!r}.")
        return Place(self._definition, parts[-1], (parts[0] if len(parts) == 2 else client.project) if word else "")

    def _advice(self, place: Place) -> str:
        where = f"{place.namespace}/{place.name}" if place.namespace else place.name
        return f"To manage it here, import it: terraform import <address> {where}"


def _is_another(live: Document, state: State) -> bool:
    """Whether the object is one of the same name that somebody made after ours was gone.

    Of one that may have been made, and whose answer was lost, nobody knows the uid: it is ours if we manage it."""
    uid = state.get("metadata.uid")
    if not uid:
        return bool(managers(live)) and owned_by(live) is None
    return bool(live["metadata"].get("uid") != uid)


def _identity(definition: Definition) -> dict[str, IdentityAttribute]:
    named = {"name": IdentityAttribute("metadata.name", description="Its name.")}
    if definition.place:
        where = IdentityAttribute(
            f"metadata.{definition.place}", required=False, description=f"The {definition.place} that it is in."
        )
        named[definition.place] = where
    return named


def _said(config: Mapping[str, Any], word: str) -> Any:
    """What the configuration says of an object's place; unknown is something."""
    meta = config.get("metadata")
    return meta.get(word) if isinstance(meta, dict) else meta


def _waits(value: Mapping[str, Any], client: Client) -> bool:
    said = value.get("wait")
    return client.wait if said is None else bool(said)


def _forced(value: Mapping[str, Any], client: Client) -> bool:
    said = value.get("force_conflicts")
    return client.force_conflicts if said is None else bool(said)

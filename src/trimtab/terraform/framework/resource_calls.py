"""Managed resources on the wire: from a call of the protocol to an operation of `Resource`, and back.

The one rule that shapes this module: state stays true. Whatever happens in an operation, what is answered is the last state
that is known, so that Terraform neither forgets an object nor believes in one that is not there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trimtab.terraform.framework.calls import (
    Message,
    faults,
    fitted,
    guarded,
    is_null,
    private_bytes,
    private_of,
    received,
    received_object,
    sent,
    told,
)
from trimtab.terraform.framework.consistency import plan_faults, result_faults, unknown_faults
from trimtab.terraform.framework.context import Context
from trimtab.terraform.framework.diagnostics import Failed
from trimtab.terraform.framework.identities import identity_message_of, received_identity
from trimtab.terraform.framework.offers import Offer, Offers, name_of
from trimtab.terraform.framework.paths import Path
from trimtab.terraform.framework.planning import plan
from trimtab.terraform.framework.resource import (
    Create,
    Delete,
    Import,
    PlanCreate,
    PlanDelete,
    PlanUpdate,
    Read,
    Resource,
    Update,
)
from trimtab.terraform.framework.schema import leads
from trimtab.terraform.framework.settling import known, settled
from trimtab.terraform.framework.shaping import Misfit
from trimtab.terraform.framework.spelling import respelled
from trimtab.terraform.framework.trees import Config, Plan, State
from trimtab.terraform.framework.validation import validate
from trimtab.terraform.framework.values import whole
from trimtab.terraform.protocol.contract import InvalidRequest

MakeContext = Callable[..., Context]


class ResourceCalls:
    def __init__(self, resources: Offers[Resource], context: MakeContext) -> None:
        self._resources = resources
        self._context = context

    def validate(self, request: Message) -> Message:
        offer = self._resources[name_of(request)]
        context = self._context()
        config = received_object(request, "config", offer.type)
        allowed = bool(request.get("client_capabilities", {}).get("write_only_attributes_allowed"))
        rules = offer.thing.config_validators
        with guarded(context):
            context.diagnostics.items += validate(offer.schema, rules, config, write_only_allowed=allowed)
            offer.thing.validate(Config(config), context)
        return {"diagnostics": told(context, offer)}

    def plan(self, request: Message) -> Message:
        offer = self._resources[name_of(request)]
        prior = received(request, "prior_state", offer.type)
        private = private_of(request.get("prior_private"))
        context = self._context(request, prior)
        planned: dict[str, Any] | None = None
        replace: list[Path] = []
        with guarded(context):
            if is_null(request, "proposed_new_state"):
                if prior is not None:
                    offer.thing.plan(PlanDelete(State(prior), private, context))
            else:
                config = received_object(request, "config", offer.type)
                planned = _plan(offer, config, prior, private, context, replace)
        answer: Message = {
            "planned_state": sent(planned, offer.type),
            "requires_replace": [path.message() for path in replace],
            "planned_private": private_bytes(private),
            "diagnostics": told(context, offer),
        }
        if planned is not None and not context.diagnostics.failed():
            answer |= identity_message_of(offer.thing, planned, "planned_identity")
        return _deferred(answer, context)

    def apply(self, request: Message) -> Message:
        offer = self._resources[name_of(request)]
        prior = received(request, "prior_state", offer.type)
        planned = received(request, "planned_state", offer.type)
        private = private_of(request.get("planned_private"))
        context = self._context(request, prior if planned is None else planned)
        state: dict[str, Any] | None = prior
        with guarded(context):
            if planned is None:
                if prior is not None:
                    offer.thing.delete(Delete(State(prior), private, context))
                state = None
            else:
                config = received_object(request, "config", offer.type)
                if not whole(config):
                    raise InvalidRequest("config: nothing is unknown when a plan is applied")
                state = _changed(offer, Config(config), prior, planned, private, context)
        if context.diagnostics.failed() and context.saved is not None and planned is not None:
            state = _kept(offer, context.saved, planned)
        answer: Message = {
            "new_state": sent(state, offer.type),
            "private": private_bytes(private),
            "diagnostics": told(context, offer),
        }
        return answer | identity_message_of(offer.thing, state, "new_identity")

    def read(self, request: Message) -> Message:
        offer = self._resources[name_of(request)]
        before = received_object(request, "current_state", offer.type)
        private = private_of(request.get("private"))
        context = self._context(request, before)
        state: dict[str, Any] | None = before
        with guarded(context):
            found = offer.thing.read(Read(State(before), private, context))
            state = None if found is None else _state(offer, found, before, context)
        if context.diagnostics.failed():
            state = before
        answer: Message = {
            "new_state": sent(state, offer.type),
            "private": private_bytes(private),
            "diagnostics": told(context, offer),
        }
        return _deferred(answer | identity_message_of(offer.thing, state, "new_identity"), context)

    def import_state(self, request: Message) -> Message:
        offer = self._resources[name_of(request)]
        context = self._context(request)
        private: dict[str, Any] = {}
        imported: list[Message] = []
        with guarded(context):
            identity = received_identity(offer.thing, request.get("identity"))
            op = Import(request.get("id", ""), identity, private, context)
            state = _state(offer, offer.thing.import_state(op), None, context)
            message = {"type_name": offer.name, "state": sent(state, offer.type), "private": private_bytes(private)}
            imported.append(message | identity_message_of(offer.thing, state, "identity", identity))
        if context.diagnostics.failed():
            imported = []
        return _deferred({"imported_resources": imported, "diagnostics": told(context, offer)}, context)


def _plan(
    offer: Offer[Resource],
    config: dict[str, Any],
    prior: dict[str, Any] | None,
    private: dict[str, Any],
    context: Context,
    replace: list[Path],
) -> dict[str, Any]:
    try:
        made = plan(offer.schema, config, prior)
    except Misfit as misfit:
        raise Failed("The provider's schema has a wrong default", str(misfit), misfit.path) from None
    replace += made.replace
    if prior is None:
        op: PlanCreate | PlanUpdate = PlanCreate(Config(config), Plan(made.value), private, context)
    else:
        op = PlanUpdate(Config(config), Plan(made.value), State(prior), private, context)
    last = offer.thing.plan(op)
    planned = made.value if last is None else settled(offer.schema, fitted(last.value, offer.type, "a plan"))
    if isinstance(op, PlanUpdate):
        for path in op.replaced:
            if not leads(path, offer.type):
                raise Failed("The provider replaces for what is not in its schema", f"There is no {path}.")
        replace += (path for path in op.replaced if path not in replace)
    faults(context, "The provider made an invalid plan", plan_faults(offer.schema, config, prior, planned))
    return planned


def _changed(
    offer: Offer[Resource],
    config: Config,
    prior: dict[str, Any] | None,
    planned: dict[str, Any],
    private: dict[str, Any],
    context: Context,
) -> dict[str, Any]:
    if prior is None:
        result = offer.thing.create(Create(config, Plan(planned), private, context))
    else:
        result = offer.thing.update(Update(config, Plan(planned), State(prior), private, context))
    context.save(result)  # it exists now, whatever may be wrong with what was told of it
    state = _state(offer, result, planned, context)
    if not context.diagnostics.failed():
        faults(context, "The provider produced an inconsistent result", result_faults(offer.schema, planned, state))
    return state


def _state(offer: Offer[Resource], state: State, reference: dict[str, Any] | None, context: Context) -> dict[str, Any]:
    """A state that the provider's code returned, in the spelling of what was there, with nothing unknown."""
    if not isinstance(state, State):
        raise Failed("The provider failed", f"{offer.name}: a State is to be returned, not {type(state).__name__}.")
    value = fitted(state.value, offer.type, "a state")
    value = respelled(offer.schema, reference, settled(offer.schema, value))
    faults(context, "The provider returned an unknown value", unknown_faults(value))
    return known(value) if context.diagnostics.failed() else value


def _kept(offer: Offer[Resource], saved: State, planned: dict[str, Any]) -> dict[str, Any]:
    """What was saved, of an operation that failed. Where it makes no sense the plan is nearest to what exists."""
    try:
        value = fitted(saved.value, offer.type, "a state")
    except Failed:
        value = planned
    kept: dict[str, Any] = known(settled(offer.schema, value))
    return kept


def _deferred(answer: Message, context: Context) -> Message:
    if context.deferred is not None:
        answer["deferred"] = {"reason": context.deferred}
    return answer

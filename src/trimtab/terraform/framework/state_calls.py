"""State of another form: of an older version of the schema, or of another type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.terraform.framework.calls import Message, fitted, guarded, private_bytes, sent, told
from trimtab.terraform.framework.consistency import unknown_faults
from trimtab.terraform.framework.diagnostics import Failed
from trimtab.terraform.framework.encoding import from_json, load_json
from trimtab.terraform.framework.identities import identity_message_of, identity_type
from trimtab.terraform.framework.offers import Offers, name_of
from trimtab.terraform.framework.resource import Move, Resource, Upgrader
from trimtab.terraform.framework.resource_calls import MakeContext
from trimtab.terraform.framework.settling import settled
from trimtab.terraform.framework.shaping import Misfit
from trimtab.terraform.framework.types import Type


class StateCalls:
    def __init__(self, resources: Offers[Resource], context: MakeContext) -> None:
        self._resources = resources
        self._context = context

    def upgrade(self, request: Message) -> Message:
        offer = self._resources[name_of(request)]
        context = self._context()
        answer: Message = {}
        with guarded(context):
            raw = _raw(request.get("raw_state"), "state")
            version, current = request.get("version", 0), offer.schema.version
            raw = _upgraded(raw, version, current, offer.thing.upgraders, f"The state of this {offer.name}")
            if raw is None:
                value = None
            else:
                dropped: list[Misfit] | None = [] if offer.thing.forgiving else None
                value = settled(offer.schema, _typed(raw, offer.type, f"The state of this {offer.name}", dropped))
                for misfit in dropped or ():
                    context.warning(
                        f"{misfit.path} in the state of this {offer.name} does not fit its schema",
                        f"The schema has changed: {misfit.text}. It is read anew.",
                    )
            answer["upgraded_state"] = sent(value, offer.type)
        return answer | {"diagnostics": told(context)}

    def upgrade_identity(self, request: Message) -> Message:
        offer = self._resources[name_of(request)]
        context = self._context()
        answer: Message = {}
        with guarded(context):
            raw = _raw(request.get("raw_identity"), "identity")
            version, current = request.get("version", 0), offer.thing.identity_version
            what = f"The identity of this {offer.name}"
            raw = _upgraded(raw, version, current, offer.thing.identity_upgraders, what)
            type_ = identity_type(offer.thing)
            answer["upgraded_identity"] = {"identity_data": sent(_typed(raw, type_, what), type_)}
        return answer | {"diagnostics": told(context)}

    def move(self, request: Message) -> Message:
        offer = self._resources[name_of(request, "target_type_name")]
        context = self._context()
        private: dict[str, Any] = {}
        answer: Message = {}
        with guarded(context):
            source = request.get("source_type_name", "")
            move = Move(
                request.get("source_provider_address", ""),
                source,
                request.get("source_schema_version", 0),
                _raw(request.get("source_state"), "state") or {},
                request.get("source_private", b""),
                private,
                context,
            )
            state = next((made for mover in offer.thing.movers if (made := mover(move)) is not None), None)
            if state is None:
                raise Failed(
                    "Move not supported", f"A {offer.name} cannot be made of a {source} of {move.source_provider}."
                )
            value = settled(offer.schema, fitted(state.value, offer.type, "a state"))
            for place, text in unknown_faults(value):
                raise Failed("The provider returned an unknown value", f"{place} {text}.", place)
            answer = {"target_state": sent(value, offer.type), "target_private": private_bytes(private)}
            answer |= identity_message_of(offer.thing, value, "target_identity")
        return answer | {"diagnostics": told(context)}


def _raw(message: Message | None, what: str) -> dict[str, Any] | None:
    if not message or not message.get("json"):
        if message and message.get("flatmap"):
            raise Failed(
                "State too old", "It was written by Terraform 0.11 or older; upgrade it by Terraform 0.12 first."
            )
        return None
    try:
        value = load_json(message["json"])
    except Misfit as misfit:
        raise Failed(f"Unreadable {what}", str(misfit)) from None
    if value is not None and not isinstance(value, dict):
        raise Failed(f"Unreadable {what}", "It is not an object.")
    return value


def _upgraded(
    raw: dict[str, Any] | None, version: int, current: int, upgraders: Mapping[int, Upgrader], what: str
) -> dict[str, Any] | None:
    """Step by step, from each version to the next."""
    if version > current:
        detail = (
            f"{what} has schema version {version}; this version of the provider knows {current} at most. "
            "It was written by a newer version of the provider: use that one, or a later one."
        )
        raise Failed("State is newer than the provider", detail)
    while raw is not None and version < current:
        if version not in upgraders:
            detail = (
                f"{what} has schema version {version}, and this provider does not know how to upgrade it to {current}."
            )
            raise Failed("State is too old for the provider", detail)
        raw = upgraders[version](raw)
        version += 1
    return raw


def _typed(raw: dict[str, Any] | None, type_: Type, what: str, dropped: list[Misfit] | None = None) -> Any:
    try:
        return from_json(raw, type_, dropped=dropped)
    except Misfit as misfit:
        raise Failed("State does not fit the schema", f"{what}: {misfit}.", misfit.path) from None

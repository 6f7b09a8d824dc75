"""Resource identity: what tells one object from all others, taken from its state, and enough to import it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.terraform.framework.calls import Message, fitted, received, sent
from trimtab.terraform.framework.diagnostics import Failed
from trimtab.terraform.framework.paths import find, path
from trimtab.terraform.framework.resource import Resource
from trimtab.terraform.framework.types import ObjectOf
from trimtab.terraform.framework.values import whole


def identity_type(resource: Resource) -> ObjectOf:
    return ObjectOf({name: attribute.type for name, attribute in resource.identity.items()})


def identity_message_of(
    resource: Resource, state: Mapping[str, Any] | None, field: str, given: Mapping[str, Any] | None = None
) -> Message:
    """The field of an answer that holds the identity; no field where the state does not say it yet."""
    if not resource.identity or state is None:
        return {}
    value = {name: find(state, path(attribute.path)) for name, attribute in resource.identity.items()}
    value = {name: (given or {}).get(name) if item is None else item for name, item in value.items()}
    missing = any(value[name] is None for name, attribute in resource.identity.items() if attribute.required)
    if missing or not whole(value):
        return {}
    type_ = identity_type(resource)
    return {field: {"identity_data": sent(fitted(value, type_, "an identity"), type_)}}


def received_identity(resource: Resource, message: Message | None) -> Mapping[str, Any] | None:
    """The identity to import by; Failed where it lacks what it must have."""
    if not message or not message.get("identity_data"):
        return None
    if not resource.identity:
        raise Failed("Import by identity not supported", "This resource has no identity: import it by its id.")
    value = received(message, "identity_data", identity_type(resource))
    if not isinstance(value, dict):
        return None
    lacking = [name for name, attribute in resource.identity.items() if attribute.required and value[name] is None]
    if lacking:
        raise Failed("Incomplete identity", f"An identity of this resource needs {', '.join(lacking)}.")
    return value

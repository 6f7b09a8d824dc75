"""How far something is, by what it says itself. Pure."""

from __future__ import annotations

from typing import Any

from trimtab.systems.rest.calling.bodies import at
from trimtab.systems.rest.calling.contract import Answer


def provisioning_state(body: Any) -> str:
    """ARM's, "" when there is none, which is as good as Succeeded."""
    for path in ("properties.provisioningState", "provisioningState"):
        if isinstance(state := at(body, path), str):
            return state
    return ""


def settled(body: Any) -> bool:
    """Whether nothing goes on with a resource any more, for good or bad."""
    state = provisioning_state(body)
    return not state or succeeded(state) or ended_badly(state)


def succeeded(state: str) -> bool:
    return state.lower() in _SUCCEEDED


def ended_badly(state: str) -> bool:
    return state.lower() in _ENDED_BADLY


def located(locator: str, answer: Answer) -> Any:
    """`code`, `header.<name>` or `body.<path>`; the body is as it came, with its envelope."""
    if locator == "code":
        return str(answer.status)
    place, _, name = locator.partition(".")
    if place == "header":
        return answer.headers.get(name.lower(), "")
    return at(answer.raw if answer.raw is not None else answer.body, name if place == "body" else locator)


_SUCCEEDED = frozenset({"succeeded", "success", "completed"})
_ENDED_BADLY = frozenset({"failed", "canceled", "cancelled"})

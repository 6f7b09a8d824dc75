"""What an object's references led to, as one digest: so that a Secret that was rotated, or another object that got another
ID, is noticed whenever that happened, also while no controller ran. It asks the service nothing.

The digest is an HMAC by the installation's key, as all that is remembered of secrets.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from typing import Any

from trimtab.model.scheme import Untyped
from trimtab.systems.rest.reconciling import memory
from trimtab.systems.rest.reconciling.session import Session
from trimtab.systems.rest.rendering import Sources, Unresolved, render

SECRETS = "rest-secrets"
"""The index of objects by the Secrets that they refer to."""
MISSING = "missing"
"""Stands for the digest while some reference leads nowhere."""


async def led_to(session: Session) -> str:
    """The digest; "" for an object that refers to nothing. Afterwards the board knows whom it waits for, and
    `session.sources.revealed` has its secrets."""
    if not _refers(session.subject.body):
        return ""
    asked = _Asked(session.sources)
    try:
        await render(session.model, session.subject.body, asked)
    except Unresolved:
        return MISSING
    if not asked.answers:
        return ""
    return hmac.new(session.place.key, memory.text(asked.answers).encode(), hashlib.sha256).hexdigest()


def hidden(session: Session) -> tuple[str, ...]:
    """The values that may not be shown."""
    return tuple(value.reveal() for value in session.sources.revealed)


def secrets_of(obj: Untyped) -> Iterator[str]:
    """What the index has an object under."""
    namespace = obj.namespace
    for name in _references(obj.raw.get("spec")):
        yield f"{namespace}/{name}"


class _Asked:
    """Sources that note what they answered."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self.answers: dict[str, str | None] = {}

    async def secret(self, name: str, key: str) -> str | None:
        found = self.answers[f"Secret/{name}/{key}"] = await self._sources.secret(name, key)
        return found

    async def resource_id(self, kind: str, name: str, api_version: str) -> str | None:
        found = self.answers[f"{api_version}/{kind}/{name}"] = await self._sources.resource_id(kind, name, api_version)
        return found


def _refers(value: Any) -> bool:
    if isinstance(value, dict):
        return "secretRef" in value or "ref" in value or any(_refers(each) for each in value.values())
    return isinstance(value, list) and any(_refers(each) for each in value)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        found = value.get("secretRef")
        if isinstance(found, dict) and isinstance(found.get("name"), str):
            yield found["name"]
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)

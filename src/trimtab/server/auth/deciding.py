"""Asking for permission where the answer may take a while: an authorizer of our own answers at once, that of others does not."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from trimtab.server.auth.rbac import Attributes, Decision


class Deciding(Protocol):
    """Who says what is allowed."""

    def authorize(self, attributes: Attributes) -> Decision | Awaitable[Decision]:
        """The decision, or what to wait for until there is one. StatusError when nobody can tell now."""
        ...


async def decided(authorizer: Deciding, attributes: Attributes) -> Decision:
    decision = authorizer.authorize(attributes)
    return decision if isinstance(decision, Decision) else await decision

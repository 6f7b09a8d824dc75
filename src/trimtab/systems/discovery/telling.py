"""The one writer of a rule's status. Reconcile and loop both have something to say, each of its own fields.

Guarantees: changes are functions of the status as it is, so nothing that another said is lost; a conflict is answered by
a fresh read. A rule that is gone, or that was made anew under the same name, is not written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped
from trimtab.runtime.cached import CachedClient
from trimtab.runtime.status import write_status
from trimtab.systems.discovery.kinds import DiscoveryRule, DiscoveryRuleStatus

ATTEMPTS = 5

Say = Callable[[DiscoveryRuleStatus], DiscoveryRuleStatus]


class Gone(Exception):  # noqa: N818 - it reads as what happened
    """The rule is not there any more."""


class Teller:
    """Of one rule, as long as it has this uid."""

    def __init__(self, client: CachedClient, rule: DiscoveryRule) -> None:
        self._client = client
        self._name, self._namespace, self._uid = rule.name, rule.namespace, rule.metadata.uid
        self._turn = asyncio.Lock()

    async def tell(self, say: Say) -> DiscoveryRule:
        """The rule with the status as `say` makes it. Gone when there is none to write to."""
        async with self._turn:
            fresh = False
            for _ in range(ATTEMPTS):
                rule = await self._read(fresh)
                try:
                    written: DiscoveryRule = await write_status(
                        self._client, rule, say(rule.status or DiscoveryRuleStatus())
                    )
                except StatusError as error:
                    if error.code == 404:
                        raise Gone(self._name) from None
                    if error.code != 409:
                        raise
                    conflict, fresh = error, True
                else:
                    return written
            raise conflict

    async def _read(self, fresh: bool) -> DiscoveryRule:
        source = self._client.live if fresh else self._client
        try:
            rule = await source.get(DiscoveryRule, self._name, self._namespace)
        except StatusError as error:
            if error.code == 404:
                raise Gone(self._name) from None
            raise
        if isinstance(rule, Untyped) or rule.metadata.uid != self._uid:
            raise Gone(self._name)
        return rule

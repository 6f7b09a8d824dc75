"""ClusterRoles that gather others: each has the rules of all that its selectors choose, whenever one of those changes.

`admin`, `edit` and `view` are such roles, and so systems add their kinds to them: by roles with a label.
"""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

import orjson

from trimtab.model.errors import StatusError
from trimtab.model.logs import log
from trimtab.server.auth.aggregation import aggregated_rules
from trimtab.server.auth.rbac import GROUP
from trimtab.server.registry import Served
from trimtab.server.strategy import Document
from trimtab.store.contract import Gone, Query, StoreError

if TYPE_CHECKING:
    from trimtab.server.core import Server


PAUSE = 1.0
"""Seconds before another try, when the store does not take what was gathered."""


class Roles:
    def __init__(self, server: Server) -> None:
        self._server = server

    @property
    def _served(self) -> Served:
        served = self._server.registry.of_resource(GROUP, "clusterroles")
        assert served is not None  # noqa: S101 - a built-in kind
        return served

    async def run(self) -> None:
        """Keep them so, until cancelled."""
        query = Query(resource=self._served.strategy.storage)
        while True:
            try:
                since = await self.gather()
                async with aclosing(self._server.store.watch(query, since)) as batches:
                    async for batch in batches:
                        if batch.changes:
                            await self.gather()
            except Gone:
                continue  # changes were missed: all of them are looked at again
            except (StoreError, StatusError) as error:
                log.warning("roles cannot be gathered now", error=str(error))
                await self._server.clock.sleep(PAUSE)

    async def gather(self) -> int:
        """Write the rules that each gathers now. One that is gathered itself comes round by its own change. Returns the
        revision that was looked at."""
        served = self._served
        page = await self._server.store.list(Query(resource=served.strategy.storage))
        roles = [served.decode(entry) for entry in page.entries]
        for role in roles:
            rules = aggregated_rules(role, roles)
            if rules is not None and not _same(rules, role.get("rules") or []):
                await self._server.acts.modify(served, "", role["metadata"]["name"], partial(_have, rules))
        return page.revision


def _same(one: list[Document], other: list[Document]) -> bool:
    """In whatever order: roles that gather each other would take turns for ever."""
    seen, known = ({orjson.dumps(rule, option=orjson.OPT_SORT_KEYS) for rule in rules} for rules in (one, other))
    return seen == known


def _have(rules: list[Document], role: Document) -> None:
    role["rules"] = rules

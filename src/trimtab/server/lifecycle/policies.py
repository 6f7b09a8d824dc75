"""The status of ValidatingAdmissionPolicies: which generation the server has looked at, and what it thinks of it."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

from trimtab.model.errors import StatusError
from trimtab.model.logs import log
from trimtab.server.admission.policy_types import expression_warnings
from trimtab.server.registry import Served
from trimtab.server.strategy import Document
from trimtab.store.contract import Entry, Gone, Op, Query, StoreError

if TYPE_CHECKING:
    from trimtab.server.core import Server

GROUP, PLURAL = "admissionregistration.k8s.io", "validatingadmissionpolicies"
PAUSE = 1.0
"""Seconds before another try, when the store does not take a status."""


class PolicyStatus:
    def __init__(self, server: Server) -> None:
        self._server = server

    @property
    def _served(self) -> Served:
        served = self._server.registry.of_resource(GROUP, PLURAL)
        assert served is not None  # noqa: S101 - a built-in kind
        return served

    async def run(self) -> None:
        """Keep them so, until cancelled."""
        query = Query(resource=self._served.strategy.storage)
        while True:
            try:
                page = await self._server.store.list(query)
                for entry in page.entries:
                    await self._observe(entry)
                async with aclosing(self._server.store.watch(query, page.revision)) as batches:
                    async for batch in batches:
                        for change in batch.changes:
                            if change.op is Op.PUT:
                                await self._observe(change.entry)
            except Gone:
                continue  # changes were missed: all of them are looked at again
            except (StoreError, StatusError) as error:
                log.warning("the status of a policy cannot be written now", error=str(error))
                await self._server.clock.sleep(PAUSE)

    async def _observe(self, entry: Entry) -> None:
        policy = self._served.decode(entry)
        generation = policy["metadata"].get("generation", 0)
        if (policy.get("status") or {}).get("observedGeneration") != generation:
            name = entry.key.name
            found = expression_warnings(policy.get("spec") or {}, self._server.registry)
            checked = {"expressionWarnings": found} if found else {}
            change = partial(_observed, generation, checked)
            await self._server.acts.modify(self._served, "", name, change, "status")


def _observed(generation: int, checked: Document, policy: Document) -> None:
    if policy["metadata"].get("generation", 0) == generation:
        policy["status"] = {**(policy.get("status") or {}), "observedGeneration": generation, "typeChecking": checked}

"""What is used in each namespace that has quotas: charged before an object is written, counted again when it may be less.

Guarantees: whatever is written at the same time, the objects of a namespace never use more than its quotas had left. A
charge is committed to the quota's status before its object is; until that is written or refused, the charge is pending, and
who counts meanwhile counts it too. So a status may be too high for a moment, and never too low.

Caveats: a quota limits nothing until it was counted for the first time, as on the reference server. Charges and counts of one
namespace take turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from trimtab.model.errors import forbidden
from trimtab.model.kind import Kind
from trimtab.model.quantity import Quantity
from trimtab.server.builtin.quotas import is_standard
from trimtab.server.quota.amounts import ZERO, Amounts, added, increase, only, written
from trimtab.server.quota.check import TooMuch, charged, concerns
from trimtab.server.quota.scopes import in_scope, scopes_of
from trimtab.server.quota.usage import is_counted, is_pod, is_service, names_used, used_by
from trimtab.server.registry import Served
from trimtab.server.strategy import Document
from trimtab.store.contract import Key, Query

if TYPE_CHECKING:
    from trimtab.server.core import Server

QUOTAS = "resourcequotas"


class Charge:
    """An object on its way. Leaving it says whether the object was written."""

    def __init__(self, ledger: Ledger, key: Key) -> None:
        self._ledger = ledger
        self._key = key

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ledger.settled(self._key, written=error is None)


class Ledger:
    """`quotas` are those there are: of each namespace, by name, what they limit. `recount` is called with a namespace
    where less may be used than its quotas say."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.quotas: dict[str, dict[str, frozenset[str]]] = {}
        self.recount: Callable[[str], None] = lambda namespace: None
        self._pending: dict[Key, tuple[Kind, Document]] = {}
        self._expected: set[Key] = set()  # charged creations whose event has not come
        self._turns: dict[str, asyncio.Lock] = {}

    async def charge(
        self, served: Served, new: Document, old: Document | None, *, dry_run: bool = False
    ) -> Charge | None:
        """Raises StatusError 403 when a quota has too little left. Only for namespaces in `quotas`."""
        kind, metadata = served.kind, new["metadata"]
        if not is_counted(kind) or (old is not None and not is_service(kind)):
            return None
        namespace, name = metadata.get("namespace", ""), metadata.get("name", "")
        now = self._server.clock.now()
        more = used_by(kind, new, now)
        if old is not None:
            more = increase(more, used_by(kind, old, now))
        key = served.key(namespace, name)
        async with self._turn(namespace):
            try:
                concerned = await self._check(namespace, kind, new, more)
                if not concerned or dry_run:
                    return None
                self._pending[key] = (kind, new)
                if old is None:
                    self._expected.add(key)
                try:
                    for quota in concerned:
                        change = partial(_charge, kind, new, more)
                        await self._server.acts.modify(self._served, namespace, quota, change, "status")
                except BaseException:
                    self.settled(key, written=False)
                    raise
            except TooMuch as error:
                raise forbidden(kind.plural, kind.group, name, str(error)) from None
        return Charge(self, key)

    def settled(self, key: Key, *, written: bool) -> None:
        """A charged object was written, or will not be."""
        self._pending.pop(key, None)
        if not written:
            self._expected.discard(key)
            self.recount(key.namespace)

    def was_charged(self, key: Key) -> bool:
        """Whether an object that was just created was charged for; can be asked once."""
        if key not in self._expected:
            return False
        self._expected.remove(key)
        return True

    def forget(self) -> None:
        """Events were missed: no creation is expected any more."""
        self._expected.clear()

    async def count(self, namespace: str) -> None:
        """Make the status of a namespace's quotas right."""
        async with self._turn(namespace):
            for name in list(self.quotas.get(namespace, ())):
                await self._count(namespace, name)

    @property
    def _served(self) -> Served:
        served = self._server.registry.find("", "v1", QUOTAS)
        assert served is not None  # noqa: S101 - a built-in kind
        return served

    def _turn(self, namespace: str) -> asyncio.Lock:
        return self._turns.setdefault(namespace, asyncio.Lock())

    def dropped(self, namespace: str) -> None:
        """The last quota of a namespace is gone."""
        self._expected = {key for key in self._expected if key.namespace != namespace}
        turn = self._turns.get(namespace)
        if turn is not None and not turn.locked():
            del self._turns[namespace]

    async def _check(self, namespace: str, kind: Kind, new: Document, more: Amounts) -> list[str]:
        """The quotas that this object changes. All are looked at before one is charged."""
        found = []
        for name in sorted(self.quotas.get(namespace, ())):
            entry = await self._served.backend.get(self._served.key(namespace, name))
            quota = None if entry is None else self._served.decode(entry)
            if quota is not None and concerns(quota, kind, new) and charged(quota, kind, new, more) is not None:
                found.append(name)
        return found

    async def _count(self, namespace: str, name: str) -> None:
        entry = await self._served.backend.get(self._served.key(namespace, name))
        if entry is None:
            return
        spec = self._served.decode(entry).get("spec") or {}
        pending = {key: of for key, of in self._pending.items() if key.namespace == namespace}
        used = await self._used(namespace, spec, pending)
        status = {"hard": spec.get("hard") or {}, "used": written(used)}
        await self._server.acts.modify(self._served, namespace, name, partial(_counted, status), "status")

    async def _used(
        self, namespace: str, spec: Document, pending: Mapping[Key, tuple[Kind, Document]]
    ) -> dict[str, Quantity]:
        names = frozenset(spec.get("hard") or ())
        used = {name: ZERO for name in names if is_standard(name)}
        for served in self._server.registry.storages().values():
            own = names_used(served.kind, names) if is_counted(served.kind) else frozenset()
            if own:
                found = await self._used_of(served, namespace, spec, pending)
                used |= dict.fromkeys(own, ZERO) | only(found, own)
        return used

    async def _used_of(
        self, served: Served, namespace: str, spec: Document, pending: Mapping[Key, tuple[Kind, Document]]
    ) -> Amounts:
        kind, now = served.kind, self._server.clock.now()
        page = await served.backend.list(Query(resource=served.strategy.storage, namespace=namespace, counted=False))
        present = {entry.key for entry in page.entries}
        coming = [document for key, (_, document) in pending.items() if _of(served, key) and key not in present]
        if not is_pod(kind) and not is_service(kind):
            if any(scopes_of(spec)):
                return {}
            total = len(page.entries) + len(coming)
            return {name: amount * total for name, amount in used_by(kind, {}, now).items()}
        used: Amounts = {}
        for document in (*map(served.decode, page.entries), *coming):
            if in_scope(spec, kind, document):
                used = added(used, used_by(kind, document, now))
        return used


def _of(served: Served, key: Key) -> bool:
    return key.resource == served.strategy.storage


def _charge(kind: Kind, document: Document, more: Amounts, quota: Document) -> None:
    """In the compare-and-swap: judged again on the quota as it is now."""
    if concerns(quota, kind, document):
        after = charged(quota, kind, document, more)
        if after is not None:
            quota["status"] = {**(quota.get("status") or {}), "used": written(after)}


def _counted(status: Document, quota: Document) -> None:
    quota["status"] = {field: amounts for field, amounts in status.items() if amounts}

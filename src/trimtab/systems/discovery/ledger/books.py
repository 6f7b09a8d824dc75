"""What all rules of a process know of logins: of rules that sweep, and of those that did.

A device counts refusals, whichever rule sends them. So what a rule has tried stays known when its loop ends, be the rule
suspended, invalid, changed or deleted, for as long as the longest lock-out window of any rule that was seen. `recall`
reads what all rules' ledgers say before anybody logs in: nothing depends on which loop begins first, and a rule that is
suspended counts after a restart, too.

Caveat: what a deleted rule has tried is known to this process only.
"""

from __future__ import annotations

import asyncio

import msgspec

from trimtab.client.protocol import Query
from trimtab.model.logs import log
from trimtab.model.scheme import Untyped
from trimtab.runtime.cached import CachedClient
from trimtab.storage.blobs import BlobError, Blobs, BlobsUnavailable
from trimtab.systems.discovery.kinds import DiscoveryRule
from trimtab.systems.discovery.ledger.book import Book, ledger_of, owner_of
from trimtab.systems.discovery.ledger.faces import Faces
from trimtab.systems.discovery.ledger.lines import Lines
from trimtab.systems.discovery.ledger.logins import LoginRecord
from trimtab.systems.discovery.ledger.records import Ledger, LedgerDamaged, counting, woken

Place = tuple[int, str, str]
"""Of a login: whose book, which address, which protocol."""


class Past(msgspec.Struct, frozen=True):
    """What is left of a rule that does not sweep: only what devices may count against us, until it is over."""

    ledger: Ledger
    faces: Faces
    until: float


class Books:
    """Of a process."""

    def __init__(self) -> None:
        self._open: dict[int, Book] = {}
        self._past: dict[str, Past] = {}
        self._longest = 0.0
        self._recalled, self._recalling = False, asyncio.Lock()
        self.devices, self.keys = Lines(), Lines()
        """Who asks a device, and who may send a credential to what shows a key. Nobody waits for the first who is at the
        head of one of the second."""
        self.unsent: dict[Place, LoginRecord] = {}
        """What was known before an attempt that stands in line for a key: it is noted already, and not sent."""

    def open(self, book: Book) -> None:
        """Its rule sweeps from now on."""
        self._open[id(book)] = book
        self._past.pop(book.owner, None)

    def leave(self, book: Book, now: float) -> None:
        """Its rule sweeps no more. What it has tried stays known."""
        if self._open.pop(id(book), None) is not None:
            self._keep(book.owner, book.ledger, now)

    def others(self, book: Book) -> list[Book | Past]:
        """What all rules but this one know."""
        sweeping: list[Book | Past] = [other for other in self._open.values() if other is not book]
        return sweeping + [past for owner, past in self._past.items() if owner != book.owner]

    def lasting(self, window: float) -> None:
        """A rule has this lock-out window: nothing is forgotten before it has passed."""
        self._longest = max(self._longest, window)

    async def recall(self, client: CachedClient, blobs: Blobs, now: float) -> None:
        """To be awaited before anybody logs in: what all rules have tried, as their ledgers say. Reads once."""
        async with self._recalling:
            if self._recalled:
                return
            listed = await client.live.list(DiscoveryRule, Query())
            rules = [rule for rule in listed.items if not isinstance(rule, Untyped)]
            for rule in rules:
                self.lasting(rule.spec.lockout_window.seconds)
            for rule in rules:
                await self._read(blobs, rule, now)
            self._recalled = True

    def doubt(self) -> None:
        """Another process leads now, and tries what is not known here: what ledgers say is to be read again."""
        self._recalled = False

    async def _read(self, blobs: Blobs, rule: DiscoveryRule, now: float) -> None:
        try:
            ledger = await ledger_of(blobs, rule)
        except BlobsUnavailable:
            raise
        except (BlobError, LedgerDamaged) as error:  # its own loop says more, and waits
            log.warning("a ledger cannot be read", rule=rule.name, namespace=rule.namespace, error=str(error))
            return
        self._keep(owner_of(rule), await asyncio.to_thread(woken, ledger, now), now)

    def _keep(self, owner: str, ledger: Ledger, now: float) -> None:
        self._past = {name: past for name, past in self._past.items() if now < past.until and name != owner}
        left = counting(ledger, now, self._longest)
        if left.records:
            self._past[owner] = Past(left, Faces(left), now + self._longest)

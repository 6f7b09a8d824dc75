"""What a rule knows of each address, read from the blob that `status.ledger` names."""

from __future__ import annotations

from trimtab.cli.blobs import read
from trimtab.cli.codes import Problem
from trimtab.storage.blobs import Blobs
from trimtab.systems.discovery.kinds import DiscoveryRule
from trimtab.systems.discovery.ledger.records import Ledger, LedgerDamaged, decode

MAX_BYTES = 64 << 20


async def ledger(blobs: Blobs, rule: DiscoveryRule) -> Ledger | None:
    """What the rule knows; None when it has not swept yet."""
    digest = rule.status.ledger if rule.status else None
    if not digest:
        return None
    what = f"what discoveryrule/{rule.name} knows of each address"
    content = await read(blobs, digest, of=what, max_bytes=MAX_BYTES)
    try:
        return decode(content)
    except (LedgerDamaged, ValueError) as error:
        raise Problem(f"{what} cannot be read: {error}") from None

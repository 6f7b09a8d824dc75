"""What a rule knows of each address, read from its blob: `status.ledger` names it, and this finds the place."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from trimtab.cli.access import Access, configured
from trimtab.cli.codes import Problem
from trimtab.storage.blobs import BlobError, BlobMissing, Blobs, parse_digest, read
from trimtab.storage.connect import BlobsConfigError
from trimtab.storage.connect import blobs as connect
from trimtab.systems.discovery.kinds import DiscoveryRule
from trimtab.systems.discovery.ledger.records import Ledger, LedgerDamaged, decode

MAX_BYTES = 64 << 20


class Place(msgspec.Struct, frozen=True):
    """Where blobs are, as the options say; without a URL beside the kubeconfig, where `trimtab up` has them."""

    url: str = ""
    token_file: Path | None = None
    ca_file: Path | None = None


@contextlib.asynccontextmanager
async def opened(access: Access, place: Place) -> AsyncIterator[Blobs]:
    url = place.url or str(_beside(access))
    try:
        found = connect(url, token_file=place.token_file, ca_file=place.ca_file)
    except BlobsConfigError as error:
        raise Problem(str(error)) from None
    try:
        yield found
    finally:
        await found.close()


async def ledger(blobs: Blobs, rule: DiscoveryRule) -> Ledger | None:
    """What the rule knows; None when it has not swept yet."""
    digest = rule.status.ledger if rule.status else None
    if not digest:
        return None
    try:
        return decode(await read(blobs, parse_digest(digest), max_bytes=MAX_BYTES))
    except BlobMissing:
        why = "it is not there: are these the blobs of this server? --blobs names others"
    except (BlobError, LedgerDamaged, ValueError) as error:
        why = str(error)
    raise Problem(f"what discoveryrule/{rule.name} knows of each address cannot be read: {why}")


def _beside(access: Access) -> Path:
    source = Path(configured(access).source)
    folder = source.parent / "blobs"
    if not folder.is_dir():
        raise Problem(
            f"there are no blobs beside {source}: name their place with --blobs, as the controllers of this cluster have it"
        )
    return folder

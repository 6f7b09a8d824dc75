"""Where blobs are, as the options of a command say: `--blobs`, else the folder of the `trimtab up` of the kubeconfig."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from trimtab.cli.access import Access, configured
from trimtab.cli.codes import Problem
from trimtab.storage.blobs import BlobError, BlobMissing, Blobs, parse_digest
from trimtab.storage.blobs import read as whole
from trimtab.storage.connect import BlobsConfigError
from trimtab.storage.connect import blobs as connect


class Place(msgspec.Struct, frozen=True):
    """Where blobs are, as the options say; without a URL beside the kubeconfig, where `trimtab up` has them."""

    url: str = ""
    token_file: Path | None = None
    ca_file: Path | None = None


@contextlib.asynccontextmanager
async def opened(access: Access, place: Place) -> AsyncIterator[Blobs]:
    """What goes wrong with the place or a blob of it is a Problem."""
    url = place.url or str(_beside(access))
    try:
        found = connect(url, token_file=place.token_file, ca_file=place.ca_file)
    except BlobsConfigError as error:
        raise Problem(str(error)) from None
    try:
        yield found
    except BlobError as error:
        raise Problem(str(error)) from None
    finally:
        await found.close()


async def read(blobs: Blobs, digest: str, *, of: str, max_bytes: int) -> bytes:
    """A whole blob that an object names. `of` says what it is, for a Problem."""
    try:
        return await whole(blobs, parse_digest(digest), max_bytes=max_bytes)
    except BlobMissing:
        why = "it is not there: are these the blobs of this server? --blobs names others"
    except (BlobError, ValueError) as error:
        why = str(error)
    raise Problem(f"{of} cannot be read: {why}")


def _beside(access: Access) -> Path:
    source = Path(configured(access).source)
    folder = source.parent / "blobs"
    if not folder.is_dir():
        raise Problem(
            f"there are no blobs beside {source}: name their place with --blobs, as the controllers of this cluster have it"
        )
    return folder

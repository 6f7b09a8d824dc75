"""`trimtab images sbom`: what is in an image, as the document that its SBOM names."""

from __future__ import annotations

import sys
from pathlib import Path

from trimtab.cli.access import Access, session
from trimtab.cli.blobs import Place, opened, read
from trimtab.cli.codes import NOT_FOUND, OK, Problem, run
from trimtab.cli.images_find import Wanted, image_of
from trimtab.model.conditions import get_condition
from trimtab.model.errors import StatusError
from trimtab.systems.images.kinds import SBOM, Image

FORMATS = ("spdx", "cyclonedx")
MAX_BYTES = 512 << 20


def sbom(access: Access, wanted: Wanted, form: str, to: Path | None, place: Place) -> int:
    return run(_sbom(access, wanted, form, to, place))


async def _sbom(access: Access, wanted: Wanted, form: str, to: Path | None, place: Place) -> int:
    async with session(access) as server:
        image = await image_of(server, wanted)
        try:
            found = await server.client.get(SBOM, image.name, image.namespace)
        except StatusError as error:
            if error.code != 404:
                raise
            raise Problem(f"{wanted.text} has no SBOM: {_why(image)}", NOT_FOUND) from None
    digest = found.spec.documents.spdx if form == "spdx" else found.spec.documents.cyclonedx
    async with opened(access, place) as blobs:
        document = await read(blobs, digest, of=f"the SBOM of {wanted.text}", max_bytes=MAX_BYTES)
    if to is not None:
        _write(to, document)
        print(f"{to}: {len(document)} bytes, {found.spec.package_count} packages", file=sys.stderr)
        return OK
    sys.stdout.buffer.write(document)
    if sys.stdout.isatty():
        sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()
    return OK


def _write(to: Path, document: bytes) -> None:
    try:
        to.write_bytes(document)
    except OSError as error:
        raise Problem(f"{to} cannot be written: {error.strerror}") from None


def _why(image: Image) -> str:
    ready = get_condition(image.status.conditions, "Ready") if image.status else None
    if ready is None or ready.status == "Unknown":
        return f"it is not made yet; `trimtab wait image/{image.name} --timeout 5m` waits for it"
    return f"{ready.reason}: {ready.message}"

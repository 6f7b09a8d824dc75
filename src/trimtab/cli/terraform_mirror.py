"""The server as a mirror of Terraform's: `https://SERVER/terraform/mirror/` has this release of the provider.

Anyone who reaches the server may read it, since Terraform fetches providers before it has credentials for anything. What is
there is the code of the release, the same everywhere; nothing of the server or of what it keeps.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Mapping

from trimtab import __version__
from trimtab.model.logs import log
from trimtab.server.http import Response

PREFIX = "/terraform/mirror/"


async def answer(path: str) -> Response | None:
    """None: it is no path of the mirror."""
    if not path.startswith(PREFIX):
        return None
    files = await asyncio.to_thread(_files)
    body = files.get(path.removeprefix(PREFIX))
    if body is None:
        return Response(code=404, body=b"404 page not found\n", media=b"text/plain; charset=utf-8")
    return Response(body=body, media=b"application/json" if path.endswith(".json") else b"application/zip")


@functools.cache
def _files() -> Mapping[str, bytes]:
    """Made when the first one asks. An installation without the provider's libraries has none to offer."""
    from trimtab.terraform.install.contents import PackageError
    from trimtab.terraform.install.mirror import network
    from trimtab.terraform.install.package import package

    try:
        return network(package(__version__))
    except PackageError as error:
        log.warning("the provider for Terraform cannot be offered", error=str(error))
        return {}

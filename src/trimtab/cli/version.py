"""`trimtab version`: ours, and the server's when there is one."""

from __future__ import annotations

from trimtab import __version__
from trimtab.cli.access import Access, session
from trimtab.cli.codes import OK, run


def version(access: Access, client_only: bool) -> int:
    print(f"client  {__version__}", flush=True)
    return OK if client_only else run(_server(access))


async def _server(access: Access) -> int:
    async with session(access) as server:
        print(f"server  {(await server.read('/version'))['gitVersion']}")
    return OK

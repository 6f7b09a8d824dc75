"""`trimtab images release`: let go what a discovery found missing, and held back because it was too much at once."""

from __future__ import annotations

from trimtab.cli.access import Access, session
from trimtab.cli.annotations import annotate
from trimtab.cli.codes import OK, Problem, run
from trimtab.systems.images.kinds import Registry
from trimtab.systems.images.runs.claim import RELEASE


def release(access: Access, name: str) -> int:
    return run(_release(access, name))


async def _release(access: Access, name: str) -> int:
    async with session(access) as server:
        registry = await server.client.get(Registry, name, server.namespace)
        held = registry.status.held_run if registry.status else None
        if not held:
            raise Problem(f"registry/{name} holds nothing back: no discovery found too many images missing at once")
        await annotate(server, registry, RELEASE, held)
    print(f"registry/{name}: what discovery {held} would have removed may go, with the next discovery")
    return OK

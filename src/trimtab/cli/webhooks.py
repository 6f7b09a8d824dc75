"""The webhooks of a process of controllers: one system's functions, served with certificates that rotate by themselves."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

from trimtab.cli.systems import NoSystem
from trimtab.client.api import ApiClient
from trimtab.model.logs import log
from trimtab.runtime.certificates import Certificates
from trimtab.runtime.rights import converted_by, webhooks_of
from trimtab.runtime.system import NAMESPACE, System


@contextlib.asynccontextmanager
async def serving(
    systems: Sequence[System], clients: Sequence[ApiClient], host: str, port: int
) -> AsyncIterator[Certificates]:
    """Serve until the block is left."""
    from trimtab.runtime.certificates import Targets
    from trimtab.runtime.webhooks import ClientReader, WebhookServer

    asked = [(system, client) for system, client in zip(systems, clients, strict=True) if system.has_webhooks]
    if len(asked) != 1:
        names = ", ".join(system.name for system, _ in asked) or "no system"
        raise NoSystem(f"--webhook-port: {names} has webhooks here; run a process for each system that has")
    ((system, client),) = asked
    name = (webhooks_of(system),)
    certificates = Certificates(
        client,
        namespace=NAMESPACE,
        name=system.name,
        hosts=(f"{system.name}.{NAMESPACE}.svc", "127.0.0.1", "localhost"),
        targets=Targets(
            validating=name if any(not a.mutating for a in system.admissions) else (),
            mutating=name if any(a.mutating for a in system.admissions) else (),
            definitions=converted_by(system, client.scheme),
            labels=system.webhook_labels,
        ),
    )
    server = WebhookServer(
        system.admissions,
        tls=certificates.context,
        reader=ClientReader(client),
        scheme=client.scheme,
        host=host,
        port=port,
    )
    async with asyncio.TaskGroup() as tasks:  # a mistake in either ends the process, which is started anew
        rotating = tasks.create_task(certificates.run(), name="webhook certificates")
        try:
            log.info("webhooks are served", port=await server.start())
            yield certificates
        finally:
            rotating.cancel()
            await server.stop()

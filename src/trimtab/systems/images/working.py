"""The worker in the controllers' own process: so that image discovery works without any other process.

It works while this process leads, beside those that `trimtab images worker` runs elsewhere.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket

from trimtab.model.logs import log
from trimtab.runtime import Context
from trimtab.runtime.credentials import Credentials
from trimtab.systems.images.registry.connections import Connections
from trimtab.systems.images.worker.handling import Tools
from trimtab.systems.images.worker.worker import worker

PAUSE = 5.0


class Working:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._task: asyncio.Task[None] | None = None

    def ensure(self) -> None:
        """See that it works."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._keep_working(), name="images worker")

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))

    async def _keep_working(self) -> None:
        while True:
            try:
                await self._work()
            except Exception:
                log.exception("the worker in this process has ended; it is started again", after=PAUSE)
            await self._context.clock.sleep(PAUSE)

    async def _work(self) -> None:
        context = self._context
        if context.blobs is None:
            raise ValueError("image discovery needs a place for blobs")
        async with Connections(clock=context.clock) as connections, Credentials(context.client) as credentials:
            tools = Tools(
                name=worker_name(),
                client=context.client,
                clock=context.clock,
                blobs=context.blobs,
                scratch=context.scratch,
                workers=context.workers,
                connections=connections,
                credentials=credentials,
            )
            await worker(tools, context.queue).run(asyncio.Event())


def worker_name() -> str:
    """One that no other worker has."""
    return f"{socket.gethostname()[:200]}-{os.getpid()}-{secrets.token_hex(3)}"

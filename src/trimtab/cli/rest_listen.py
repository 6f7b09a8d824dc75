"""`trimtab rest listen`: takes what services tell of changes, until Ctrl-C."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from trimtab.cli import receiving
from trimtab.cli.access import Access, Session, session
from trimtab.cli.codes import NOT_FOUND, OK, Problem, run
from trimtab.cli.interrupts import stop_on_signals
from trimtab.client.protocol import Query
from trimtab.model.errors import StatusError
from trimtab.runtime.credentials import Credentials
from trimtab.runtime.tasks import ended
from trimtab.systems.rest.kinds import RestDefinition, RestService

if TYPE_CHECKING:
    from trimtab.systems.rest.listening import Listener


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """`listen` is HOST:PORT."""

    listen: str
    certificate: Path | None = None
    key: Path | None = None


def listen(access: Access, options: Options) -> int:
    return run(_listen(access, options))


async def _listen(access: Access, options: Options) -> int:
    from trimtab.systems.rest.listening import Listener

    host, port = receiving.address(options.listen)
    tls = receiving.tls(options.certificate, options.key)
    stop = asyncio.Event()
    stop_on_signals(stop)
    async with session(access) as server, Credentials(server.client) as credentials:
        await _check(server)
        listener = Listener(server.client, credentials, host=host, port=port, tls=tls)
        try:
            try:
                chosen = await listener.start()
            except OSError as error:
                raise Problem(f"nobody can listen at {options.listen}: {error.strerror or error}") from None
            shown = f"[{host}]" if ":" in host else host
            print(f"listening at {'https' if tls else 'http'}://{shown}:{chosen}/SERVICE", flush=True)
            if tls is None and not receiving.is_loopback(host):
                warning = "Warning: tokens come unencrypted; give --tls-certificate and --tls-key"
                print(warning, file=sys.stderr, flush=True)
            await _until(stop, listener)
        finally:
            await listener.stop()
    return OK


async def _until(stop: asyncio.Event, listener: Listener) -> None:
    waits = [asyncio.create_task(stop.wait()), asyncio.create_task(listener.supervise())]
    try:
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        await ended(*waits)


async def _check(server: Session) -> None:
    """What would be waited for in vain is said at once."""
    for kind in (RestService, RestDefinition):
        try:
            await server.client.list(kind, Query())
        except StatusError as error:
            if error.code != 404:
                raise
            raise Problem(f"the server has no {kind.__name__}s: it runs no system rest", NOT_FOUND) from None

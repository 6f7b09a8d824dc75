"""`trimtab images listen`: takes what registries tell of pushes, until Ctrl-C."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec

from trimtab.cli import receiving
from trimtab.cli.access import Access, session
from trimtab.cli.codes import OK, Problem, run
from trimtab.cli.interrupts import stop_on_signals
from trimtab.runtime.credentials import Credentials


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """`listen` is HOST:PORT."""

    listen: str
    certificate: Path | None = None
    key: Path | None = None


def listen(access: Access, options: Options) -> int:
    return run(_listen(access, options))


async def _listen(access: Access, options: Options) -> int:
    from trimtab.systems.images.listening import Listener

    host, port = receiving.address(options.listen)
    tls = receiving.tls(options.certificate, options.key)
    stop = asyncio.Event()
    stop_on_signals(stop)
    async with session(access) as server, Credentials(server.client) as credentials:
        listener = Listener(server.client, credentials, host=host, port=port, tls=tls)
        try:
            chosen = await listener.start()
        except OSError as error:
            raise Problem(f"nobody can listen at {options.listen}: {error.strerror or error}") from None
        try:
            shown = f"[{host}]" if ":" in host else host
            print(f"listening at {'https' if tls else 'http'}://{shown}:{chosen}/NAMESPACE/REGISTRY", flush=True)
            if tls is None and not receiving.is_loopback(host):
                print(
                    "Warning: tokens come unencrypted; give --tls-certificate and --tls-key",
                    file=sys.stderr,
                    flush=True,
                )
            await stop.wait()
        finally:
            await listener.stop()
    return OK

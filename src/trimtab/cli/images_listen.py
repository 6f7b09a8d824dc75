"""`trimtab images listen`: takes what registries tell of pushes, until Ctrl-C."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
import sys
from pathlib import Path

import msgspec

from trimtab.cli.access import Access, session
from trimtab.cli.codes import OK, USAGE, Problem, run
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

    host, port = _address(options.listen)
    tls = _tls(options)
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
            if tls is None and not _loopback(host):
                print(
                    "Warning: tokens come unencrypted; give --tls-certificate and --tls-key",
                    file=sys.stderr,
                    flush=True,
                )
            await stop.wait()
        finally:
            await listener.stop()
    return OK


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 <= int(port) <= 65535:
        raise Problem(f'--listen "{text}" is not HOST:PORT, as 127.0.0.1:7480', USAGE)
    return host.removeprefix("[").removesuffix("]"), int(port)


def _tls(options: Options) -> ssl.SSLContext | None:
    if options.certificate is None and options.key is None:
        return None
    if options.certificate is None or options.key is None:
        raise Problem("--tls-certificate and --tls-key go together", USAGE)
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        made.load_cert_chain(options.certificate, options.key)
    except ssl.SSLError as error:
        raise Problem(
            f"{options.certificate} and {options.key} are no certificate and its key in PEM: {error.reason}"
        ) from None
    except OSError as error:
        raise Problem(f"the certificate or its key cannot be read: {error.strerror}") from None
    return made


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

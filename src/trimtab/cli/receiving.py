"""What commands that take requests from elsewhere have in common: where they listen, and with which certificate."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from trimtab.cli.access import Access, session
from trimtab.cli.codes import OK, USAGE, Problem
from trimtab.cli.interrupts import stop_on_signals
from trimtab.client.api import ApiClient
from trimtab.runtime.credentials import Credentials


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """`listen` is HOST:PORT."""

    listen: str
    certificate: Path | None = None
    key: Path | None = None


class Listener(Protocol):
    """What takes the requests: `start` gives the port."""

    async def start(self) -> int: ...

    async def stop(self) -> None: ...


Made = Callable[[ApiClient, Credentials, str, int, ssl.SSLContext | None], Listener]
"""(client, credentials, host, port, TLS) → a listener."""


async def serve(access: Access, options: Options, made: Made, *, path: str, secret: str) -> int:
    """Take requests until Ctrl-C. `path` is where they come to, `secret` what in them nobody else should read."""
    host, port = address(options.listen)
    context = tls(options.certificate, options.key)
    stop = asyncio.Event()
    stop_on_signals(stop)
    async with session(access) as server, Credentials(server.client) as credentials:
        listener = made(server.client, credentials, host, port, context)
        try:
            chosen = await listener.start()
        except OSError as error:
            raise Problem(f"nobody can listen at {options.listen}: {error.strerror or error}") from None
        try:
            shown = f"[{host}]" if ":" in host else host
            print(f"listening at {'https' if context else 'http'}://{shown}:{chosen}{path}", flush=True)
            if context is None and not is_loopback(host):
                warning = f"Warning: {secret} come unencrypted; give --tls-certificate and --tls-key"
                print(warning, file=sys.stderr, flush=True)
            await stop.wait()
        finally:
            await listener.stop()
    return OK


def address(text: str) -> tuple[str, int]:
    """Of HOST:PORT."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdecimal()) or not 0 <= int(port) <= 65535:
        port = text if text.isdecimal() else "PORT"
        raise Problem(f'--listen "{text}" is not HOST:PORT, as 127.0.0.1:{port}', USAGE)
    return host.removeprefix("[").removesuffix("]"), int(port)


def tls(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """None when there is neither: plain HTTP."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise Problem("--tls-certificate and --tls-key go together", USAGE)
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        made.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        raise Problem(f"{certificate} and {key} are no certificate and its key in PEM: {error.reason}") from None
    except OSError as error:
        raise Problem(f"the certificate or its key cannot be read: {error.strerror}") from None
    return made


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

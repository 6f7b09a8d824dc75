"""`trimtab hub storage`: serves a database of the hub to other processes, until Ctrl-C."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trimtab.cli.options import LogFormat, log_as


def storage(
    database: Annotated[
        str,
        typer.Option(
            metavar="URL",
            envvar="TRIMTAB_HUB_DATABASE",
            help="What is served: a file, sqlite:///FILE, or postgresql://HOST/DATABASE.",
            show_default=False,
        ),
    ],
    token_file: Annotated[
        Path, typer.Option(metavar="FILE", help="The token that clients give, on one line.", show_default=False)
    ],
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Port 0 picks one.")] = "127.0.0.1:7445",
    tls_certificate: Annotated[
        Path | None,
        typer.Option(
            "--tls-certificate",
            "--tls-cert",
            metavar="FILE",
            help="In PEM; without it only this machine is served.",
            show_default=False,
        ),
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its key in PEM.", show_default=False)] = None,
    log_format: LogFormat = "auto",
) -> None:
    """Serve the hub's storage to other processes, until Ctrl-C.

    Organisations, projects, rows, sharing, published versions and blobs are kept in the database; its tables are made, or
    brought up to date, at the start. A hub reaches it with --hub-storage https://HOST:PORT and the same token.

    Example:  trimtab hub storage --database hub.db --token-file token --listen 127.0.0.1:7445
    """
    log_as(log_format)
    raise typer.Exit(run(database, token_file, listen, tls_certificate, tls_key))


def run(database: str, token_file: Path, listen: str, certificate: Path | None = None, key: Path | None = None) -> int:
    """The exit code."""
    from trimtab.cli.codes import run as completed

    return completed(_serve(database, token_file, listen, certificate, key))


async def _serve(database: str, token_file: Path, listen: str, certificate: Path | None, key: Path | None) -> int:
    import asyncio

    from aiohttp import web

    from trimtab.cli import receiving
    from trimtab.cli.codes import OK, USAGE, Problem
    from trimtab.cli.interrupts import stop_on_signals
    from trimtab.hub.storage.api import application
    from trimtab.hub.storage.connect import StorageConfigError
    from trimtab.hub.storage.connect import storage as connect
    from trimtab.hub.storage.contract import StorageUnavailable
    from trimtab.storage.connect import BlobsConfigError, token_from

    host, port = receiving.address(listen)
    tls = receiving.tls(certificate, key)
    if tls is None and not receiving.is_loopback(host):
        raise Problem(
            f"--listen {listen} is not this machine alone, and the token would be read on the way: "
            "give --tls-certificate and --tls-key",
            USAGE,
        )
    if database.startswith(("http://", "https://")):
        raise Problem("--database is a service already: name a file or postgresql://HOST/DATABASE", USAGE)
    token = token_from(token_file)
    try:
        token()
        served = connect(database)
    except (BlobsConfigError, StorageConfigError) as error:
        raise Problem(str(error), USAGE) from None
    stop = asyncio.Event()
    stop_on_signals(stop)
    runner = web.AppRunner(application(served, token=token), access_log=None, shutdown_timeout=10)
    try:
        try:
            await served.ready()
        except StorageUnavailable as error:
            raise Problem(str(error)) from None
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port, ssl_context=tls).start()
        except OSError as error:
            raise Problem(f"nobody can listen at {listen}: {error.strerror or error}") from None
        shown = f"[{host}]" if ":" in host else host
        print(f"serving at {'https' if tls else 'http'}://{shown}:{runner.addresses[0][1]}", flush=True)
        await stop.wait()
    finally:
        await runner.cleanup()
        await served.close()
    return OK

"""`trimtab images worker`: does what controllers ask for by a NATS queue, on any machine, until Ctrl-C."""

from __future__ import annotations

import asyncio
from pathlib import Path

from trimtab.cli.access import Access, configured
from trimtab.cli.codes import FAILED, REFUSED, USAGE, Problem, complain, told
from trimtab.cli.interrupts import stop_on_signals
from trimtab.cli.means import Places, as_system, means
from trimtab.cli.memory import tune
from trimtab.cli.systems import NoSystem, load, scheme_of
from trimtab.client.api import ApiClient
from trimtab.client.config import Config
from trimtab.client.connect import connect
from trimtab.client.transport import FAILURES, Call
from trimtab.model.clock import SystemClock
from trimtab.model.errors import StatusError
from trimtab.model.logs import log
from trimtab.runtime.credentials import Credentials
from trimtab.runtime.queue import QueueUnavailable
from trimtab.runtime.rights import account
from trimtab.runtime.system import System
from trimtab.storage.blobs import BlobError
from trimtab.storage.connect import BlobsConfigError

CATALOGS = 2
"""Listings at once, at most: one is many requests already."""


class Options(Places, frozen=True, kw_only=True):
    kubeconfig: Path | None = None
    context: str = ""
    impersonate: bool = True
    concurrency: int = 8
    name: str = ""


def work(options: Options) -> int:
    """Run until SIGINT or SIGTERM. Returns the exit code."""
    import uvloop

    try:
        if not options.nats:
            raise Problem(
                "name the queue with --nats URL, as the controllers have it: without, they work in their own process, and"
                " nobody else can take part",
                USAGE,
            )
        if not options.blobs:
            raise Problem("name the place for blobs with --blobs URL, as the controllers have it", USAGE)
        (system,) = load("images")
        config = configured(Access(options.kubeconfig, options.context))
        tune(layers=True)
        return uvloop.run(_work(options, system, as_system(config, system) if options.impersonate else config))
    except FAILURES as error:
        code, message = told(error)
        complain(message)
        return code
    except Problem as problem:
        complain(str(problem))
        return problem.code
    except (NoSystem, BlobsConfigError, BlobError, QueueUnavailable, ValueError) as error:
        complain(str(error))
        return FAILED


async def _work(options: Options, system: System, config: Config) -> int:
    from trimtab.systems.images.registry.connections import Connections
    from trimtab.systems.images.worker.handling import Tools
    from trimtab.systems.images.worker.worker import worker
    from trimtab.systems.images.working import worker_name

    stop = asyncio.Event()
    stop_on_signals(stop)
    client = connect(config=config, scheme=scheme_of((system,)))
    clock = SystemClock()
    try:
        await _greet(client, options, system)
        async with means(options) as given, Connections() as connections, Credentials(client) as credentials:
            if given.blobs is None:
                raise Problem("name the place for blobs with --blobs URL", USAGE)
            tools = Tools(
                name=options.name or worker_name(),
                client=client,
                clock=clock,
                blobs=given.blobs,
                scratch=given.scratch,
                workers=given.workers,
                connections=connections,
                credentials=credentials,
            )
            at_once = options.concurrency
            works = worker(tools, given.queue, catalogs=min(CATALOGS, at_once), sboms=at_once, scans=at_once)
            log.info("the worker starts", worker=tools.name, server=config.server, concurrency=at_once)
            await works.run(stop)
            log.info("the worker has ended", worker=tools.name)
    finally:
        await client.close()
    return 0


async def _greet(client: ApiClient, options: Options, system: System) -> None:
    """What is wrong is better told now than by each message."""
    try:
        await client.transport.call(Call(method="GET", path="/version"))
    except StatusError as error:
        if error.code != 403 or not options.impersonate:
            raise
        raise Problem(
            f"{error.message}; take a kubeconfig whose user may impersonate {account(system)}, or --no-impersonate"
            " with one of that account itself",
            REFUSED,
        ) from None

"""`trimtab controllers`: the systems' controllers in a process of their own, against any Kubernetes.

Beside the embedded server (`--socket`) it is the same process with the same code: only there it also brings what
`trimtab install` prints for a cluster, as the server's owner, before it becomes the systems' accounts.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path

import msgspec

from trimtab.cli.access import Access, configured
from trimtab.cli.codes import FAILED, REFUSED, Problem, complain, told
from trimtab.cli.interrupts import stop_on_signals
from trimtab.cli.means import Means, Places, as_system, means
from trimtab.cli.memory import tune
from trimtab.cli.systems import NoSystem, load, scheme_of
from trimtab.client.api import ApiClient
from trimtab.client.config import Config, unix
from trimtab.client.connect import connect
from trimtab.client.transport import FAILURES
from trimtab.model.clock import SystemClock
from trimtab.model.logs import log
from trimtab.runtime.election import Election
from trimtab.runtime.health import Check, HealthServer
from trimtab.runtime.manager import Manager
from trimtab.runtime.metrics import Metrics
from trimtab.runtime.prepare import prepare
from trimtab.runtime.queue import QueueUnavailable
from trimtab.runtime.rights import lease_of
from trimtab.runtime.system import NAMESPACE, Context, System
from trimtab.storage.blobs import BlobError
from trimtab.storage.connect import BlobsConfigError


class Options(Places, frozen=True, kw_only=True):
    systems: str = "all"
    operators: tuple[Path, ...] = ()
    kubeconfig: Path | None = None
    context: str = ""
    socket: Path | None = None
    """Of the embedded server that started us: we are its owner, and end when our standard input does."""
    elect: bool = True
    impersonate: bool = True
    define: bool = False
    """Define the operators' kinds first."""
    manage: bool = False
    """Let systems define kinds; beside the embedded server they may."""
    health_host: str = "127.0.0.1"
    health_port: int | None = None
    webhook_host: str = "127.0.0.1"
    webhook_port: int | None = None
    prometheus: str = ""
    local: bool = False
    """Run Deployments as processes of this machine: only beside the embedded server."""
    suffixes: tuple[str, ...] = ()
    """Under which that server serves the hub's kinds, too."""


def controllers(options: Options) -> int:
    """Run until SIGINT or SIGTERM. Returns the exit code."""
    import uvloop

    try:
        if options.local and not options.socket:
            raise NoSystem("--local-workloads is an option of `trimtab up`: a cluster has nodes of its own")
        systems = load(options.systems, options.operators, local=options.local)
        if not systems:
            raise NoSystem("there is nothing to run: no system is installed, and no --operator was given")
        config = unix(options.socket) if options.socket else configured(Access(options.kubeconfig, options.context))
        tune(layers=any(system.name == "images" for system in systems))
        return uvloop.run(_run(options, systems, config))
    except FAILURES as error:  # before anything runs: a server that is not there, or refuses
        code, message = told(error)
        hint = "; --no-crds if the kinds are defined already" if options.define and code == REFUSED else ""
        complain(message + hint)
        return code
    except (NoSystem, Problem, BlobsConfigError, BlobError, QueueUnavailable) as error:
        complain(str(error))
        return FAILED


async def _run(options: Options, systems: Sequence[System], config: Config) -> int:
    stop = asyncio.Event()
    stop_on_signals(stop)
    parent = await _stop_with_input(stop) if options.socket else None
    scheme = scheme_of(systems)
    metrics = Metrics()
    async with contextlib.AsyncExitStack() as stack:
        if options.socket or options.define:
            owner = connect(config=config, scheme=scheme)
            stack.push_async_callback(owner.close)
            ours = options.socket is not None
            await prepare(owner, systems, rights=ours, manage=ours, borrowed=ours, suffixes=options.suffixes)
        configs = [as_system(config, system) if options.impersonate else config for system in systems]
        clients = [connect(config=each, scheme=scheme) for each in configs]
        for client in clients:
            stack.push_async_callback(client.close)
        async with means(_placed(options, systems)) as given:
            pairs = zip(systems, clients, strict=True)
            managers = [_manager(system, client, metrics, given, options, stop) for system, client in pairs]
            ready: dict[str, Check] = {s.name: m.check_ready for s, m in zip(systems, managers, strict=True)}
            if options.webhook_port is not None:
                from trimtab.cli.webhooks import serving

                webhooks = serving(systems, clients, options.webhook_host, options.webhook_port)
                ready["webhooks"] = (await stack.enter_async_context(webhooks)).check_ready
            if options.health_port is not None:
                health = HealthServer(options.health_host, options.health_port, ready=ready, metrics=metrics)
                await stack.enter_async_context(health)
                log.info("health and metrics are served", port=health.port)
            log.info("controllers start", systems=[system.name for system in systems], server=config.server)
            async with asyncio.TaskGroup() as tasks:
                for manager in managers:
                    tasks.create_task(manager.run(stop))
    if parent is not None:
        parent.cancel()
    return 0


def _placed(options: Options, systems: Sequence[System]) -> Places:
    """Beside the embedded server blobs are in its folder; elsewhere who needs them must be told where."""
    url = options.blobs or (str(options.data_dir / "blobs") if options.socket else "")
    for system in systems:
        if system.needs_blobs and not url:
            raise NoSystem(f'the system "{system.name}" needs a place for blobs: --blobs postgresql://… or https://…')
    return msgspec.structs.replace(options, blobs=url)


def _manager(
    system: System,
    client: ApiClient,
    metrics: Metrics,
    means: Means,
    options: Options,
    stop: asyncio.Event | None = None,
) -> Manager:
    clock = SystemClock()
    election = None
    if options.elect:
        metrics.leader(lease_of(system), False)
        election = Election(
            client,
            clock,
            name=lease_of(system),
            namespace=NAMESPACE,
            identity=f"{socket.gethostname()}_{uuid.uuid4()}",
            status=lambda leading: metrics.leader(lease_of(system), leading),
        )
    manager = Manager(client, name=system.name, clock=clock, election=election, metrics=metrics)
    context = Context(
        client=client,
        clock=clock,
        blobs=means.blobs,
        scratch=means.scratch,
        queue=means.queue,
        workers=means.workers,
        metrics=metrics,
        manager=manager,
        manage=options.manage or options.socket is not None,
        webhooks=options.webhook_port is not None,
        prometheus=options.prometheus,
        data_dir=options.data_dir.resolve() if options.socket else None,
        stopping=stop,
    )
    for controller in system.made(context):
        manager.add(controller)
    return manager


async def _stop_with_input(stop: asyncio.Event) -> asyncio.Task[None]:
    """Whoever started us has gone when our standard input ends."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    async def wait() -> None:
        await reader.read()
        stop.set()

    return asyncio.create_task(wait())

"""What `trimtab hub serve` does: the hub's kinds behind the API server of a cluster."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from trimtab.client.api import ApiClient
    from trimtab.hub.aggregated import Aggregated, Pair, Serving
    from trimtab.hub.bus.contract import Bus
    from trimtab.hub.cache.caches import Caches
    from trimtab.hub.cache.peers import Peers
    from trimtab.hub.storage.contract import Storage
    from trimtab.runtime.system import System

NO_BUS = "none"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    storage: str
    storage_token: Path | None = None
    storage_ca: Path | None = None
    kubeconfig: Path | None = None
    context: str = ""
    host: str = "127.0.0.1"
    port: int
    certificate: Path | None = None
    key: Path | None = None
    proxy_ca: Path | None = None
    proxy_names: tuple[str, ...] = ()
    bus: str = ""
    peer_port: int | None = None
    peer_host: str = ""
    systems: str = "all"
    operators: tuple[Path, ...] = ()
    suffixes: tuple[str, ...] = ()


def run(options: Options) -> int:
    """Until SIGINT or SIGTERM. The exit code."""

    import uvloop

    from trimtab.cli.codes import complain, told

    try:
        return uvloop.run(_serve(options))
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        code, message = told(error)
        complain(message)
        return code


async def _serve(options: Options) -> int:
    from trimtab.cli.access import Access, configured
    from trimtab.cli.codes import OK
    from trimtab.cli.interrupts import stop_on_signals
    from trimtab.cli.memory import tune
    from trimtab.cli.systems import scheme_of
    from trimtab.client.connect import connect
    from trimtab.hub.aggregated import Aggregated, hub_server, proxy_file, serving
    from trimtab.hub.cache.caches import Caches
    from trimtab.hub.compose import mounted

    systems = _systems(options)
    storage, bus = _storage(options), _bus(options)
    kinds = tuple(kind for system in systems for kind in system.hub)
    stop = asyncio.Event()
    stop_on_signals(stop)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(storage.close)
        client = connect(config=configured(Access(options.kubeconfig, options.context)))
        stack.push_async_callback(client.close)
        own = {kind.cls for kind in kinds}
        asked = tuple(each for system in systems for each in system.admissions if own.intersection(each.kinds))
        server = hub_server(client, admission=asked, scheme=scheme_of(systems))
        proxy = None if options.proxy_ca is None else proxy_file(options.proxy_ca, options.proxy_names)
        aggregated = Aggregated(server, client, _certificate(options, client, systems), proxy=proxy)
        await _first(aggregated)
        await _reached(storage)
        caches = Caches()
        if bus is not None:
            await stack.enter_async_context(_fleet(bus, caches, _peers(options, aggregated)))
        await stack.enter_async_context(
            mounted(server, kinds, storage, suffixes=options.suffixes, caches=caches),
        )
        await stack.enter_async_context(serving(aggregated, host=options.host, port=options.port))
        tune()
        shown = f"[{options.host}]" if ":" in options.host else options.host
        print(f"the hub is ready at https://{shown}:{aggregated.port}", flush=True)
        await stop.wait()
    return OK


def _systems(options: Options) -> tuple[System, ...]:
    from trimtab.cli.codes import NOT_FOUND, Problem
    from trimtab.cli.systems import NoSystem, load

    try:
        found = tuple(system for system in load(options.systems, options.operators) if system.hub)
    except NoSystem as error:
        raise Problem(str(error), NOT_FOUND) from None
    if not found:
        raise Problem(f"there is nothing to serve: no system of {options.systems} has kinds for the hub", NOT_FOUND)
    return found


def _storage(options: Options) -> Storage:
    from trimtab.cli.codes import USAGE, Problem
    from trimtab.hub.storage.connect import StorageConfigError, storage

    try:
        return storage(options.storage, token_file=options.storage_token, ca_file=options.storage_ca)
    except StorageConfigError as error:
        raise Problem(f"--storage: {error}", USAGE) from None


def _bus(options: Options) -> Bus | None:
    """What replicas hear each other on. A storage that several may have needs one: else they would not know of each other's
    writes, and answer with what was."""
    from trimtab.cli.codes import USAGE, Problem
    from trimtab.hub.bus.connect import BusConfigError, bus

    url = options.bus
    if url == NO_BUS:
        return None
    if not url and options.storage.startswith(("postgresql://", "postgres://")):
        url = options.storage
    if not url and options.storage.startswith(("http://", "https://")):
        raise Problem(
            "--bus: say how replicas hear each other, nats://… or postgresql://…, or `none` if it is one", USAGE
        )
    if not url:
        return None
    try:
        return bus(url)
    except BusConfigError as error:
        raise Problem(str(error), USAGE) from None


def _certificate(options: Options, client: ApiClient, systems: tuple[System, ...]) -> Serving:
    from trimtab.cli.codes import USAGE, Problem
    from trimtab.hub.aggregated import from_files, self_made
    from trimtab.hub.install import NAME, api_services
    from trimtab.runtime.system import NAMESPACE

    if options.certificate is not None and options.key is not None:
        return from_files(options.certificate, options.key)
    if options.certificate is not None or options.key is not None:
        raise Problem("--tls-cert and --tls-key go together", USAGE)
    services = tuple(each["metadata"]["name"] for each in api_services(hub_kinds(systems, options.suffixes)))
    return self_made(client, namespace=NAMESPACE, name=NAME, services=services)


def hub_kinds(systems: tuple[System, ...], suffixes: tuple[str, ...] = ()) -> list[Any]:
    """The hub's kinds as they are served, under each suffix."""
    from trimtab.model.scheme import SUFFIX, Scheme

    schemes = [Scheme(suffix) for suffix in dict.fromkeys((SUFFIX, *suffixes))]
    return [scheme.kind_of(kind.cls) for scheme in schemes for system in systems for kind in system.hub]


async def _first(aggregated: Aggregated) -> None:
    """Whom to believe and what to serve with; without it there is no start."""
    import ssl

    from trimtab.cli.codes import Problem

    try:
        await aggregated.refresh()
    except ssl.SSLError as error:
        raise Problem(f"the certificate or its key cannot be used: {error.reason or 'not in PEM'}") from None
    except ValueError as error:
        raise Problem(f"the cluster does not say whom to believe: {error}") from None


async def _reached(storage: Storage) -> None:
    from trimtab.cli.codes import Problem
    from trimtab.hub.storage.contract import StorageUnavailable

    try:
        await storage.ready()
    except StorageUnavailable as error:
        raise Problem(f"--storage: {error}") from None


@contextlib.asynccontextmanager
async def _fleet(bus: Bus, caches: Caches, peers: Peers | None) -> AsyncIterator[None]:
    from trimtab.hub.cache.fleet import Fleet

    fleet = Fleet(bus, caches, peers=peers)
    await fleet.start()
    try:
        yield
    finally:
        await fleet.stop()
        await bus.close()


def _peers(options: Options, aggregated: Aggregated) -> Peers | None:
    """All replicas serve with one key, so they have a secret in common; what is made of it changes with it."""
    if options.peer_port is None:
        return None
    import ssl

    from trimtab.cli.receiving import is_loopback
    from trimtab.hub.cache.peers import Peers
    from trimtab.hub.install import NAME
    from trimtab.runtime.system import NAMESPACE

    token = peer_token(lambda: aggregated.pair.key)
    if is_loopback(options.host):
        return Peers(token=token, host=options.host, port=options.peer_port)
    trusting = ssl.create_default_context(cadata=aggregated.pair.trusted.decode("ascii") or None)

    def heard(pair: Pair) -> None:
        if pair.trusted:
            trusting.load_verify_locations(cadata=pair.trusted.decode("ascii"))

    aggregated.heard = heard
    return Peers(
        token=token,
        host=options.host,
        port=options.peer_port,
        advertised=options.peer_host or os.environ.get("POD_IP", ""),
        server_tls=aggregated.tls.context,
        client_tls=trusting,
        server_name=f"{NAME}.{NAMESPACE}.svc",
    )


def peer_token(key: Callable[[], bytes]) -> Callable[[], str]:
    return lambda: hmac.new(key(), b"trimtab hub peers", hashlib.sha256).hexdigest()

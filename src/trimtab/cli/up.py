"""`trimtab up`: the server, until Ctrl-C; and beside it, when there are systems, their controllers in a second process."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import random
import socket
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, NamedTuple

from trimtab.cli.interrupts import stop_on_signals
from trimtab.cli.memory import tune
from trimtab.cli.systems import NoSystem
from trimtab.model.admission import Admission
from trimtab.model.clock import SystemClock
from trimtab.model.hub import HubKind
from trimtab.model.kind import Kind
from trimtab.model.logs import log
from trimtab.model.scheme import Scheme
from trimtab.server.auth.files import UnsafeFileError
from trimtab.server.auth.issuing import ISSUER, Issuer, issuer_problem, jwks_problem
from trimtab.server.core import Server
from trimtab.server.http import Response
from trimtab.server.serve import AuditSettings, Running, Settings, serve
from trimtab.store.contract import Unusable

PATIENCE = 30.0


def run(
    data_dir: Path,
    host: str,
    port: int,
    hosts: tuple[str, ...] = (),
    systems: str = "none",
    operators: tuple[Path, ...] = (),
    log_format: str = "auto",
    prometheus: str = "",
    local: bool = False,
    hub: HubPlace | None = None,
    audit: AuditSettings | None = None,
    issuer: Issuer | None = None,
) -> int:
    """Serve until SIGINT or SIGTERM. Returns the exit code."""
    import uvloop

    tune()
    settings = Settings(
        data_dir=data_dir, host=host, port=port, extra_hosts=hosts, audit=audit, issuer=issuer or Issuer()
    )
    try:
        place = hub or HubPlace()
        beside = _controllers(data_dir, systems, operators, log_format, prometheus, local, place.suffixes)
        if local:
            log.warning("Deployments run commands of this machine, with the rights of whoever started this")
        return uvloop.run(_serve(settings, beside, place))
    except NoSystem as error:
        return _refused(str(error))
    except Unusable as error:
        return _refused(str(error))
    except UnsafeFileError as error:
        return _refused(str(error))
    except socket.gaierror as error:
        return _refused(f"{host}: {error.strerror}")
    except OSError as error:
        where = error.filename or (f"{host} port {port}" if error.errno in _ADDRESS else data_dir)
        return _refused(f"{where}: {error.strerror or error}")
    except Exception as error:
        from trimtab.hub.storage.contract import StorageUnavailable  # who has no hub needs none of it
        from trimtab.server.audit.policy import PolicyError

        if isinstance(error, StorageUnavailable | PolicyError):
            return _refused(str(error))
        raise


def audit_settings(policy: Path | None, log: str, max_size: int, max_backups: int) -> AuditSettings | None:
    """What the options for the audit log mean together. typer.BadParameter."""
    if policy is None and not log:
        return None
    if policy is None:
        raise _wrong("--audit-policy", "an audit log needs a policy, which says what is written to it")
    if not log:
        raise _wrong("--audit-log", "an audit policy needs a log to write to: a file, or - for the output")
    if not 1 <= max_size <= 1_000_000:
        raise _wrong("--audit-log-maxsize", f"{max_size} is not in the range 1 to 1000000")
    if max_backups < 0:
        raise _wrong("--audit-log-maxbackup", f"{max_backups} is less than 0")
    return AuditSettings(policy=policy, log=log, max_size=max_size, max_backups=max_backups)


def issuer_settings(names: tuple[str, ...], jwks_uri: str) -> Issuer:
    """typer.BadParameter for what is no issuer (RFC 8414 §2), or no address of keys."""
    for name in names:
        if problem := issuer_problem(name):
            raise _wrong("--service-account-issuer", f'"{name}": {problem}')
    if jwks_uri and (problem := jwks_problem(jwks_uri)):
        raise _wrong("--service-account-jwks-uri", f'"{jwks_uri}": {problem}')
    return Issuer(names=names or (ISSUER,), jwks_uri=jwks_uri)


def _wrong(option: str, why: str) -> Exception:
    import typer

    return typer.BadParameter(why, param_hint=option)


def _refused(why: str) -> int:
    print(f"trimtab: {why}", file=sys.stderr)
    return 1


_ADDRESS = (errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES)


class Beside(NamedTuple):
    """The second process, and what the server itself must know of its systems."""

    command: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    admissions: tuple[Admission, ...] = ()
    scheme: Scheme | None = None
    kinds: tuple[Kind, ...] = ()
    hub: tuple[HubKind, ...] = ()


class HubPlace(NamedTuple):
    """Where the hub's data are, and under which further names its kinds are served."""

    storage: str = ""
    suffixes: tuple[str, ...] = ()
    token_file: Path | None = None
    ca_file: Path | None = None
    protos: tuple[str, ...] = ()
    """proto3 files that define further kinds of the hub, as FILE or GROUP/VERSION=FILE."""


def _controllers(
    data_dir: Path,
    chosen: str,
    operators: tuple[Path, ...],
    log_format: str,
    prometheus: str,
    local: bool,
    suffixes: tuple[str, ...] = (),
) -> Beside:
    """Nothing is imported for systems that are not there."""
    from trimtab.cli.systems import installed, load, scheme_of

    if not (operators or local) and (chosen == "none" or (chosen == "all" and not installed())):
        return Beside()
    systems = load(chosen, operators, local=local)
    if not systems:
        return Beside()
    command = [sys.executable, "-m", "trimtab", "controllers", "--socket", str(data_dir / "trimtab.sock")]
    command += ["--data-dir", str(data_dir), "--log-format", log_format, "--no-leader-election", "--systems", chosen]
    for path in operators:
        command += ["--operator", str(path)]
    for suffix in suffixes:
        command += ["--group-suffix", suffix]
    command += ["--prometheus", prometheus] if prometheus else []
    command += ["--local-workloads"] if local else []
    names = tuple(system.name for system in systems)
    scheme = scheme_of(systems)
    kinds = tuple(scheme.kind_of(cls) for system in systems for cls in (*system.classes, *system.borrowed))
    hub = tuple(kind for system in systems for kind in system.hub)
    return Beside(tuple(command), names, tuple(a for s in systems for a in s.admissions), scheme, kinds, hub)


def _mounted(
    settings: Settings, beside: Beside, place: HubPlace
) -> Callable[[Server], AbstractAsyncContextManager[None]]:
    from trimtab.hub.compose import mounted
    from trimtab.hub.storage.connect import StorageConfigError, storage

    kinds: list[Any] = [*beside.hub]
    if place.protos:
        from trimtab.cli.hub_proto import loaded

        kinds += [loaded(said) for said in place.protos]
    url = place.storage or str(settings.data_dir / "hub.db")
    try:
        kept = storage(url, token_file=place.token_file, ca_file=place.ca_file)
    except StorageConfigError as error:
        raise NoSystem(str(error)) from None

    def mount(server: Server) -> AbstractAsyncContextManager[None]:
        try:
            return mounted(server, kinds, kept, suffixes=place.suffixes)
        except ValueError as error:
            raise NoSystem(str(error)) from None

    return mount


def _offer_terraform(server: Server) -> None:
    """The provider for Terraform, to whoever asks. Nothing of it is imported before."""

    async def public(path: str) -> Response | None:
        if not path.startswith("/terraform/"):
            return None
        from trimtab.cli.terraform_mirror import answer

        return await answer(path)

    server.roots.public = public


async def _serve(settings: Settings, beside: Beside, place: HubPlace) -> int:
    stop = asyncio.Event()
    stop_on_signals(stop)
    mount = _mounted(settings, beside, place) if beside.hub or place.protos else None
    async with serve(settings, admission=beside.admissions, scheme=beside.scheme, mount=mount) as running:
        _offer_terraform(running.server)
        supervised = asyncio.create_task(_supervise(beside) if beside.command else asyncio.Event().wait())
        stopped = asyncio.create_task(stop.wait())
        defined = asyncio.create_task(_defined(running, beside))
        await asyncio.wait({defined, supervised, stopped}, return_when=asyncio.FIRST_COMPLETED)
        defined.cancel()
        if not stop.is_set():
            print(f"trimtab is ready at {running.url}  kubeconfig {running.kubeconfig}", flush=True)
        await asyncio.wait({supervised, stopped}, return_when=asyncio.FIRST_COMPLETED)
        for task in (supervised, stopped):
            task.cancel()
        await asyncio.wait({supervised, stopped})
        if not supervised.cancelled():
            supervised.result()  # a mistake of ours: better seen than a server without controllers
    return 0


async def _defined(running: Running, beside: Beside) -> None:
    """Until the systems' kinds are served, so that who acts on the ready line finds them; but not for ever: a process that
    fails at each start says so itself."""
    registry = running.server.registry
    wanted = [(kind.group, kind.version, kind.plural) for kind in beside.kinds]
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while any(registry.find(*each) is None for each in wanted):  # noqa: ASYNC110 - they come by requests
                await asyncio.sleep(0.02)


async def _supervise(beside: Beside) -> bool:
    from trimtab.cli.supervisor import Supervisor

    supervisor = Supervisor(
        beside.command,
        name="controllers",
        clock=SystemClock(),
        chance=random.Random(),  # noqa: S311 - jitter
    )
    await supervisor.run()
    return True

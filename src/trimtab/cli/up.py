"""`trimtab up`: the server, until Ctrl-C; and beside it, when there are systems, their controllers in a second process."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import random
import socket
import sys
from pathlib import Path
from typing import NamedTuple

from trimtab.cli.interrupts import stop_on_signals
from trimtab.cli.memory import tune
from trimtab.cli.systems import NoSystem
from trimtab.model.admission import Admission
from trimtab.model.clock import SystemClock
from trimtab.model.kind import Kind
from trimtab.model.logs import log
from trimtab.model.scheme import Scheme
from trimtab.server.auth.files import UnsafeFileError
from trimtab.server.serve import Running, Settings, serve
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
) -> int:
    """Serve until SIGINT or SIGTERM. Returns the exit code."""
    import uvloop

    tune()
    settings = Settings(data_dir=data_dir, host=host, port=port, extra_hosts=hosts)
    try:
        beside = _controllers(data_dir, systems, operators, log_format, prometheus, local)
        if local:
            log.warning("Deployments run commands of this machine, with the rights of whoever started this")
        return uvloop.run(_serve(settings, beside))
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


def _controllers(
    data_dir: Path, chosen: str, operators: tuple[Path, ...], log_format: str, prometheus: str, local: bool
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
    command += ["--prometheus", prometheus] if prometheus else []
    command += ["--local-workloads"] if local else []
    names = tuple(system.name for system in systems)
    scheme = scheme_of(systems)
    kinds = tuple(scheme.kind_of(cls) for system in systems for cls in (*system.kinds, *system.borrowed))
    return Beside(tuple(command), names, tuple(a for s in systems for a in s.admissions), scheme, kinds)


async def _serve(settings: Settings, beside: Beside) -> int:
    stop = asyncio.Event()
    stop_on_signals(stop)
    async with serve(settings, admission=beside.admissions, scheme=beside.scheme) as running:
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

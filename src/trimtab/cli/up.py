"""`trimtab up`: the server, until Ctrl-C."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import gc
import signal
import socket
import sys
from pathlib import Path

from trimtab.server.auth.files import UnsafeFileError
from trimtab.server.serve import Settings, serve
from trimtab.store.contract import Unusable


def run(data_dir: Path, host: str, port: int, hosts: tuple[str, ...] = ()) -> int:
    """Serve until SIGINT or SIGTERM. Returns the exit code."""
    import uvloop

    gc.freeze()  # what was imported stays: collections need not look at it again
    gc.set_threshold(50_000, 10, 10)  # requests make few cycles; looking for them often costs a tenth of the time
    _return_large_blocks()
    settings = Settings(data_dir=data_dir, host=host, port=port, extra_hosts=hosts)
    try:
        return uvloop.run(_serve(settings))
    except Unusable as error:
        return _refused(str(error))
    except UnsafeFileError as error:
        return _refused(str(error))
    except socket.gaierror as error:
        return _refused(f"{host}: {error.strerror}")
    except OSError as error:
        where = error.filename or (f"{host} port {port}" if error.errno in _ADDRESS else data_dir)
        return _refused(f"{where}: {error.strerror or error}")


def _return_large_blocks() -> None:
    """Let glibc give large blocks back to the system: bodies come and go, and would leave holes. The limit is above the
    256 KiB that TLS reads into: those blocks are used again at once."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, 320 * 1024)


M_MMAP_THRESHOLD = -3


def _refused(why: str) -> int:
    print(f"trimtab: {why}", file=sys.stderr)
    return 1


_ADDRESS = (errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES)


async def _serve(settings: Settings) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with serve(settings) as running:
        print(f"trimtab is ready at {running.url}  kubeconfig {running.kubeconfig}", flush=True)
        await stop.wait()
        print("stopping", file=sys.stderr, flush=True)
    return 0

"""The emulator as a process:

    python -m trimtab.lab.arm examples/rest/compute.json [--port 0] [--token …] [--instant]

It prints its URL, and what it is told over HTTP is in `orders`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from trimtab.lab.arm.behaviour import INSTANT, Behaviour
from trimtab.lab.arm.server import ArmEmulator


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m trimtab.lab.arm", description="Azure Resource Manager, emulated.")
    parser.add_argument("documents", nargs="+", type=Path, metavar="SPEC", help="OpenAPI documents")
    parser.add_argument("--port", type=int, default=0, help="of 127.0.0.1; 0 is any that is free (%(default)s)")
    parser.add_argument("--token", default="", help="that every request must bear")
    parser.add_argument("--group", action="append", default=[], metavar="ID", help="a resource group that is there")
    parser.add_argument("--instant", action="store_true", help="no operation takes long")
    options = parser.parse_args(arguments)
    behaviour = INSTANT if options.instant else Behaviour()
    try:
        arm = ArmEmulator(options.documents, port=options.port, token=options.token, behaviour=behaviour)
        for each in options.group:
            arm.put(each, {"location": "westus"})
        _run(arm)
    except (OSError, ValueError, KeyError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _run(arm: ArmEmulator) -> None:
    runner = asyncio.run
    with contextlib.suppress(ImportError):
        import uvloop

        runner = uvloop.run
    runner(_serve(arm))


async def _serve(arm: ArmEmulator) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, ended.set)
    async with arm:
        print(arm.url, flush=True)
        await ended.wait()


if __name__ == "__main__":
    sys.exit(main())

"""The server and the operator written with Trimtab in one process. The operator begins on SIGUSR2.

python bench/peers/in_process.py --data-dir FOLDER --ledger FILE [--workers 8]
"""

from __future__ import annotations

import argparse
import asyncio
import signal
from pathlib import Path

import uvloop
from ledger import Ledger
from memory import collect_when_asked
from ours import scheme, work

from trimtab.server.local import local_client
from trimtab.server.serve import OWNER, Settings, serve


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--ledger", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=8)
    options = parser.parse_args()
    uvloop.run(operate(options))


async def operate(options: argparse.Namespace) -> None:
    ledger = Ledger(options.ledger)
    collect_when_asked(ledger)
    begin = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, begin.set)
    async with serve(Settings(data_dir=options.data_dir, port=0)) as running:
        print(running.url, running.kubeconfig, sep="\n", flush=True)
        ledger.set_ready()
        await begin.wait()
        await work(local_client(running.server, OWNER, scheme()), ledger, options.workers)


if __name__ == "__main__":
    main()

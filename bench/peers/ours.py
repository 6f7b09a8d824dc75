"""Runs the operator written with Trimtab: over TLS, or over the unix socket next to the kubeconfig.

python bench/peers/ours.py --kubeconfig FILE --ledger FILE [--workers 8] [--socket]
"""

from __future__ import annotations

import argparse
import asyncio
import signal
from pathlib import Path

import uvloop
from gadgets import Gadget, Gadgets
from ledger import Ledger
from memory import collect_when_asked

from trimtab.cli.memory import tune
from trimtab.client.api import ApiClient
from trimtab.client.connect import connect
from trimtab.model import kubernetes
from trimtab.model.scheme import Scheme
from trimtab.runtime.manager import Manager


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--ledger", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--socket", action="store_true")
    options = parser.parse_args()
    tune()  # as `trimtab run` does
    uvloop.run(operate(options))


async def operate(options: argparse.Namespace) -> None:
    ledger = Ledger(options.ledger)
    collect_when_asked(ledger)
    if options.socket:
        client = connect(socket=options.kubeconfig.with_name("trimtab.sock"), scheme=scheme())
    else:
        client = connect(options.kubeconfig, scheme=scheme())
    try:
        await work(client, ledger, options.workers)
    finally:
        await client.close()


async def work(client: ApiClient, ledger: Ledger, workers: int) -> None:
    """Until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    manager = Manager(client, name="gadgets")
    manager.add(Gadgets(ledger, workers))
    await manager.run(stop)


def scheme() -> Scheme:
    made = kubernetes.register(Scheme())
    made.register(Gadget)
    return made


if __name__ == "__main__":
    main()

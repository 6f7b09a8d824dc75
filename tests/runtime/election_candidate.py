"""A candidate as a process of its own: `python election_candidate.py KUBECONFIG NAMESPACE IDENTITY`.

While it leads it counts in a ConfigMap. It prints a line for each thing that happens to it: what, when by the clock
that all processes of a machine share, and in which term.
"""

from __future__ import annotations

import asyncio
import random
import signal
import sys

from trimtab.client.connect import connect
from trimtab.model import kubernetes
from trimtab.model.clock import SystemClock
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.scheme import Scheme
from trimtab.runtime.election import Election, NotLeading
from trimtab.runtime.guarded import Guarded


async def main(kubeconfig: str, namespace: str, identity: str) -> None:
    clock = SystemClock()
    client = connect(kubeconfig, scheme=kubernetes.register(Scheme()))
    election = Election(
        client,
        clock,
        name="candidates",
        namespace=namespace,
        identity=identity,
        duration=1.5,
        renew_deadline=1.0,
        retry=0.2,
        random=random.Random(identity),
        on_lost=lambda: say("lost"),
    )
    guarded = Guarded(client, election)

    def say(what: str, at: float | None = None) -> None:
        print(what, clock.monotonic() if at is None else at, election.term, flush=True)

    async def lead() -> None:
        while True:
            old = await client.get(ConfigMap, "ledger", namespace)
            count = int((old.data or {}).get("count", "0")) + 1
            new = old.replace(data={"count": str(count), "writer": identity, "term": str(election.term)})
            began = clock.monotonic()
            try:
                await guarded.patch(old, new)
                say("wrote", began)
            except NotLeading:
                say("refused")
            except StatusError as error:
                if error.code != 409:
                    raise
                say("conflict")
            await clock.sleep(0.01)

    running = asyncio.create_task(election.run(lead))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    say("ready")
    try:
        await running
    except asyncio.CancelledError:
        say("released")
    finally:
        await client.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

"""From an option of the command line to a queue."""

from __future__ import annotations

import importlib.util
from typing import Any

from trimtab.model.clock import Clock
from trimtab.runtime.queue.contract import Queue
from trimtab.runtime.queue.local import LocalQueue


def connect(nats: str | None, *, clock: Clock, **options: Any) -> Queue:
    """The queue behind `--nats URL`, or one in this process. The options are those of `NatsQueue`. ValueError."""
    if nats is None:
        return LocalQueue(clock)
    if importlib.util.find_spec("nats") is None:
        raise ValueError("--nats needs an extra: pip install 'trimtab[nats]'")
    from trimtab.runtime.queue.nats import NatsQueue

    return NatsQueue(nats, clock=clock, **options)

"""Work that is handed out and comes back when nobody finishes it: `contract` first, then `local` and `nats`."""

from trimtab.runtime.queue.connect import connect
from trimtab.runtime.queue.contract import (
    DeadLetter,
    Message,
    PayloadTooLarge,
    Queue,
    QueueError,
    QueueFull,
    QueueUnavailable,
)
from trimtab.runtime.queue.local import LocalQueue

__all__ = [
    "DeadLetter",
    "LocalQueue",
    "Message",
    "PayloadTooLarge",
    "Queue",
    "QueueError",
    "QueueFull",
    "QueueUnavailable",
    "connect",
]

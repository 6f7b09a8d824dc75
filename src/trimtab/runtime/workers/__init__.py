"""Processes for work that would hold the loop: `pool` is here, `child` is there."""

from trimtab.runtime.workers.pool import (
    WorkerCrashed,
    WorkerFailed,
    WorkerMemory,
    WorkerMessageTooLarge,
    Workers,
    WorkerTimeout,
)

__all__ = ["WorkerCrashed", "WorkerFailed", "WorkerMemory", "WorkerMessageTooLarge", "WorkerTimeout", "Workers"]

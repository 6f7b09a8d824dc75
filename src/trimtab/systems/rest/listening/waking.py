"""Waking objects: a new value in an annotation, which makes their controllers look at the service.

Guarantees: an object is woken at most once in `EVERY` seconds. The first word of it is written before `wake` returns; what
comes within that time is one more write at its end. Whoever ends the process in between loses that one: the next look in turn
finds the change all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from trimtab.client.api import ApiClient
from trimtab.model.clock import Clock
from trimtab.model.errors import StatusError
from trimtab.model.logs import log
from trimtab.model.scheme import Untyped
from trimtab.runtime.tasks import ended
from trimtab.systems.rest.listening.finding import Target
from trimtab.systems.rest.reconciling.subject import WAKE

EVERY = 1.0
AT_ONCE = 16
TRIES = 5


class Waker:
    """Ends with `close`."""

    def __init__(self, client: ApiClient, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._woken: dict[Target, float] = {}
        self._waiting: dict[Target, int] = {}  # to be woken once more, and how often that failed
        self._places = asyncio.Semaphore(AT_ONCE)
        self._task: asyncio.Task[None] | None = None

    async def wake(self, targets: Iterable[Target]) -> None:
        """StatusError or OSError when an object could not be woken: it counts as not told."""
        now = self._clock.monotonic()
        self._forget(now)
        first = []
        for target in dict.fromkeys(targets):
            if target in self._woken:
                self._waiting.setdefault(target, 0)
            else:
                self._woken[target] = now
                first.append(target)
        if self._waiting and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._wake_waiting())
        outcomes = await asyncio.gather(*(self._write(target) for target in first), return_exceptions=True)
        for target, outcome in zip(first, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                self._woken.pop(target, None)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def close(self) -> None:
        """Write what waits, now."""
        if self._task is not None:
            await ended(self._task)
        waiting, self._waiting = self._waiting, {}
        for outcome in await asyncio.gather(*(self._write(target) for target in waiting), return_exceptions=True):
            if isinstance(outcome, Exception):
                log.warning("an object could not be woken", why=_said(outcome))

    def _forget(self, now: float) -> None:
        for target in [t for t, at in self._woken.items() if now - at >= EVERY and t not in self._waiting]:
            del self._woken[target]

    async def _wake_waiting(self) -> None:
        while self._waiting:
            now = self._clock.monotonic()
            due = [target for target in self._waiting if now - self._woken.get(target, -EVERY) >= EVERY]
            if not due:
                soonest = min(self._woken[target] for target in self._waiting)
                await self._clock.sleep(max(0.001, soonest + EVERY - now))
                continue
            failures = {target: self._waiting.pop(target) for target in due}
            self._woken.update(dict.fromkeys(due, now))
            outcomes = await asyncio.gather(*(self._write(target) for target in due), return_exceptions=True)
            for target, outcome in zip(due, outcomes, strict=True):
                if isinstance(outcome, Exception):
                    self._again(target, failures[target] + 1, outcome)

    def _again(self, target: Target, failures: int, error: Exception) -> None:
        if failures < TRIES:
            self._waiting.setdefault(target, failures)
            return
        log.warning("an object could not be woken", object=f"{target.namespace}/{target.name}", why=_said(error))

    async def _write(self, target: Target) -> None:
        """Whatever else is written to the object meanwhile: nothing else is touched."""
        names = {"name": target.name, "namespace": target.namespace}
        document: dict[str, Any] = {"apiVersion": target.api_version, "kind": target.kind, "metadata": names}
        annotations = {WAKE: self._clock.now().isoformat()}
        changed = {**document, "metadata": {**names, "annotations": annotations}}
        async with self._places:
            try:
                await self._client.patch(Untyped(document), Untyped(changed))
            except StatusError as error:
                if error.code != 404:  # deleted since: nobody is left to tell
                    raise


def _said(error: Exception) -> str:
    return f"{error.code} {error.reason}" if isinstance(error, StatusError) else type(error).__name__

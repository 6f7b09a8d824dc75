"""Drives one controller: changes to requests, requests to the queue, the queue to `reconcile`, its outcome back.

Life: `open` (the caches fill and the queue with them: warm), then `work` for as long as we may act, any number of times,
then `close`. A reconcile that is cancelled because we may not act any more is not lost: its request is in the queue.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from typing import Any

from trimtab.client.protocol import AnyKind, Query
from trimtab.model.clock import Clock
from trimtab.model.errors import StatusError
from trimtab.runtime.changes import Change, Request
from trimtab.runtime.controller import Controller, Result, TerminalError
from trimtab.runtime.election import NotLeading
from trimtab.runtime.informers import Handler, Informer, Informers
from trimtab.runtime.limits import Backoff, TokenBucket
from trimtab.runtime.metrics import Metrics
from trimtab.runtime.workqueue import LOW, QueueClosed, WorkQueue


class Driver:
    """One controller of a running manager."""

    def __init__(
        self,
        controller: Controller[Any],
        informers: Informers,
        *,
        clock: Clock,
        chance: random.Random,
        metrics: Metrics,
    ) -> None:
        self.controller = controller
        self._informers = informers
        self._clock = clock
        self._own, _ = informers.named(controller.kind)
        self._metrics = metrics.controller(controller.name, controller.concurrency)
        self.queue: WorkQueue[Request] = WorkQueue(
            clock,
            name=controller.name,
            backoff=Backoff(random=chance),
            bucket=TokenBucket(100.0, 1000, clock),  # when all fail at once, as an outage ends
            metrics=metrics.queue(controller.name),
        )
        self._sources: list[tuple[Informer, Handler]] = []
        self._started = False

    @property
    def synced(self) -> bool:
        return bool(self._sources) and all(informer.synced.is_set() for informer, _ in self._sources)

    @property
    def waits_for(self) -> str:
        """Which kinds are not there yet, and why."""
        missing = [(i, i.problem) for i, _ in self._sources if not i.synced.is_set()]
        names = (f"{self._informers.named(i.kind)[0].kind}{f': {why}' if why else ''}" for i, why in missing)
        return ", ".join(dict.fromkeys(names))

    def open(self) -> None:
        """Follow the kinds that matter. Returns at once; the caches fill by themselves."""
        controller = self.controller
        self._follow(controller.kind, controller.query, self._changed, controller.indexes)
        for kind in controller.owns:
            self._follow(kind, Query(namespace=controller.query.namespace), self._owned_changed)
        for watch in controller.watches:
            self._follow(watch.kind, watch.query, self._mapped(watch.when, watch.to))

    def _follow(self, kind: AnyKind, query: Query, handler: Handler, indexes: Any = ()) -> None:
        self._sources.append((self._informers.subscribe(kind, query, handler, indexes), handler))

    async def work(self) -> None:
        """Reconcile until the queue is closed, or until cancelled."""
        for informer, _ in self._sources:
            await informer.synced.wait()
        if not self._started:
            await self.controller.start()
            self._started = True
        own = self._sources[0][0]
        for entry in own.cache.entries_of_watch():  # others may have acted meanwhile, and left time-outs to us
            self.queue.add(Request(entry.namespace, entry.name), LOW)
        async with asyncio.TaskGroup() as workers:
            for number in range(self.controller.concurrency):
                workers.create_task(self._work(), name=f"{self.controller.name} worker {number}")

    async def close(self) -> None:
        """Follow nothing any more. Nothing may work when this is called."""
        self.queue.close(drain=False)
        for informer, handler in self._sources:
            await self._informers.unsubscribe(informer, handler)
        self._sources.clear()
        if self._started:
            self._started = False
            await self.controller.stop()

    # --- changes to requests -----------------------------------------------------------------------------------------

    def _changed(self, change: Change) -> None:
        if change.initial:
            self.queue.add(change.request, LOW)
        elif self.controller.when(change):
            self.queue.add(change.request)

    def _owned_changed(self, change: Change) -> None:
        own_group = self._own.api_version.rpartition("/")[0]
        for head in change.heads:
            for owner in (head.owner_references or ()) if head is not None else ():
                if (
                    owner.controller
                    and owner.kind == self._own.kind
                    and owner.api_version.rpartition("/")[0] == own_group
                ):
                    self.queue.add(self._request_of(owner.name, change), LOW if change.initial else 0)

    def _request_of(self, owner: str, change: Change) -> Request:
        namespace = change.request.namespace
        cache = self._sources[0][0].cache
        clustered = cache.get(Request("", owner)) is not None and cache.get(Request(namespace, owner)) is None
        return Request("" if clustered else namespace, owner)

    def _mapped(self, when: Callable[[Change], bool], to: Callable[[Change], Iterable[Request]]) -> Handler:
        def handle(change: Change) -> None:
            if change.initial or when(change):
                for request in to(change):
                    self.queue.add(request, LOW if change.initial else 0)

        return handle

    # --- requests to reconcile ---------------------------------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            try:
                request = await self.queue.get()
            except QueueClosed:
                return
            try:
                await self._reconcile(request)
            except BaseException:
                self.queue.add(request, self.queue.priority(request))  # cut off: it is still to be done
                raise
            finally:
                self.queue.done(request)

    async def _reconcile(self, request: Request) -> None:
        began = self._clock.monotonic()
        self._metrics.started()
        outcome: Any = "error"
        try:
            outcome = self._settled(request, await self._bounded(request))
        except NotLeading:
            self.queue.add(request)  # whoever leads next does it
        except TerminalError as error:
            self._metrics.terminal()
            self._failed(request, error, again=False)
        except TimeoutError as error:
            self._failed(request, error)
        except StatusError as error:
            self._failed(request, error, quiet=error.code == 409)  # someone else was faster: look again
        except Exception as error:
            self._metrics.panic()
            self._failed(request, error)
        finally:
            self._metrics.reconciled(outcome, self._clock.monotonic() - began)

    async def _bounded(self, request: Request) -> Any:
        """Within the time that the controller allows."""
        limit = asyncio.timeout(self.controller.timeout)
        try:
            async with limit:
                return await self.controller.reconcile(request)
        except TimeoutError:
            if limit.expired():
                self._metrics.timeout()
                raise TimeoutError(f"not done within {self.controller.timeout:g} s") from None
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise RuntimeError("the reconcile cancelled itself") from None

    def _settled(self, request: Request, result: Any) -> str:
        if result is None:
            result = _DONE
        if not isinstance(result, Result):
            raise TypeError(f"reconcile returned {type(result).__name__}; return a Result or None")
        after = result.requeue_after
        if after is not None and not 0 <= after < _YEARS:
            raise ValueError(f"requeue_after={after} is no number of seconds")
        if result.requeue and after is None:
            self.queue.add_rate_limited(request, self.queue.priority(request))
            return "requeue"
        self.queue.forget(request)
        if after is None:
            return "success"
        self.queue.add_after(request, after, self.queue.priority(request))
        return "requeue_after"

    def _failed(self, request: Request, error: Exception, *, again: bool = True, quiet: bool = False) -> None:
        self._metrics.error()
        if again:
            self.queue.add_rate_limited(request, self.queue.priority(request))
        else:
            self.queue.forget(request)
        if quiet:
            return
        report = self.controller.log.exception if _unexpected(error) else self.controller.log.warning
        report("reconcile failed", object=str(request), error=str(error), again=again)
        entry = self._sources[0][0].cache.get(request)
        if entry is not None:
            obj = self._sources[0][0].cache.decode(entry)
            self.controller.events.warning(obj, "ReconcileFailed", f"{type(error).__name__}: {error}")


def _unexpected(error: Exception) -> bool:
    """A mistake in the code, for which the traceback matters."""
    return not isinstance(error, StatusError | TerminalError | TimeoutError | OSError)


_DONE = Result()
_YEARS = 10 * 365 * 86400.0

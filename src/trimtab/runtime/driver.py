"""Drives one controller: changes to requests, requests to the queue, the queue to `reconcile`, its outcome back.

Life: `open` (the caches fill and the queue with them: warm), then `work` for as long as we may act, any number of times,
then `close`. A reconcile that is cancelled because we may not act any more is not lost: its request is in the queue.

Guarantees: whatever a reconcile does, the others go on. One that never ends although it was cancelled is left behind with
its request, which nobody else gets as long as it lives. After a reconcile that may have written its object without knowing
it (the answer was lost, or somebody was faster), the next one sees the object as the server has it: from a cache that is
behind, the work could look done, and the change that tells otherwise later may be one that the controller does not look at.

Caveats: who stands by keeps the request of every object that changed, also of those that are gone since.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from trimtab.client.protocol import AnyKind, Query
from trimtab.client.transport import Silent, Unreachable
from trimtab.model.clock import Clock
from trimtab.model.errors import StatusError
from trimtab.runtime.changes import Change, Request
from trimtab.runtime.controller import Controller, Result, TerminalError
from trimtab.runtime.echo import begin
from trimtab.runtime.election import NotLeading
from trimtab.runtime.informers import Handler, Informer, Informers
from trimtab.runtime.limits import Backoff, TokenBucket
from trimtab.runtime.metrics import Metrics
from trimtab.runtime.workqueue import LOW, QueueClosed, WorkQueue

CUT = 5.0  # seconds that a cancelled reconcile gets to clean up
STOP = 30.0
NOT_LEADING = 1.0  # when the lease is back, all is reconciled anyway


class Driver:
    """One controller of a running manager."""

    queue: WorkQueue[Request]

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
        self.started = False
        self._informers = informers
        self._clock = clock
        self._chance = chance
        self._own, _ = informers.named(controller.kind)
        self._metrics = metrics.controller(controller.name, controller.concurrency)
        self._queue_metrics = metrics.queue(controller.name)
        self._sources: list[tuple[Informer, Handler]] = []
        self._workers: set[asyncio.Task[None]] = set()  # those that are to go on
        self._problem: Exception | None = None  # why it does not start
        self._doubtful: set[Request] = set()  # of which our caches may not know what we wrote

    @property
    def synced(self) -> bool:
        return bool(self._sources) and all(informer.synced.is_set() for informer, _ in self._sources)

    @property
    def waits_for(self) -> str:
        """What is not there yet, or is there no more, and why; "" when all is well."""
        if self._problem is not None:
            return f"the start of {self.controller.name}: {said(self._problem)}"
        missing = [
            informer.stale
            if informer.synced.is_set()
            else informer.trouble or self._informers.named(informer.kind)[0].kind
            for informer, _ in self._sources
        ]
        return ", ".join(dict.fromkeys(why for why in missing if why))

    def open(self) -> None:
        """Follow the kinds that matter. Returns at once; the caches fill by themselves."""
        controller = self.controller
        self.queue = WorkQueue(
            self._clock,
            name=controller.name,
            backoff=Backoff(random=self._chance),
            bucket=TokenBucket(100.0, 1000, self._clock),  # when all fail at once, as an outage ends
            metrics=self._queue_metrics,
        )
        controller.wake = self.queue.add
        self._follow(controller.kind, controller.query, self._changed, controller.indexes)
        for kind in controller.owns:
            self._follow(kind, Query(namespace=controller.query.namespace), self._owned_changed)
        for watch in controller.watches:
            self._follow(watch.kind, watch.query, self._mapped(watch.when, watch.to), watch.indexes)

    def _follow(self, kind: AnyKind, query: Query, handler: Handler, indexes: Any = ()) -> None:
        self._sources.append((self._informers.subscribe(kind, query, handler, indexes), handler))

    async def work(self) -> None:
        """Reconcile until the queue is closed, or until cancelled."""
        for informer, _ in self._sources:
            await informer.synced.wait()
        await self._start()
        self.controller.log.info("controller works")
        own = self._sources[0][0]
        for entry in own.cache.entries_of_watch():  # others may have acted meanwhile, and left time-outs to us
            self.queue.add(Request(entry.namespace, entry.name), LOW)
        name = f"{self.controller.name} worker"
        workers = {asyncio.create_task(self._work(), name=name) for _ in range(max(1, self.controller.concurrency))}
        self._workers |= workers
        try:
            ended, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            for worker in ended:
                worker.result()
        finally:
            self._workers -= workers
            for worker in workers:
                worker.cancel()
            _, left = await asyncio.wait(workers, timeout=CUT)
            if left:
                self.controller.log.error("reconciles do not end although they are cancelled", count=len(left))
            await self._call(self.controller.pause, "pause failed")

    async def _start(self) -> None:
        """Until it succeeds: what a controller needs may come later, and others need not wait for it."""
        pauses: Backoff[str] = Backoff(first=0.5, longest=60.0, random=self._chance)
        while not self.started:
            try:
                await self.controller.start()
                self.started, self._problem = True, None
            except Exception as error:
                self._problem, pause = error, pauses.next("start")
                self.controller.log.exception("start failed", error=said(error), again_in=round(pause, 1))
                await self._clock.sleep(pause)

    async def close(self) -> None:
        """Follow nothing any more. Nothing may work when this is called."""
        if self._sources:
            self.queue.close(drain=False)
        while self._sources:
            await self._informers.unsubscribe(*self._sources.pop())
        if self.started:
            self.started = False
            await self._call(self.controller.stop, "stop failed")

    async def _call(self, end: Callable[[], Awaitable[None]], failed: str) -> None:
        """What a controller does at an end: not for ever, and its mistakes stay its own."""
        try:
            async with asyncio.timeout(STOP):
                await end()
        except Exception as error:
            self.controller.log.exception(failed, error=said(error))

    # --- changes to requests -----------------------------------------------------------------------------------------

    def _changed(self, change: Change) -> None:
        request = change.request
        if self.controller.when(change) and not self._is_echo(request, change):
            self.queue.add(request, LOW if change.initial else 0)

    def _owned_changed(self, change: Change) -> None:
        own_group = self._own.api_version.rpartition("/")[0]
        for head in change.heads:
            for owner in (head.owner_references or ()) if head is not None else ():
                if (
                    owner.controller
                    and owner.kind == self._own.kind
                    and owner.api_version.rpartition("/")[0] == own_group
                ):
                    self._ask_for(self._request_of(owner.name, change), change)

    def _request_of(self, owner: str, change: Change) -> Request:
        """An owner is in the namespace of what it owns, or in none."""
        known = self._informers.client.scheme.kind(self._own.api_version, self._own.kind)
        if known is not None:
            clustered = not known.namespaced
        else:
            clustered = self._sources[0][0].cache.get(Request("", owner)) is not None
        return Request("" if clustered else change.request.namespace, owner)

    def _mapped(self, when: Callable[[Change], bool], to: Callable[[Change], Iterable[Request]]) -> Handler:
        def handle(change: Change) -> None:
            if when(change):
                for request in to(change):
                    self._ask_for(request, change)

        return handle

    def _ask_for(self, request: Request, change: Change) -> None:
        """Another object's change matters to this one, if it is ours: a controller may follow a part of its kind."""
        own = self._sources[0][0]
        if own.query.namespace and request.namespace != own.query.namespace:
            return
        if (own.query.labels or own.query.fields) and own.cache.get(request) is None:
            return
        if not self._is_echo(request, change):
            self.queue.add(request, LOW if change.initial else 0)

    def _is_echo(self, request: Request, change: Change) -> bool:
        """Whether the reconcile of this very request wrote that, and wants not to hear of it."""
        writer = change.writer
        return writer is not None and writer.of is self and writer.request == request

    # --- requests to reconcile ---------------------------------------------------------------------------------------

    async def _work(self) -> None:
        worker = asyncio.current_task()
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
            await self._breathe(worker)

    async def _breathe(self, worker: asyncio.Task[None] | None) -> None:
        """Let others run between two reconciles: neither the queue nor a reconcile needs to wait for anything."""
        if worker not in self._workers:
            raise asyncio.CancelledError  # the reconcile swallowed it
        while worker.cancelling():  # the reconcile did this to its own worker
            worker.uncancel()
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            if worker not in self._workers:
                raise

    async def _reconcile(self, request: Request) -> None:
        began = self._clock.monotonic()
        self._metrics.started()
        outcome: Any = "error"
        try:
            outcome = self._settled(request, await self._bounded(request))
        except NotLeading:
            outcome = "requeue"
            self.queue.add_after(request, NOT_LEADING, self.queue.priority(request))
        except asyncio.CancelledError:
            outcome = "requeue"
            raise
        except TerminalError as error:
            self._metrics.terminal()
            self._failed(request, error, again=False)
        except Exception as error:
            if _unexpected(error):
                self._metrics.panic()
            self._failed(request, error)
        finally:
            self._metrics.reconciled(outcome, self._clock.monotonic() - began)

    async def _bounded(self, request: Request) -> Any:
        """Within the time that the controller allows."""
        worker = asyncio.current_task()
        limit = _Limit(worker, self.controller.timeout)
        writer = None if self.controller.echo else begin(self, request)
        try:
            if request in self._doubtful:
                await self._look(request)
            result = await self.controller.reconcile(request)
        except asyncio.CancelledError:
            if worker not in self._workers:
                raise
            if not limit.reached:
                raise RuntimeError("the reconcile cancelled itself") from None
        finally:
            limit.end()
            if writer is not None:
                writer.over = True
        if limit.reached:  # also when it swallowed that: it did not do what it meant to
            self._metrics.timeout()
            raise TimeoutError(f"not done within {self.controller.timeout:g} s")
        return result

    async def _look(self, request: Request) -> None:
        await self.controller.client.look(self.controller.kind, request.name, request.namespace)
        self._doubtful.discard(request)

    def _settled(self, request: Request, result: Any) -> str:
        if result is None:
            result = _DONE
        if not isinstance(result, Result):
            raise TypeError(f"reconcile returned {type(result).__name__}; return a Result or None")
        after = result.requeue_after
        if after is not None and not 0 <= after < _YEARS:
            raise ValueError(f"requeue_after={after} is no number of seconds")
        priority = self.queue.priority(request) if result.priority is None else result.priority
        if after == 0 or (after is None and result.requeue):
            self.queue.add_rate_limited(request, priority)
            return "requeue"
        self.queue.forget(request)
        if after is None:
            return "success"
        self.queue.add_after(request, after, priority)
        return "requeue_after"

    def _failed(self, request: Request, error: Exception, *, again: bool = True) -> None:
        self._metrics.error()
        if _leaves_doubt(error):
            self._doubtful.add(request)
        if again:
            self.queue.add_rate_limited(request, self.queue.priority(request))
        else:
            self.queue.forget(request)
        if isinstance(error, StatusError) and error.code == 409:
            return  # someone else was faster: look again
        report = self.controller.log.exception if _unexpected(error) else self.controller.log.warning
        report("reconcile failed", object=str(request), error=said(error), again=again)
        entry = self._sources[0][0].cache.get(request)
        if entry is not None and not isinstance(error, Unreachable | Silent):  # says nothing about the object
            obj = self._sources[0][0].cache.decode(entry)
            self.controller.events.warning(obj, "ReconcileFailed", f"{type(error).__name__}: {said(error)}")


class _Limit:
    """Cancels a task after a while. `asyncio.timeout` does the same at twice the cost; `_breathe` tidies up after both."""

    __slots__ = ("_task", "_timer", "reached")

    def __init__(self, task: asyncio.Task[Any] | None, seconds: float | None) -> None:
        self.reached = False
        self._task = task
        self._timer = None if seconds is None else asyncio.get_running_loop().call_later(seconds, self._reach)

    def _reach(self) -> None:
        self.reached = True
        if self._task is not None:
            self._task.cancel()

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def said(error: Exception) -> str:
    """What an error says of itself, whoever wrote its class."""
    try:
        return str(error)
    except Exception:
        return f"a {type(error).__name__} that cannot be shown"


def _unexpected(error: Exception) -> bool:
    """A mistake in the code, for which the traceback matters."""
    return not isinstance(error, StatusError | TerminalError | TimeoutError | OSError)


def _leaves_doubt(error: Exception) -> bool:
    """Whether the server may have done what we do not know of."""
    if isinstance(error, StatusError):
        return error.code in (408, 409) or error.code >= 500
    return isinstance(error, Unreachable | TimeoutError)


_DONE = Result()
_YEARS = 10 * 365 * 86400.0

"""The loop of one rule: wait until it is time, sweep, say what came of it, wait again.

There is never more than one for a rule: whoever replaces it waits for its end. Whatever fails inside reaches the rule's
status and an event, and the loop goes on after a pause that grows. Only who no longer leads has nothing more to say.
"""

from __future__ import annotations

import asyncio
import contextlib
from datetime import datetime, timedelta

import msgspec
from msgspec import UNSET

from trimtab.model.backoff import pause
from trimtab.model.clock import format_time, parse_time
from trimtab.model.conditions import without_condition
from trimtab.model.logs import log
from trimtab.runtime.deadline import within
from trimtab.runtime.election import NotLeading
from trimtab.runtime.runs import Ended, Run, Runs, running
from trimtab.runtime.status import condition, ready
from trimtab.runtime.tasks import ended
from trimtab.systems.discovery.kinds import DiscoveryRule, DiscoveryRuleStatus
from trimtab.systems.discovery.ledger.book import Book, owner_of
from trimtab.systems.discovery.report import Report
from trimtab.systems.discovery.run import Outdated, RuleRun
from trimtab.systems.discovery.scope.windows import opens
from trimtab.systems.discovery.settings import Settings
from trimtab.systems.discovery.sweeping import Closed
from trimtab.systems.discovery.telling import Gone, Say, Teller
from trimtab.systems.discovery.tools import Identifiers, Tools

AGAIN_AFTER = 5.0
"""Seconds after a failed run; they double up to AGAIN_AT_MOST."""
AGAIN_AT_MOST = 300.0
LOOK_UP = 60.0
"""Seconds after which a loop that waits looks at the clock again."""
SETTLE_DOWN = 1.0
"""Seconds in which changes of Pods and Services are gathered into one run."""


class Loop:
    """Of one rule with one set of settings. `start`, then `stop`; `wake` asks for a run now."""

    def __init__(self, tools: Tools, settings: Settings, teller: Teller, *, at_once: bool) -> None:
        self.settings = settings
        self._tools, self._teller, self._rule = tools, teller, settings.rule
        self._runs = Runs(tools.clock, blobs=tools.blobs, owner=owner_of(self._rule))
        self._book = Book(tools.blobs, teller, self._rule)
        self._identifiers: Identifiers = {}
        self._woken = asyncio.Event()
        self._prompt = self._asked = self._answered = ""
        self._failures, self._not_before = 0, tools.clock.now()
        self._began: datetime | None = None  # the last run of this loop: a history has whole seconds, periods have not
        self._task: asyncio.Task[None] | None = None
        self._closing, self._in_run = asyncio.Event(), False
        if at_once:
            self.wake("Changed")

    def start(self) -> None:
        self._task = asyncio.create_task(self._live(), name=f"discovery of {self._rule.namespace}/{self._rule.name}")

    async def stop(self, *, reason: str = "", patience: float = 0) -> None:
        """Returns when nothing of it runs any more. With a reason, the run that went on is closed as cancelled; without
        one it goes on in the loop of the next process. Devices that are being asked have so many seconds to come to their
        end: a login that is cut off counts against us, and keeps the device waiting for a whole window."""
        self._closing.set()
        if self._task is not None:
            try:
                if self._in_run and patience:
                    with contextlib.suppress(TimeoutError):
                        await within(self._tools.clock, patience, asyncio.wait({self._task}))
            finally:
                await ended(self._task)
        await self._book.close()
        self._tools.books.leave(self._book, self._tools.clock.now().timestamp())
        for identifier in self._identifiers.values():
            await identifier.close()
        if reason:
            await self._close("Cancelled", reason, "the rule was changed or deleted")

    @property
    def ended(self) -> bool:
        """Whether nothing lives of it any more, though nobody stopped it."""
        return self._task is not None and self._task.done()

    def wake(self, trigger: str) -> None:
        """Run as soon as the one that goes on has ended, and a window is open."""
        self._prompt = trigger
        self._woken.set()

    def ask(self, token: str) -> None:
        """Somebody wants a run now, whatever the windows say. The token is told back in `status.handledRun`."""
        if token != self._answered:
            self._asked = token
            self._woken.set()

    def renew(self, rule: DiscoveryRule) -> None:
        """The same rule with other metadata: annotations that release or accept something count from the next run."""
        self._rule = rule
        self.settings = msgspec.structs.replace(self.settings, rule=rule)

    async def _live(self) -> None:
        """Begin, then run after run. Whatever goes wrong between two runs, as when the API cannot be reached, is told as
        soon as it can be, and does not end the loop."""
        begun = False
        while not self._closing.is_set():
            try:
                if not begun:
                    await self._begin()
                    begun = True
                await self._one(await self._due())
            except (Gone, Closed):
                return
            except Exception as error:
                if _leads_no_more(error):
                    log.info(
                        "the loop of a rule ends: another leads", rule=self._rule.name, namespace=self._rule.namespace
                    )
                    return
                log.exception("the loop of a rule stumbled", rule=self._rule.name, namespace=self._rule.namespace)
                with contextlib.suppress(Gone, NotLeading):  # the next round sees that too
                    await self._tools.clock.sleep(await self._failed(error))

    async def _begin(self) -> None:
        clock = self._tools.clock
        if not self._identifiers:
            protocols = (connection.spec.protocol for connection in self.settings.connections)
            self._identifiers = await self._tools.identifiers(protocols, self.settings.vendors)
        rule = await self._teller.tell(lambda status: status.replace(start_time=format_time(clock.now())))
        await self._tools.books.recall(self._tools.client, self._tools.blobs, clock.now().timestamp())
        problem = await self._book.load(rule)
        if problem:
            note = f"what was known of each address cannot be read, and is learned anew: {problem}"
            self._tools.events.warning(self._rule, "LedgerLost", note)
            self._book.closed_until = clock.now().timestamp() + self._rule.spec.lockout_window.seconds
        self._tools.books.open(self._book)
        await self._book.wake(clock.now().timestamp())
        if self._book.ledger.settings not in ("", self.settings.digest):
            self.wake("Changed")  # while nobody looked

    async def _due(self) -> Run | None:
        """Wait until a run is due. The one that the end of a process interrupted, if there is one, is due at once."""
        rule = await self._teller.tell(lambda status: status)
        history = (rule.status.history if rule.status else UNSET) or ()
        going = running(history)
        if going is not None and going.id == self._book.ledger.run and not self._failures:
            return going
        if going is not None:
            closed = await self._runs.interrupted(history)
            await self._teller.tell(lambda status: status.replace(history=closed))
            self._prompt = self._prompt or "Interrupted"
        clock = self._tools.clock
        while not self._asked:
            self._woken.clear()
            due = self._next(history)
            delay = LOOK_UP if due is None else (due - clock.now()).total_seconds()
            if delay <= 0:
                break
            with contextlib.suppress(TimeoutError):  # clocks may jump, so nobody sleeps for long
                await within(clock, min(delay, LOOK_UP), self._woken.wait())
        if self._prompt == "Sources" and not self._asked:
            await clock.sleep(SETTLE_DOWN)
        return None

    def _next(self, history: tuple[Run, ...]) -> datetime | None:
        """When the next run may begin: by the period; after a failure, or a sweep that cannot be trusted, sooner."""
        spec, now = self._rule.spec, self._tools.clock.now()
        if self._failures:
            return opens(spec.windows, spec.period, None, max(now, self._not_before))
        last = parse_time(history[0].started) if history and not self._prompt else None
        if last is not None and self._began is not None:
            last = max(last, self._began)
        return opens(spec.windows, spec.period, last, now)

    async def _one(self, going: Run | None) -> None:
        """One run, to its end. What it raises is told, and tried again later."""
        try:
            run = going or await self._begin_run()
            try:
                report = await self._run(run)
            except Outdated as error:
                await self._close("Cancelled", "Outdated", _sentence(error))
                self._prompt = self._prompt or "Changed"
                run = await self._begin_run()
                report = await self._run(run)
        except (Gone, Closed):
            raise
        except Exception as error:  # whatever it is, it reaches the status, and the loop goes on
            if _leads_no_more(error):
                raise
            log.exception("a sweep failed", rule=self._rule.name, namespace=self._rule.namespace)
            await self._failed(error)
        else:
            if report.poor:
                self._put_off()
            else:
                self._failures = 0
            self._tools.measures.ended(self._rule.namespace, self._rule.name, "Succeeded")
            await self._succeeded(run, report)

    async def _run(self, run: Run) -> Report:
        self._in_run = True
        try:
            return await RuleRun(
                self._tools, self.settings, self._book, self._teller, self._identifiers, run, self._closing
            ).run()
        finally:
            self._in_run = False

    async def _begin_run(self) -> Run:
        """The run is in the status before anything is sent. What it was asked by is answered when that is written."""
        begun: list[Run] = []
        token = self._asked
        trigger = "Manual" if token else self._prompt or "Schedule"

        def say(status: DiscoveryRuleStatus) -> DiscoveryRuleStatus:
            history, run = self._runs.start(status.history, trigger)
            begun[:] = [run]
            return status.replace(history=history, handled_run=token or status.handled_run)

        began = self._tools.clock.now()
        await self._teller.tell(say)
        self._began = began
        self._prompt, self._answered = "", token or self._answered
        if self._asked == token:
            self._asked = ""
        return begun[0]

    async def _succeeded(self, run: Run, report: Report) -> None:
        await self._end(
            run.id,
            "Succeeded",
            report.reason,
            report.message,
            report.counts,
            say=lambda status: self._reported(status, report),
        )

    def _reported(self, status: DiscoveryRuleStatus, report: Report) -> DiscoveryRuleStatus:
        clock, generation = self._tools.clock, self._rule.metadata.generation
        conditions = ready(status.conditions, clock, generation, report.ok, report.reason, report.message)
        for kind, reason, message in (
            ("MassLoss", "HeldBack", report.held),
            ("Overlap", "OwnedByAnotherRule", report.overlap),
        ):
            if message:
                conditions = condition(conditions, clock, generation, kind, True, reason, message)
            else:
                conditions = without_condition(conditions, kind)
        return status.replace(
            conditions=conditions,
            plan=report.plan,
            entries=report.entries,
            targets=report.targets,
        )

    async def _failed(self, error: Exception) -> float:
        """Tell it. Seconds until the next try."""
        self._tools.measures.ended(self._rule.namespace, self._rule.name, "Failed")
        wait = self._put_off()
        message = f"{_sentence(error)}; the next try is in {wait:.0f} s"
        self._tools.events.warning(self._rule, "SweepFailed", message)
        try:
            await self._close("Failed", "SweepFailed", _sentence(error))
            await self._teller.tell(lambda status: self._unready(status, message))
        except (Gone, NotLeading):
            raise
        except Exception:  # the API may be the very thing that fails; the next try says more
            log.exception("the failure of a sweep cannot be told", rule=self._rule.name)
        return wait

    def _put_off(self) -> float:
        """Longer each time in a row. Seconds."""
        self._failures += 1
        wait = pause(self._failures - 1, AGAIN_AFTER, AGAIN_AT_MOST, self._tools.chance)
        self._not_before = self._tools.clock.now() + timedelta(seconds=wait)
        return wait

    def _unready(self, status: DiscoveryRuleStatus, message: str) -> DiscoveryRuleStatus:
        generation = self._rule.metadata.generation
        conditions = ready(status.conditions, self._tools.clock, generation, False, "SweepFailed", message)
        return status.replace(conditions=conditions)

    async def _close(self, outcome: Ended, reason: str, message: str) -> None:
        """End the run that goes on, if one does."""
        try:
            rule = await self._teller.tell(lambda status: status)
        except Gone:
            return
        going = running((rule.status.history if rule.status else UNSET) or ())
        if going is not None:
            await self._end(going.id, outcome, reason, message, {})

    async def _end(
        self,
        run: str,
        outcome: Ended,
        reason: str,
        message: str,
        counts: dict[str, int],
        say: Say = lambda status: status,
    ) -> None:
        rule = await self._teller.tell(lambda status: status)
        history = (rule.status.history if rule.status else UNSET) or ()
        closed = await self._runs.finish(history, run, outcome, reason=reason, message=message, counts=counts)
        await self._teller.tell(lambda status: say(status.replace(history=closed, progress=UNSET)))


def _leads_no_more(error: Exception) -> bool:
    if isinstance(error, ExceptionGroup):
        return any(_leads_no_more(inner) for inner in error.exceptions)
    return isinstance(error, NotLeading)


def _sentence(error: Exception) -> str:
    if isinstance(error, ExceptionGroup):
        return "; ".join(dict.fromkeys(_sentence(inner) for inner in error.exceptions))
    return f"{error}" or type(error).__name__

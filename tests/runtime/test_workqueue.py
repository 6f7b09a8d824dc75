"""The work queue: what is handed out, to whom, when and in which order."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from trimtab.model.clock import SystemClock
from trimtab.runtime.limits import Backoff, TokenBucket
from trimtab.runtime.metrics import QueueMetrics
from trimtab.runtime.workitem import FEW_STALE
from trimtab.runtime.workqueue import FAIR_TURN, LOW, QueueClosed, WorkQueue
from trimtab.testing.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def metrics() -> QueueMetrics:
    return QueueMetrics()


@pytest.fixture
def queue(clock: FakeClock, metrics: QueueMetrics) -> WorkQueue[str]:
    return WorkQueue(clock, name="widgets", backoff=Backoff(jitter=0, random=Random(1)), metrics=metrics)


async def take_all(queue: WorkQueue[str]) -> list[str]:
    """What a worker gets now, one after the other."""
    taken = []
    while len(queue):
        taken.append(await queue.get())
        queue.done(taken[-1])
    return taken


class TestOrder:
    async def test_keys_come_in_the_order_of_their_adds(self, queue: WorkQueue[str]) -> None:
        for key in "cab":
            queue.add(key)

        assert await take_all(queue) == ["c", "a", "b"]

    async def test_a_key_that_waits_is_there_once(self, queue: WorkQueue[str]) -> None:
        for key in "abab":
            queue.add(key)

        assert await take_all(queue) == ["a", "b"]

    async def test_a_higher_priority_goes_first(self, queue: WorkQueue[str]) -> None:
        queue.add("listed", LOW)
        queue.add("fresh")
        queue.add("urgent", 10)

        assert await take_all(queue) == ["urgent", "fresh", "listed"]

    async def test_adding_with_a_higher_priority_raises_a_key_to_the_end_of_it(self, queue: WorkQueue[str]) -> None:
        queue.add("a", LOW)
        queue.add("b", LOW)
        queue.add("c")
        queue.add("b")

        assert await take_all(queue) == ["c", "b", "a"]

    async def test_adding_with_a_lower_priority_changes_nothing(self, queue: WorkQueue[str]) -> None:
        queue.add("a")
        queue.add("b")
        queue.add("a", LOW)

        assert await take_all(queue) == ["a", "b"]

    async def test_a_low_priority_does_not_starve(self, queue: WorkQueue[str]) -> None:
        queue.add("listed", LOW)
        queue.add("middle", -1)
        got = []
        for number in range(3 * FAIR_TURN):
            queue.add(f"fresh-{number}")
            got.append(await queue.get())
            queue.done(got[-1])

        assert got.index("listed") == FAIR_TURN - 1
        assert got.index("middle") == 2 * FAIR_TURN - 1


class TestWorkers:
    async def test_a_key_in_work_is_handed_out_again_only_when_it_is_done(self, queue: WorkQueue[str]) -> None:
        queue.add("a")
        await queue.get()
        queue.add("a")
        queue.add("a")
        assert len(queue) == 0

        queue.done("a")

        assert await take_all(queue) == ["a"]

    async def test_a_key_that_was_not_added_again_is_gone_when_it_is_done(self, queue: WorkQueue[str]) -> None:
        queue.add("a")
        queue.done(await queue.get())

        assert len(queue) == 0

    async def test_a_waiting_worker_gets_the_key_that_comes(self, queue: WorkQueue[str], clock: FakeClock) -> None:
        worker = asyncio.create_task(queue.get())
        await clock.settle()
        assert not worker.done()

        queue.add("a")

        assert await worker == "a"

    async def test_workers_that_wait_share_the_keys_that_come(self, queue: WorkQueue[str], clock: FakeClock) -> None:
        workers = [asyncio.create_task(queue.get()) for _ in range(3)]
        await clock.settle()

        for key in "abc":
            queue.add(key)

        assert await asyncio.gather(*workers) == ["a", "b", "c"]

    async def test_a_worker_cancelled_as_a_key_comes_leaves_it_to_the_next(
        self, queue: WorkQueue[str], clock: FakeClock
    ) -> None:
        first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
        await clock.settle()

        queue.add("a")
        first.cancel()

        assert await second == "a"
        assert first.cancelled()

    async def test_a_worker_cancelled_while_it_waits_is_not_waited_for(
        self, queue: WorkQueue[str], clock: FakeClock
    ) -> None:
        first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
        await clock.settle()

        first.cancel()
        await clock.settle()
        queue.add("a")

        assert await second == "a"

    async def test_a_key_that_is_not_in_work_cannot_be_done(self, queue: WorkQueue[str]) -> None:
        queue.add("a")

        for key in ("a", "unknown"):
            with pytest.raises(ValueError, match="is not in work"):
                queue.done(key)

    async def test_a_worker_learns_the_priority_that_its_key_had(self, queue: WorkQueue[str]) -> None:
        queue.add("a", LOW)
        await queue.get()
        queue.add("a", 5)

        assert queue.priority("a") == LOW

    async def test_the_priority_of_work_that_is_over_does_not_raise_the_next(self, queue: WorkQueue[str]) -> None:
        queue.add("a", 5)
        await queue.get()
        queue.add("a", LOW)
        queue.add("b")
        queue.done("a")

        assert await take_all(queue) == ["b", "a"]


class TestDelays:
    async def test_a_delayed_key_is_due_at_its_time(self, queue: WorkQueue[str], clock: FakeClock) -> None:
        queue.add_after("a", 30)

        await clock.advance(29.5)
        assert len(queue) == 0
        await clock.advance(0.5)
        assert await take_all(queue) == ["a"]

    async def test_delayed_keys_come_in_the_order_of_their_times(self, queue: WorkQueue[str], clock: FakeClock) -> None:
        for key, seconds in (("c", 3), ("a", 1), ("b", 2), ("a2", 1)):
            queue.add_after(key, seconds)

        await clock.advance(3)

        assert await take_all(queue) == ["a", "a2", "b", "c"]

    async def test_an_earlier_deadline_replaces_the_timer(self, queue: WorkQueue[str], clock: FakeClock) -> None:
        queue.add_after("late", 100)
        await clock.settle()
        queue.add_after("early", 1)
        await clock.settle()

        assert clock.pending == (1.0,)
        await clock.advance(1)
        assert await take_all(queue) == ["early"]
        assert clock.pending == (100.0,)

    async def test_many_delayed_keys_need_one_timer(self, queue: WorkQueue[str], clock: FakeClock) -> None:
        for number in range(100):
            queue.add_after(f"key-{number}", 50 + number)
        await clock.settle()

        assert clock.pending == (50.0,)

    @pytest.mark.parametrize(("first", "second"), [(10, 60), (60, 10)])
    async def test_of_two_delays_the_earlier_wins(
        self, queue: WorkQueue[str], clock: FakeClock, first: float, second: float
    ) -> None:
        queue.add_after("a", first)
        queue.add_after("a", second)

        await clock.advance(10)
        assert await take_all(queue) == ["a"]
        await clock.advance(60)
        assert len(queue) == 0

    async def test_a_delay_does_not_postpone_a_key_that_is_due(self, queue: WorkQueue[str]) -> None:
        queue.add("a")
        queue.add_after("a", 60)

        assert await take_all(queue) == ["a"]

    async def test_adding_a_delayed_key_makes_it_due_and_the_delay_is_spent(
        self, queue: WorkQueue[str], clock: FakeClock
    ) -> None:
        queue.add_after("a", 60)
        queue.add("a")

        assert await take_all(queue) == ["a"]
        await clock.advance(60)
        assert len(queue) == 0

    async def test_a_delay_keeps_the_highest_priority_it_was_given(
        self, queue: WorkQueue[str], clock: FakeClock
    ) -> None:
        queue.add_after("a", 5, LOW)
        queue.add_after("a", 9, 1)
        queue.add("b")

        await clock.advance(5)

        assert await take_all(queue) == ["a", "b"]

    async def test_a_key_in_work_whose_time_comes_is_due_at_done(self, queue: WorkQueue[str], clock: FakeClock) -> None:
        queue.add("a")
        await queue.get()
        queue.add_after("a", 5)
        await clock.advance(5)
        assert len(queue) == 0

        queue.done("a")

        assert await take_all(queue) == ["a"]

    async def test_a_key_asked_for_later_by_its_worker_comes_later(
        self, queue: WorkQueue[str], clock: FakeClock
    ) -> None:
        queue.add("a")
        await queue.get()
        queue.add_after("a", 5)
        queue.done("a")
        assert len(queue) == 0

        await clock.advance(5)

        assert await take_all(queue) == ["a"]

    async def test_no_delay_is_now(self, queue: WorkQueue[str]) -> None:
        queue.add_after("a", 0)
        queue.add_after("b", -1)

        assert await take_all(queue) == ["a", "b"]

    async def test_a_delay_that_is_no_number_is_refused_and_harms_nobody(
        self, queue: WorkQueue[str], clock: FakeClock
    ) -> None:
        with pytest.raises(ValueError, match="give a number"):
            queue.add_after("a", float("nan"))

        queue.add_after("b", 1)
        await clock.advance(1)
        assert await take_all(queue) == ["b"]

    async def test_a_second_delay_to_the_same_time_keeps_the_place_of_the_first(
        self, queue: WorkQueue[str], clock: FakeClock
    ) -> None:
        for key in "aba":
            queue.add_after(key, 5)

        await clock.advance(5)

        assert await take_all(queue) == ["a", "b"]

    async def test_a_delay_of_a_key_that_is_due_at_done_is_spent(self, queue: WorkQueue[str], clock: FakeClock) -> None:
        queue.add("a")
        await queue.get()
        queue.add("a")
        queue.add_after("a", 5)
        queue.done("a")

        assert await take_all(queue) == ["a"]
        await clock.advance(5)
        assert len(queue) == 0

    async def test_times_that_do_not_add_up_exactly_are_still_met(
        self, queue: WorkQueue[str], clock: FakeClock
    ) -> None:
        random = Random(5)
        delays = {f"key-{number}": random.random() for number in range(200)}
        for key, delay in delays.items():
            queue.add_after(key, delay)

        await clock.advance(1)

        assert await take_all(queue) == sorted(delays, key=delays.__getitem__)

    async def test_a_sleep_that_ends_a_little_early_is_not_repeated(self) -> None:
        class Coarse(FakeClock):
            sleeps = 0

            async def sleep(self, seconds: float) -> None:
                self.sleeps += 1
                await super().sleep(seconds - 0.0004)

        clock = Coarse()
        queue: WorkQueue[str] = WorkQueue(clock, name="coarse", backoff=Backoff(random=Random(1)))
        queue.add_after("a", 1)

        await clock.advance(2)

        assert await take_all(queue) == ["a"]
        assert clock.sleeps == 1

    async def test_delays_that_were_overtaken_do_not_pile_up(self, queue: WorkQueue[str], clock: FakeClock) -> None:
        for _ in range(10 * FEW_STALE):
            queue.add_after("a", 36000)
            queue.add("a")
            queue.done(await queue.get())

        assert len(queue._delayed._heap) <= FEW_STALE + 1

    async def test_the_system_clock_brings_a_delayed_key_too(self) -> None:
        queue: WorkQueue[str] = WorkQueue(SystemClock(), name="real", backoff=Backoff(random=Random(1)))
        queue.add_after("b", 0.02)
        queue.add_after("a", 0.01)

        assert [await queue.get(), await queue.get()] == ["a", "b"]
        queue.close()


class TestRateLimits:
    async def test_a_failing_key_waits_longer_each_time(self, queue: WorkQueue[str], clock: FakeClock) -> None:
        for seconds in (0.005, 0.01, 0.02):
            queue.add_rate_limited("a")
            await clock.settle()
            assert clock.pending == pytest.approx((clock.monotonic() + seconds,))
            await clock.advance(seconds)
            assert await take_all(queue) == ["a"]

    async def test_a_forgotten_key_waits_the_shortest_time_again(self, queue: WorkQueue[str], clock: FakeClock) -> None:
        for _ in range(5):
            queue.add_rate_limited("a")
            await clock.advance(1)
            await take_all(queue)

        queue.forget("a")
        queue.add_rate_limited("a")
        await clock.advance(0.005)

        assert await take_all(queue) == ["a"]

    async def test_a_bucket_holds_all_keys_back_together(self, clock: FakeClock) -> None:
        queue = WorkQueue[str](
            clock,
            name="limited",
            backoff=Backoff(jitter=0, random=Random(1)),
            bucket=TokenBucket(rate=1, burst=1, clock=clock),
        )
        for key in "abc":
            queue.add_rate_limited(key)

        await clock.advance(0.5)
        assert await take_all(queue) == ["a"]
        await clock.advance(0.5)
        assert await take_all(queue) == ["b"]
        await clock.advance(1)
        assert await take_all(queue) == ["c"]

    async def test_a_long_back_off_is_not_shortened_by_a_full_bucket(self, clock: FakeClock) -> None:
        queue = WorkQueue[str](
            clock,
            name="limited",
            backoff=Backoff(first=10, jitter=0, random=Random(1)),
            bucket=TokenBucket(rate=1, burst=1, clock=clock),
        )
        queue.add_rate_limited("a")

        await clock.advance(9.5)
        assert len(queue) == 0


class TestClosing:
    async def test_a_closed_queue_hands_out_what_is_due_and_then_ends(self, queue: WorkQueue[str]) -> None:
        queue.add("a")
        queue.add("b")

        queue.close()

        assert await take_all(queue) == ["a", "b"]
        with pytest.raises(QueueClosed):
            await queue.get()

    async def test_a_closed_queue_takes_nothing_more(self, queue: WorkQueue[str]) -> None:
        queue.close()
        queue.add("a")
        queue.add_after("b", 0)
        queue.add_rate_limited("c")

        with pytest.raises(QueueClosed):
            await queue.get()

    async def test_closing_drops_what_is_delayed(self, queue: WorkQueue[str], clock: FakeClock) -> None:
        queue.add_after("a", 1)
        queue.add("b")
        await queue.get()
        queue.add_after("b", 1)
        await clock.settle()

        queue.close()
        queue.done("b")
        await clock.settle()

        assert clock.pending == ()
        with pytest.raises(QueueClosed):
            await queue.get()

    async def test_closing_ends_the_workers_that_wait(self, queue: WorkQueue[str], clock: FakeClock) -> None:
        workers = [asyncio.create_task(queue.get()) for _ in range(2)]
        await clock.settle()

        queue.close()

        ends = await asyncio.gather(*workers, return_exceptions=True)
        assert [type(end) for end in ends] == [QueueClosed, QueueClosed]

    async def test_a_queue_is_drained_when_the_last_worker_is_done(
        self, queue: WorkQueue[str], clock: FakeClock
    ) -> None:
        queue.add("a")
        await queue.get()
        queue.add("a")
        drained = asyncio.create_task(queue.drained())

        queue.close()
        queue.done("a")
        assert await queue.get() == "a", "added again before the close, so due after it"
        await clock.settle()
        assert not drained.done()

        queue.done("a")
        await drained

    async def test_an_empty_queue_is_drained_at_once(self, queue: WorkQueue[str]) -> None:
        queue.close()

        await queue.drained()

    async def test_without_a_drain_due_keys_are_dropped_too(self, queue: WorkQueue[str]) -> None:
        queue.add("held")
        await queue.get()
        queue.add("held")
        queue.add("due")

        queue.close()
        queue.close(drain=False)

        with pytest.raises(QueueClosed):
            await queue.get()
        queue.done("held")
        await queue.drained()


class TestMetrics:
    async def test_it_counts_adds_that_made_a_key_due(
        self, queue: WorkQueue[str], clock: FakeClock, metrics: QueueMetrics
    ) -> None:
        queue.add("a")
        queue.add("a")
        queue.add_after("b", 1)
        assert (metrics.adds, metrics.retries) == (1, 1)

        await clock.advance(1)

        assert metrics.adds == 2

    async def test_it_tells_what_is_due_by_priority_and_what_is_in_work(
        self, queue: WorkQueue[str], clock: FakeClock, metrics: QueueMetrics
    ) -> None:
        queue.add("a")
        await queue.get()
        queue.add("a", 3)
        queue.add("b", LOW)
        queue.add_after("c", 60)
        await clock.advance(2)

        state = metrics.observe()

        assert state.depth == {LOW: 1, 3: 1}
        assert state.working == [2.0]

    async def test_it_measures_how_long_keys_wait_and_are_worked_on(
        self, queue: WorkQueue[str], clock: FakeClock, metrics: QueueMetrics
    ) -> None:
        queue.add("a")
        await clock.advance(3)
        await queue.get()
        await clock.advance(4)
        queue.done("a")

        assert (metrics.waited.total, metrics.worked.total) == (3.0, 4.0)

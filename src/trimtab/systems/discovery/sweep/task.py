"""One job in the thread: what comes next, what is finished, what is to be told.

Of each address there is one byte: how many of its probes are not settled. `done` follows the first that has any.
"""

from __future__ import annotations

from trimtab.systems.discovery.findings import Outcome
from trimtab.systems.discovery.sweep.budget import Bucket, share
from trimtab.systems.discovery.sweep.job import Answer, Batch, Job, Quality
from trimtab.systems.discovery.sweep.lane import AnyLane, Tally
from trimtab.systems.discovery.sweep.permutation import Permutation
from trimtab.systems.discovery.sweep.sockets import Sockets
from trimtab.systems.discovery.sweep.tcp import Connects
from trimtab.systems.discovery.sweep.udp import Datagrams

CHUNK = 256
"""Addresses that are lined up at a time."""
MOST_AGAIN = 65_536
"""Repetitions that may wait, before they go first."""
MOST_UNTOLD = 16_384
"""Answers that nobody has taken, after which no more is sent."""


class Task:
    """`time` is what the clock of deadlines shows, `now` the real one."""

    def __init__(self, job: Job, sockets: Sockets, now: float) -> None:
        self.total = len(job.addresses)
        self.tally = Tally()
        self.worst_lag = 0.0
        self.lanes: list[AnyLane] = [
            (Connects if probe.transport == "tcp" else Datagrams)(number, probe, self, self.tally, sockets)
            for number, probe in enumerate(job.probes)
        ]
        self._job = job
        self._order = Permutation(self.total, job.seed)
        self._unsettled = bytearray([len(self.lanes)]) * self.total
        self._next = job.start if self.lanes else self.total
        self._done = job.start
        self._in_work = 0
        self._answers: list[Answer] = []
        self._told = job.start
        self._began = now
        self._cap = None if job.packets_per_second is None else Bucket(job.packets_per_second, now)

    def address(self, place: int) -> str:
        return self._job.addresses.at(self._order.at(place))

    def settled(self, place: int, probe: int, outcome: Outcome, data: bytes = b"") -> None:
        self._in_work -= 1
        self._unsettled[place] -= 1
        if outcome is not Outcome.SILENT:
            self._answers.append(Answer(self._order.at(place), probe, outcome, data))

    @property
    def finished(self) -> bool:
        return self._next == self.total and not self._in_work

    def wants(self, time: float, now: float) -> int:
        """How many packets it could send. Lines up the next addresses when no lane has any left."""
        if len(self._answers) > MOST_UNTOLD:
            return 0
        if self._hungry:
            self._line_up()
        wanted = sum(lane.wants(time) for lane in self.lanes)
        return wanted if self._cap is None else min(wanted, self._cap.available(now))

    def send(self, packets: int, time: float) -> int:
        grants = share(packets, [lane.wants(time) for lane in self.lanes])
        sent = sum(lane.send(grant, time) for lane, grant in zip(self.lanes, grants, strict=True) if grant)
        if self._cap is not None:
            self._cap.spend(sent)
        return sent

    def expire(self, time: float) -> None:
        for lane in self.lanes:
            lane.expire(time)

    @property
    def deadline(self) -> float | None:
        """When the first lane has something to expire."""
        return min((lane.deadline for lane in self.lanes if lane.deadline is not None), default=None)

    def rest(self, time: float, shared: Bucket) -> float | None:
        """How long it must wait before it may send; None when only an answer or a deadline can change that."""
        if len(self._answers) > MOST_UNTOLD:
            return None
        if self._hungry or any(lane.wants(time) for lane in self.lanes):
            return shared.wait if self._cap is None else max(shared.wait, self._cap.wait)
        return min((lane.paused(time) for lane in self.lanes if lane.paused(time)), default=None)

    def news(self) -> Batch | None:
        """What was not told yet."""
        while self._done < self._next and not self._unsettled[self._done]:
            self._done += 1
        if not self._answers and self._done == self._told:
            return None
        answers, self._answers, self._told = self._answers, [], self._done
        return Batch(answers, self._done, self.total)

    def quality(self, now: float) -> Quality:
        return Quality(
            sent=self.tally.sent,
            errors=self.tally.errors,
            late=self.tally.late,
            foreign=self.tally.foreign,
            worst_lag=self.worst_lag,
            duration=now - self._began,
            shortest_timeout=min((lane.probe.timeout for lane in self.lanes), default=0.0),
        )

    def close(self) -> None:
        for lane in self.lanes:
            lane.close()

    @property
    def _hungry(self) -> bool:
        """Whether the next addresses should be lined up."""
        if self._next == self.total or any(lane.fresh for lane in self.lanes):
            return False
        return sum(len(lane.again) for lane in self.lanes) < MOST_AGAIN

    def _line_up(self) -> None:
        following = min(self.total, self._next + CHUNK)
        for lane in self.lanes:
            lane.line_up(self._next, following)
        self._in_work += (following - self._next) * len(self.lanes)
        self._next = following

"""Whether a run is late: past its deadline, or its worker silent. No clocks of two machines are compared for the latter: a
worker is silent when its word has not changed for so long by our own clock."""

from __future__ import annotations

from trimtab.model.clock import Clock, parse_time
from trimtab.systems.images.kinds import DiscoveryJob, DiscoveryJobStatus
from trimtab.systems.images.runs.states import End, State, state_of

LOST_AFTER = 300.0
"""Seconds without a word of the worker that lists."""
LONGEST_WAIT = 60.0


class Pulse:
    """Of all runs of this process."""

    def __init__(self, clock: Clock, lost_after: float = LOST_AFTER) -> None:
        self._clock, self._lost_after = clock, lost_after
        self._seen: dict[str, tuple[str, float]] = {}

    def late(self, job: DiscoveryJob) -> End | None:
        """How the run ends, if it is late."""
        status = job.status or DiscoveryJobStatus()
        if status.deadline and self._clock.now() >= parse_time(status.deadline):
            why = _UNFINISHED.get(state_of(status), "not every image was done")
            return End("False", "DeadlineExceeded", f"{why} before {status.deadline}; see spec.discoveryTimeout")
        if state_of(status) is not State.LISTING:
            return None
        uid, now = job.metadata.uid or "", self._clock.monotonic()
        word = f"{status.fence} {status.heartbeat}"
        seen = self._seen.get(uid)
        if seen is None or seen[0] != word:
            self._seen[uid] = (word, now)
            return None
        if now - seen[1] < self._lost_after:
            return None
        return End("False", "WorkerLost", f"the worker {status.worker} has not reported for {self._lost_after:.0f} s")

    def wait(self, job: DiscoveryJob) -> float:
        """Seconds until the next thing that could be late."""
        status = job.status or DiscoveryJobStatus()
        left = (parse_time(status.deadline) - self._clock.now()).total_seconds() if status.deadline else LONGEST_WAIT
        seen = self._seen.get(job.metadata.uid or "")
        silence = seen[1] + self._lost_after - self._clock.monotonic() if seen else self._lost_after
        return max(0.05, min(left, silence, LONGEST_WAIT))

    def forget(self, uid: str) -> None:
        self._seen.pop(uid, None)


_UNFINISHED = {State.PENDING: "no worker took it", State.LISTING: "the registry was not listed to its end"}

"""When a registry is discovered next, by its cron lines or its period, whichever is due first. Pure.

A period counts from the start of the last discovery, and is due at once where there was none. Cron lines count from the
last discovery or from when they were written, whichever is later: what passed before is not made up for.
"""

from __future__ import annotations

import hashlib
from datetime import datetime

from msgspec import UNSET

from trimtab.model.duration import Duration
from trimtab.runtime.schedule import InvalidSchedule, Schedule
from trimtab.systems.images.kinds import DiscoverySchedule


def next_time(written: DiscoverySchedule, now: datetime, last: datetime | None, since: datetime) -> datetime | None:
    """Never before now; None for never. InvalidSchedule."""
    period = Duration.of(written.discovery_period.seconds) if written.discovery_period else UNSET
    by_cron = Schedule(cron=written.cron_schedule, zone=written.time_zone, suspend=written.suspend)
    by_period = Schedule(period=period, suspend=written.suspend)
    times = (by_cron.next(now, max(last or since, since)), by_period.next(now, last, since))
    return min((time for time in times if time is not None), default=None)


def digest_of(written: DiscoverySchedule) -> str:
    """The same for the same cron lines."""
    text = "\n".join((written.time_zone, *written.cron_schedule))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def told(error: InvalidSchedule) -> str:
    """What is wrong, by the names of a Registry's fields."""
    names = {
        "spec.schedule.cron": "cronSchedule",
        "spec.schedule.zone": "timeZone",
        "spec.schedule.period": "discoveryPeriod",
    }
    text = str(error)
    for theirs, ours in names.items():
        text = text.replace(theirs, f"spec.discoverySchedule.{ours}")
    return text
